"""Guards on tensors and modules: what torch changes behind every dict's back is noticed, and models are not kept alive."""

import gc
import weakref

import pytest

torch = pytest.importorskip("torch")

from guard_builder import NULL, Builder, guard_module  # noqa: E402
from torch import nn  # noqa: E402


def tensor_guard(example):
    b = Builder(("x", "y"))
    x = b.slot(0)
    b.row("Tensor", x, example)
    b.wanted.append(x)
    return b.build()


X = torch.ones(3, 4)


@pytest.mark.parametrize(
    "other",
    [
        torch.ones(4, 3),
        torch.ones(3, 4, 1),
        torch.ones(3, 4, dtype=torch.float64),
        torch.ones(4, 3).t(),
        torch.ones(3, 4, requires_grad=True),
        nn.Parameter(torch.ones(3, 4)),
        torch.ones(3, 4).to_sparse(),
        torch.ones(3, 4, device="meta"),
        torch.ones(3, 4, dtype=torch.complex64).conj(),
        5,
        None,
        NULL,
    ],
    ids=str,
)
def test_another_kind_of_tensor(other):
    guards = tensor_guard(X)
    assert guards.check((X,)) and guards.check((torch.zeros(3, 4),))
    assert not guards.check((other,))
    kind, source, expected, got = guards.explain((other,))
    assert (kind, source) == ("Tensor", "x") and "3,4" in expected and got


def test_explanation_of_a_tensor():
    guards = tensor_guard(X)
    assert guards.explain((torch.ones(3, 5),))[2:] == ("f32[3,4] cpu", "size at dimension 1: 5, expected 4")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.norm = nn.BatchNorm1d(3)
        self.layers = nn.ModuleList(nn.Linear(3, 3, bias=i > 0) for i in range(2))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.norm(self.fc(x))


def model_guard(net):
    b = Builder()
    guard_module(b, b.slot(0), net)
    return b.build()


def replace_class(net):
    nn.utils.parametrizations.weight_norm(net.fc)


MODEL_CHANGES = {
    "eval": lambda net: net.eval(),
    "eval of a child": lambda net: net.layers[1].eval(),
    "hook": lambda net: net.fc.register_forward_hook(lambda *a: None),
    "hook on a child": lambda net: net.layers[0].register_full_backward_hook(lambda *a: None),
    "parameter of another size": lambda net: setattr(net.fc, "weight", nn.Parameter(torch.ones(5, 3))),
    "parameter gone": lambda net: setattr(net.fc, "bias", None),
    "parameter appears": lambda net: setattr(net.layers[0], "bias", nn.Parameter(torch.ones(3))),
    "another child": lambda net: setattr(net, "fc", nn.Identity()),
    "double": lambda net: net.double(),
    ".data": lambda net: setattr(net.fc.weight, "data", torch.ones(3, 3, dtype=torch.float64)),
    "requires_grad_": lambda net: net.layers[1].weight.requires_grad_(False),
    "forward of the class": lambda net: setattr(type(net), "forward", lambda self, x: x),
    "class swapped": replace_class,
    "buffer of another dtype": lambda net: net.norm.register_buffer("running_mean", torch.ones(3, dtype=torch.float64)),
}


@pytest.mark.parametrize("change", MODEL_CHANGES.values(), ids=MODEL_CHANGES)
def test_model(change):
    forward = Net.forward
    net, other = Net(), Net()
    guards = model_guard(net)
    for _ in range(3):
        assert guards.check((net,)) and guards.check((other,))
    evaluations = guards.counts()["evaluations"]
    assert guards.check((net,)) and guards.counts()["evaluations"] == evaluations
    try:
        change(net)
        assert not guards.check((net,))
        assert guards.explain((net,)) is not None
        if Net.forward is forward:
            assert guards.check((other,))
    finally:
        Net.forward = forward


QUIET = {
    "train again": lambda net: (net.eval(), net.train()),
    "hook added and removed": lambda net: net.fc.register_forward_hook(lambda *a: None).remove(),
    "load_state_dict": lambda net: net.load_state_dict(Net().state_dict()),
    "load_state_dict(assign)": lambda net: net.load_state_dict({k: v.clone() for k, v in net.state_dict().items()}, assign=True),
    "a step": lambda net: [p.data.add_(1) for p in net.parameters()],
    "backward": lambda net: net(torch.ones(2, 3)).sum().backward(),
    "attribute": lambda net: setattr(net, "note", 1),
}


@pytest.mark.parametrize("change", QUIET.values(), ids=QUIET)
def test_model_is_as_it_was(change):
    net = Net()
    guards = model_guard(net)
    assert guards.check((net,))
    for _ in range(3):
        change(net)
        assert guards.check((net,)), guards.explain((net,))
        assert all(a is b for a, b in zip(guards.values(), wanted_of(net), strict=True))


def wanted_of(net):
    """Parameters and buffers in the order in which guard_module wants them."""
    tensors = [t for kind in (net._parameters, net._buffers) for t in kind.values() if t is not None]
    return tensors + [t for child in net._modules.values() for t in wanted_of(child)]


def test_a_replaced_parameter_is_served():
    net = Net()
    guards = model_guard(net)
    assert guards.check((net,))
    net.fc.weight = nn.Parameter(torch.zeros(3, 3))
    assert guards.check((net,)) and any(v is net.fc.weight for v in guards.values())


def test_models_are_not_kept_alive():
    net = Net()
    b = Builder()
    self = b.slot(0)
    guard_module(b, self, net)
    b.row("Identity", self, net)
    guards = b.build()
    del b
    assert guards.check((net,)) and guards.check((net,)) and not guards.dead()
    references = [weakref.ref(net), weakref.ref(net.fc), weakref.ref(net.fc.weight)]
    del net
    gc.collect()
    assert [r() for r in references] == [None, None, None] and guards.dead()
    assert not guards.check((Net(),))


@pytest.mark.parametrize(
    "value, others",
    [
        (torch.float32, (torch.float64, "torch.float32")),
        (torch.device("cpu"), (torch.device("cpu", 0), torch.device("meta"), "cpu")),
        (torch.device("cuda", 1), (torch.device("cuda", 0), torch.device("cuda"))),
        (torch.strided, (torch.sparse_coo,)),
        (torch.channels_last, (torch.contiguous_format,)),
        (torch.Size((2, 3)), ((2, 3), torch.Size((2, 4)), torch.Size((2,)))),
    ],
    ids=str,
)
def test_torch_values(value, others):
    b = Builder()
    b.row("Value", b.slot(0), value)
    guards = b.build()
    same = torch.device(str(value)) if isinstance(value, torch.device) else torch.Size(value) if isinstance(value, torch.Size) else value
    assert guards.check((same,))
    assert not any(guards.check((other,)) for other in others)


def test_storages():
    base, other = torch.ones(8), torch.ones(8)
    for kind, expected in (("Disjoint", False), ("SharedStorage", True)):
        b = Builder(("x", "y"))
        x, y = b.slot(0), b.slot(1)
        b.row(kind, x, None, y)
        guards = b.build()
        assert guards.check((base[:4], base[4:])) == expected
        assert guards.check((base, base)) == expected
        assert guards.check((base, other)) != expected
        assert not guards.check((base, 5)) and not guards.check((base, NULL))
        assert guards.explain((base, 5))[0] == kind


def test_attributes_of_tensors():
    p = nn.Parameter(torch.ones(2))
    b = Builder()
    x = b.slot(0)
    b.row("Type", x, nn.Parameter)
    b.row("Value", b.source("Attr", x, "dtype"), torch.float32)
    grad = b.source("Attr", x, "grad")
    b.row("Type", grad, torch.Tensor)
    b.wanted.append(grad)
    guards = b.build()
    assert not guards.check((p,))
    p.grad = torch.zeros(2)
    assert guards.check((p,)) and guards.values()[0] is p.grad
    guards.release()
    reference = weakref.ref(p.grad)
    p.grad = None
    assert reference() is None, "a gradient that was read is not kept"
    assert not guards.check((p,))


def test_tensors_in_containers():
    b = Builder(("batch", "rest"))
    batch, rest = b.slot(0), b.slot(1)
    b.row("Keys", batch, ("ids", "mask"))
    for leaf in (b.item(batch, "ids"), b.item(batch, "mask"), b.at(rest, 1)):
        b.row("Tensor", leaf, X)
        b.wanted.append(leaf)
    guards = b.build()

    def fresh(**changed):
        return ({"ids": X.clone(), "mask": X.clone(), **changed}, (1, X.clone()))

    for _ in range(5):
        slots = fresh()
        assert guards.check(slots)
        assert all(a is b for a, b in zip(guards.values(), (slots[0]["ids"], slots[0]["mask"], slots[1][1]), strict=True))
    assert guards.counts()["evaluations"] == 0, "containers of a call are read, not armed"
    assert not guards.check(fresh(mask=torch.ones(2)))
    assert not guards.check(fresh(more=1))
