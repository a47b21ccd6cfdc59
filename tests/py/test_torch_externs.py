"""Operator schemas, and externs: every route gives what the overload gives in eager mode, bit for bit, with eager's errors and without leaks."""
import gc
import sys
import threading

import pytest

torch = pytest.importorskip("torch")
from framejit import _C  # noqa: E402

aten = torch.ops.aten
P = _C._placeholder


@pytest.fixture(autouse=True, scope="module")
def ready():
    _C._init_torch()


@pytest.fixture(autouse=True)
def same_start():
    torch.manual_seed(0)
    with torch.no_grad():
        yield


def rnd(*sizes, dtype=torch.float32):
    return torch.randn(*sizes).to(dtype)


def ints(high, *sizes):
    return torch.randint(high, sizes)


def templated(value, tensors):
    """Replaces tensors by placeholders, as the recorder does."""
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return P(len(tensors) - 1)
    if isinstance(value, (list, tuple)):
        return type(value)(templated(item, tensors) for item in value)
    return value


def make(overload, args, kwargs):
    tensors = []
    template = templated(tuple(args), tensors)
    keywords = {name: templated(value, tensors) for name, value in kwargs.items()}
    return _C._extern(overload, template, keywords), tuple(tensors)


def symbols_serve():
    """Without torch's symbols every extern takes its overload."""
    return _C._tensor_tier() <= 1


def flat(result):
    if isinstance(result, (list, tuple)):
        return [leaf for item in result for leaf in flat(item)]
    return [result if isinstance(result, torch.Tensor) else None]


def same_bits(a, b):
    if a is None or b is None:
        return a is b
    if (a.dtype, a.shape, a.stride(), a.storage_offset(), type(a)) != (b.dtype, b.shape, b.stride(), b.storage_offset(), type(b)):
        return False
    return torch.equal(a.contiguous().reshape(-1).view(torch.uint8), b.contiguous().reshape(-1).view(torch.uint8))


def clones(args):
    if isinstance(args, torch.Tensor):
        return args.clone(memory_format=torch.preserve_format)
    return type(args)(map(clones, args)) if isinstance(args, (list, tuple)) else args


CALLS = {
    # overload, args, kwargs, expected route (None: any)
    "mm": (aten.mm.default, lambda: (rnd(3, 4), rnd(4, 5)), {}, "shim"),
    "mm_transposed": (aten.mm.default, lambda: (rnd(4, 3).t(), rnd(5, 4).t()), {}, "shim"),
    "mm_strided": (aten.mm.default, lambda: (rnd(6, 8)[::2, ::2], rnd(4, 10)[:, ::2]), {}, "shim"),
    "mm_expanded": (aten.mm.default, lambda: (rnd(1, 4).expand(3, 4), rnd(4, 1).expand(4, 5)), {}, "shim"),
    "mm_empty": (aten.mm.default, lambda: (rnd(0, 4), rnd(4, 5)), {}, "shim"),
    "mm_empty_inner": (aten.mm.default, lambda: (rnd(3, 0), rnd(0, 5)), {}, "shim"),
    "mm_large": (aten.mm.default, lambda: (rnd(130, 200), rnd(200, 70)), {}, "shim"),
    "mm_f64": (aten.mm.default, lambda: (rnd(3, 4, dtype=torch.float64), rnd(4, 5, dtype=torch.float64)), {}, "shim"),
    "mm_bf16": (aten.mm.default, lambda: (rnd(30, 40, dtype=torch.bfloat16), rnd(40, 50, dtype=torch.bfloat16)), {}, "shim"),
    "mm_f16": (aten.mm.default, lambda: (rnd(30, 40, dtype=torch.float16), rnd(40, 50, dtype=torch.float16)), {}, "shim"),
    "mm_int": (aten.mm.default, lambda: (ints(9, 3, 4), ints(9, 4, 5)), {}, "builtin"),
    "mm_conj": (aten.mm.default, lambda: (torch.randn(3, 4, dtype=torch.complex64).conj(), torch.randn(4, 5, dtype=torch.complex64)), {}, None),
    "mm_neg": (aten.mm.default, lambda: (torch._neg_view(rnd(3, 4)), rnd(4, 5)), {}, None),
    "bmm": (aten.bmm.default, lambda: (rnd(2, 3, 4), rnd(2, 4, 5)), {}, "shim"),
    "bmm_permuted": (aten.bmm.default, lambda: (rnd(4, 2, 3).permute(1, 2, 0), rnd(5, 2, 4).permute(1, 2, 0)), {}, "shim"),
    "addmm": (aten.addmm.default, lambda: (rnd(5), rnd(3, 4), rnd(4, 5)), {}, "shim"),
    "addmm_matrix": (aten.addmm.default, lambda: (rnd(3, 5), rnd(3, 4), rnd(4, 5)), {}, "shim"),
    "addmm_scaled": (aten.addmm.default, lambda: (rnd(3, 1), rnd(3, 4), rnd(4, 5)), {"beta": 0.3, "alpha": 2}, "shim"),
    "addmm_beta0": (aten.addmm.default, lambda: (torch.full((5,), float("nan")), rnd(3, 4), rnd(4, 5)), {"beta": 0}, "shim"),
    "addmm_zero_dim": (aten.addmm.default, lambda: (torch.tensor(2.0), rnd(3, 4), rnd(4, 5)), {}, "shim"),
    "addmm_transposed": (aten.addmm.default, lambda: (rnd(5), rnd(3, 4), rnd(5, 4).t()), {}, "shim"),
    "baddbmm": (aten.baddbmm.default, lambda: (rnd(2, 3, 5), rnd(2, 3, 4), rnd(2, 4, 5)), {"beta": 0.5, "alpha": 0.25}, "shim"),
    "baddbmm_broadcast": (aten.baddbmm.default, lambda: (rnd(1, 1, 5), rnd(2, 3, 4), rnd(2, 4, 5)), {}, "shim"),
    "cat": (aten.cat.default, lambda: ([rnd(2, 3), rnd(4, 3)],), {}, "builtin"),
    "cat_dim": (aten.cat.default, lambda: ([rnd(2, 3), rnd(2, 1), rnd(2, 3)], -1), {}, "builtin"),
    "stack": (aten.stack.default, lambda: ([rnd(2), rnd(2)], 1), {}, None),
    "add": (aten.add.Tensor, lambda: (rnd(3, 4), rnd(4)), {"alpha": 2}, "builtin"),
    "add_number": (aten.add.Tensor, lambda: (rnd(3), 1), {}, "builtin"),
    "add_scalar": (aten.add.Scalar, lambda: (rnd(3), 1), {}, "overload"),
    "pow": (aten.pow.Tensor_Scalar, lambda: (rnd(3), 3), {}, "builtin"),
    "pow_number": (aten.pow.Scalar, lambda: (2.0, rnd(3)), {}, "builtin"),
    "where": (aten.where.self, lambda: (rnd(3) > 0, rnd(3), rnd(3)), {}, "builtin"),
    "clamp": (aten.clamp.default, lambda: (rnd(9), None, 0.5), {}, "builtin"),
    "layer_norm": (aten.native_layer_norm.default, lambda: (rnd(3, 4), [4], rnd(4), None, 1e-5), {}, "builtin"),
    "batch_norm": (aten.native_batch_norm.default, lambda: (rnd(2, 3, 4), rnd(3), rnd(3), rnd(3), rnd(3).abs(), False, 0.1, 1e-5), {}, "overload"),
    "batch_norm_train": (aten.native_batch_norm.default, lambda: (rnd(2, 3, 4), rnd(3), rnd(3), rnd(3), rnd(3).abs(), True, 0.1, 1e-5), {}, "overload"),
    "softmax": (aten._softmax.default, lambda: (rnd(3, 4), -1, False), {}, "builtin"),
    "conv": (aten.convolution.default, lambda: (rnd(1, 3, 8, 8), rnd(2, 3, 3, 3), None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1), {}, "builtin"),
    "conv_transposed": (aten.convolution.default, lambda: (rnd(1, 3, 8, 8), rnd(3, 2, 3, 3), rnd(2), [2, 2], [1, 1], [1, 1], True, [1, 1], 1), {}, "builtin"),
    "conv_backward": (
        aten.convolution_backward.default,
        lambda: (rnd(1, 2, 8, 8), rnd(1, 3, 8, 8), rnd(2, 3, 3, 3), None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [False, True, False]),
        {},
        None,
    ),
    "embedding": (aten.embedding.default, lambda: (rnd(10, 4), ints(10, 3)), {}, "builtin"),
    "topk": (aten.topk.default, lambda: (rnd(3, 8), 2), {}, "builtin"),
    "max_dim": (aten.max.dim, lambda: (rnd(3, 8), 1), {}, "builtin"),
    "gather": (aten.gather.default, lambda: (rnd(3, 4), 1, ints(4, 3, 2)), {}, "builtin"),
    "index": (aten.index.Tensor, lambda: (rnd(3, 4), [ints(3, 2), None]), {}, "overload"),
    "index_put": (aten.index_put.default, lambda: (rnd(3, 4), [ints(3, 2)], rnd(4)), {}, None),
    "scatter": (aten.scatter.value, lambda: (rnd(3, 4), 0, ints(3, 2, 2), 2), {}, "builtin"),
    "sum": (aten.sum.dim_IntList, lambda: (rnd(3, 4), [1], True), {}, "builtin"),
    "sum_dtype": (aten.sum.default, lambda: (rnd(3, 4),), {"dtype": torch.float64}, "builtin"),
    "max_pool": (aten.max_pool2d_with_indices.default, lambda: (rnd(1, 2, 8, 8), [2, 2], [2, 2]), {}, "builtin"),
    "gelu": (aten.gelu.default, lambda: (rnd(3, 4),), {"approximate": "tanh"}, "builtin"),
    "attention": (aten._scaled_dot_product_flash_attention_for_cpu.default, lambda: (rnd(1, 2, 4, 8), rnd(1, 2, 4, 8), rnd(1, 2, 4, 8)), {}, None),
    "to_copy": (aten._to_copy.default, lambda: (rnd(3),), {"dtype": torch.float64, "memory_format": torch.preserve_format}, None),
    "clone": (aten.clone.default, lambda: (rnd(3, 4).t(),), {"memory_format": torch.contiguous_format}, "builtin"),
    "empty_like_filled": (aten.full_like.default, lambda: (rnd(3), 2), {"pin_memory": False}, None),
    "arange": (aten.arange.start_step, lambda: (0, 9, 2), {"dtype": torch.int64, "device": torch.device("cpu"), "pin_memory": False}, None),
    "zeros": (aten.zeros.default, lambda: ([2, 3],), {"device": torch.device("cpu"), "pin_memory": False}, None),
    "norm": (aten.linalg_vector_norm.default, lambda: (rnd(3, 4),), {}, "builtin"),
    "fft": (aten._fft_r2c.default, lambda: (rnd(3, 4), [1], 0, True), {}, "builtin"),
    "sort": (aten.sort.default, lambda: (rnd(3, 8),), {}, "builtin"),
    "frexp": (aten.frexp.Tensor, lambda: (rnd(8),), {}, "builtin"),
    "upsample": (aten.upsample_nearest2d.default, lambda: (rnd(1, 2, 4, 4), [8, 8]), {}, "builtin"),
    "erfinv": (aten.special_i1.default, lambda: (rnd(8),), {}, "builtin"),
    "rsub": (aten.rsub.Scalar, lambda: (rnd(3), 1), {}, None),
    "item": (aten._local_scalar_dense.default, lambda: (torch.tensor(3.0),), {}, None),
    "foreach": (aten._foreach_add.Scalar, lambda: ([rnd(2), rnd(3)], 1), {}, None),
    "view": (aten.view.default, lambda: (rnd(3, 4), [12]), {}, "builtin"),
    "split": (aten.split.Tensor, lambda: (rnd(6, 2), 4), {}, "builtin"),
    "expand": (aten.expand.default, lambda: (rnd(1, 2), [3, 2]), {}, "builtin"),
    "slice": (aten.slice.Tensor, lambda: (rnd(8), 0, 1, 9223372036854775807, 2), {}, None),
    "detach": (aten.detach.default, lambda: (rnd(8),), {}, "builtin"),
    "dropout": (aten.native_dropout.default, lambda: (rnd(50), 0.5, True), {}, "overload"),
    "bernoulli": (aten.bernoulli.p, lambda: (rnd(50), 0.3), {"generator": None}, "overload"),
    "add_": (aten.add_.Tensor, lambda: (rnd(3), rnd(3)), {"alpha": 3}, "overload"),
    "copy_": (aten.copy_.default, lambda: (rnd(3), rnd(3)), {}, "overload"),
    "index_put_": (aten.index_put_.default, lambda: (rnd(3, 4), [ints(3, 2)], rnd(4), True), {}, "overload"),
    "add_out": (aten.add.out, lambda: (rnd(3), rnd(3)), {"out": torch.empty(3)}, "overload"),
    "foreach_": (aten._foreach_mul_.Scalar, lambda: ([rnd(2), rnd(3)], 2.0), {}, "overload"),
}
WHOLE_OP = {"attention"}   # its result holds numbers besides tensors


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("name", CALLS)
def test_extern_is_eager(name, mode):
    overload, args_of, kwargs, route = CALLS[name]
    with mode():
        args = args_of()
        ours, theirs = clones(args), clones(args)
        our_kwargs, their_kwargs = ({k: clones(v) for k, v in kwargs.items()} for _ in range(2))
        for call in range(3):   # the first call proves the builtin
            extern, tensors = (make(overload, ours, our_kwargs)) if call == 0 else (extern, tensors)
            torch.manual_seed(call)
            want = flat(overload(*theirs, **their_kwargs))
            torch.manual_seed(call)
            got = _C._extern_call(extern, tensors)
            assert len(got) == len(want)
            assert all(map(same_bits, got, want)), (got, want)
            assert all(map(same_bits, flat(ours) + flat(list(our_kwargs.values())), flat(theirs) + flat(list(their_kwargs.values()))))
            inputs = flat(list(theirs) + list(their_kwargs.values()))
            our_inputs = flat(list(ours) + list(our_kwargs.values()))
            for mine, eager in zip(got, want):   # the same results are the same objects, or views of the same inputs
                assert [mine is i for i in our_inputs if i is not None] == [eager is i for i in inputs if i is not None]
                if mine is not None:
                    assert [shares(mine, i) for i in our_inputs] == [shares(eager, i) for i in inputs]
                    assert mine.is_inference() == eager.is_inference() and not mine.requires_grad
        if route is not None and symbols_serve():
            assert _C._extern_route(extern) == route


def shares(a, b):
    return b is not None and a.untyped_storage()._cdata == b.untyped_storage()._cdata


@pytest.mark.parametrize("name", ["mm", "addmm", "bmm", "baddbmm", "conv", "cat"])
def test_other_tensors_other_shapes(name):
    """A template serves any tensors: what was proven for the first ones must hold for the next."""
    overload, args_of, kwargs, _ = CALLS[name]
    extern, first = make(overload, args_of(), kwargs)
    _C._extern_call(extern, first)
    for dtype in (torch.float64, torch.bfloat16, torch.float32):
        tensors = tuple(t.to(dtype) * 2 for t in first)
        rebuilt, seen = args_of(), iter(tensors)
        args = [[next(seen) for _ in a] if isinstance(a, list) and isinstance(a[0], torch.Tensor) else next(seen) if isinstance(a, torch.Tensor) else a for a in rebuilt]
        assert all(map(same_bits, _C._extern_call(extern, tensors), flat(overload(*args, **kwargs))))
    larger = {"mm": (rnd(7, 2), rnd(2, 9)), "bmm": (rnd(5, 2, 3), rnd(5, 3, 1))}.get(name)
    if larger:
        assert same_bits(_C._extern_call(extern, larger)[0], overload(*larger))


BAD = {
    "mm": (aten.mm.default, lambda: (rnd(3, 4), rnd(5, 6))),
    "mm_dtypes": (aten.mm.default, lambda: (rnd(3, 4), rnd(4, 6).double())),
    "mm_rank": (aten.mm.default, lambda: (rnd(3), rnd(3, 4))),
    "addmm_bias": (aten.addmm.default, lambda: (rnd(7), rnd(3, 4), rnd(4, 5))),
    "bmm": (aten.bmm.default, lambda: (rnd(2, 3, 4), rnd(3, 4, 5))),
    "cat": (aten.cat.default, lambda: ([rnd(2, 3), rnd(4, 5)],)),
    "view": (aten.view.default, lambda: (rnd(3, 4), [5])),
    "embedding": (aten.embedding.default, lambda: (rnd(3, 4), torch.tensor([7]))),
    "types": (aten.relu.default, lambda: (3,)),
    "too_many": (aten.relu.default, lambda: (rnd(3), 1, 2)),
}


@pytest.mark.parametrize("name", BAD)
def test_errors_are_eagers(name):
    overload, args_of = BAD[name]
    args = args_of()
    with pytest.raises(Exception) as eager:
        overload._op(*args)
    extern, tensors = make(overload, args, {})
    counts = [sys.getrefcount(t) for t in tensors]
    for _ in range(20):
        with pytest.raises(type(eager.value)) as ours:
            _C._extern_call(extern, tensors)
        assert str(ours.value) == str(eager.value)
    del ours
    assert [sys.getrefcount(t) for t in tensors] == counts


def test_an_error_does_not_spoil_the_next_call():
    extern, tensors = make(aten.cat.default, ([rnd(2, 3), rnd(4, 5)],), {})
    with pytest.raises(RuntimeError):
        _C._extern_call(extern, tensors)
    good = (rnd(2, 3), rnd(4, 3))
    assert same_bits(_C._extern_call(extern, good)[0], torch.cat(good))


def test_gradients_are_recorded_when_on():
    a, b = rnd(3, 4).requires_grad_(), rnd(4, 5)
    extern, tensors = make(aten.mm.default, (a, b), {})
    assert _C._extern_call(extern, tensors)[0].grad_fn is None
    assert _C._extern_route(extern) == ("shim" if symbols_serve() else "overload")
    with torch.enable_grad():
        (out,) = _C._extern_call(extern, tensors)
    assert out.requires_grad and _C._extern_route(extern) != "shim"


def test_autocast_does_not_touch_externs():
    a, b = rnd(3, 4), rnd(4, 5)
    for overload, args in [(aten.mm.default, (a, b)), (aten.matmul.default, (a, b)), (aten.cat.default, ([a, a.bfloat16()],))]:
        extern, tensors = make(overload, args, {})
        want = overload(*args)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert same_bits(_C._extern_call(extern, tensors)[0], want)
            assert torch.mm(a, b).dtype == torch.bfloat16   # autocast is back
    with torch.autocast("cpu", dtype=torch.bfloat16), pytest.raises(RuntimeError):
        _C._extern_call(make(aten.mm.default, (a, a), {})[0], (a, a))


def test_modes_see_externs():
    from torch.utils._python_dispatch import TorchDispatchMode

    class Log(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.seen = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.seen.append(func)
            return func(*args, **(kwargs or {}))

    for name in ("mm", "cat"):
        overload, args_of, kwargs, _ = CALLS[name]
        extern, tensors = make(overload, args_of(), kwargs)
        _C._extern_call(extern, tensors)
        with Log() as log:
            _C._extern_call(extern, tensors)
        assert log.seen == [overload]
    batched = torch.vmap(lambda x, y: _C._extern_call(make(aten.mm.default, (x, y), {})[0], (x, y))[0])(rnd(2, 3, 4), rnd(2, 4, 5))
    assert batched.shape == (2, 3, 5)


def test_subclasses_dispatch():
    class Logged(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    seen = []
    tensors = (rnd(2, 3).as_subclass(Logged), rnd(3, 2))
    (out,) = _C._extern_call(_C._extern(aten.mm.default, (P(0), P(1)), {}), tensors)
    assert type(out) is Logged and seen


def test_placeholders_may_repeat_and_nest():
    a, b = rnd(3, 3), rnd(3, 3)
    assert same_bits(_C._extern_call(_C._extern(aten.mm.default, (P(0), P(0)), {}), (a,))[0], a @ a)
    extern = _C._extern(aten.index_put.default, (P(1), (None, P(0)), P(2)), {})
    tensors = (torch.tensor([0, 2]), a, torch.tensor(1.0))
    assert same_bits(_C._extern_call(extern, tensors)[0], aten.index_put.default(a, (None, tensors[0]), tensors[2]))
    assert repr(P(7)) == "<tensor 7>"
    with pytest.raises(TypeError):
        type(P(0))()


def test_undefined_results_are_null():
    overload, args_of, kwargs, _ = CALLS["conv_backward"]
    extern, tensors = make(overload, args_of(), kwargs)
    got = _C._extern_call(extern, tensors)
    assert got[0] is None and got[1] is not None and got[2] is None


def test_threads_share_an_extern():
    extern, _ = make(aten.cat.default, ([rnd(1), rnd(1)],), {})
    inputs = [(torch.full((1000,), float(i)), torch.full((500,), float(-i))) for i in range(4)]
    wrong = []

    def work(i):
        for _ in range(300):
            (out,) = _C._extern_call(extern, inputs[i])
            if not torch.equal(out, torch.cat(inputs[i])):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("name", ["mm", "addmm_scaled", "cat", "index", "conv_backward", "add", "split", "add_", "layer_norm", "foreach"])
def test_externs_do_not_leak(name):
    overload, args_of, kwargs, _ = CALLS[name]
    args = args_of()
    extern, tensors = make(overload, args, kwargs)
    watched = [*tensors, None, torch.float64, *(a for a in args if isinstance(a, (float, list)))]

    def alive():
        gc.collect()
        return sum(isinstance(o, (torch.Tensor, list, tuple)) for o in gc.get_objects())

    for _ in range(10):
        _C._extern_call(extern, tensors)
    before = alive()
    counts = [sys.getrefcount(o) for o in watched if o is not None]
    for _ in range(1000):
        _C._extern_call(extern, tensors)
    assert [sys.getrefcount(o) for o in watched if o is not None] == counts
    assert alive() <= before + 5


def test_templates_are_freed():
    tensor, constant = rnd(2), [float(2**70)]
    count = sys.getrefcount(constant)
    for _ in range(100):
        _C._extern(aten._foreach_add.ScalarList, ([P(0)], constant), {})
    assert sys.getrefcount(constant) == count


# ---- schemas ----
def schema(overload):
    return _C._schema(overload)


def test_schema_names_and_arguments():
    assert schema(aten.relu.default)["name"] == "aten::relu"
    add = schema(aten.add.Tensor)
    assert add["name"] == "aten::add.Tensor"
    assert add["args"] == [("self", ..., False, False, False, -1), ("other", ..., False, False, False, -1), ("alpha", 1, True, False, False, -1)]


@pytest.mark.parametrize(
    "overload, returns, mutates, view",
    [
        (aten.add.Tensor, [-1], False, False),
        (aten.add_.Tensor, [0], True, False),
        (aten.add.out, [3], True, False),
        (aten.view.default, [0], False, True),
        (aten.split.Tensor, [0], False, True),
        (aten.unbind.int, [0], False, True),
        (aten.max.dim, [-1, -1], False, False),
        (aten.frexp.Tensor_out, [1, 2], True, False),
        (aten._foreach_add_.Scalar, [], True, False),
        (aten._foreach_add.ScalarList_out, [], True, False),
        (aten.set_.source_Tensor, [0], True, False),
        (aten.native_batch_norm.default, [-1, -1, -1], True, False),
    ],
)
def test_schema_aliases(overload, returns, mutates, view):
    got = schema(overload)
    assert (got["returns_alias"], got["mutates"], got["view"]) == (returns, mutates, view)


def test_schema_against_torch_for_every_operator():
    """Whatever torch's own flags say of an operator, ours must follow."""
    checked = 0
    for name in dir(aten):
        packet = getattr(aten, name)
        for overload_name in packet.overloads() if hasattr(packet, "overloads") else ():
            overload = getattr(packet, overload_name)
            if not torch._C._dispatch_has_kernel(overload.name()):   # TorchScript's operators on lists and numbers
                assert not schema(overload)["decomposes"]
                continue
            got, theirs = schema(overload), overload._schema
            written = [a.alias_info is not None and a.alias_info.is_write for a in theirs.arguments]
            hidden = [i for i, (ours, w) in enumerate(zip(got["args"], written)) if ours[3] and not w]
            assert not [i for i, (ours, w) in enumerate(zip(got["args"], written)) if w and not ours[3]]
            assert not hidden or "batch_norm" in got["name"]
            assert got["mutates"] == (theirs.is_mutable or bool(hidden))
            assert [a[0] for a in got["args"]] == [a.name for a in theirs.arguments]
            assert [a[2] for a in got["args"]] == [a.kwarg_only for a in theirs.arguments]
            for result, source in zip(theirs.returns, got["returns_alias"]):
                assert (result.alias_info is not None) == (source >= 0), (overload, got)
            checked += 1
    assert checked > 1500


@pytest.mark.parametrize("overload, flag, value", [
    (aten.bernoulli.default, "random", True), (aten.native_dropout.default, "random", True), (aten.relu.default, "random", False),
    (aten.linear.default, "decomposes", True), (aten.mm.default, "decomposes", False), (aten.native_batch_norm.default, "decomposes", False),
    (aten.nonzero.default, "data_dependent", True), (aten._local_scalar_dense.default, "data_dependent", True), (aten.mm.default, "data_dependent", False)])
def test_schema_flags(overload, flag, value):
    assert schema(overload)[flag] is value


def test_batch_norm_writes_its_statistics_when_training():
    args = schema(aten.native_batch_norm.default)["args"]
    training = [a[0] for a in args].index("training")
    assert [(a[0], a[5]) for a in args if a[3]] == [("running_mean", training), ("running_var", training)]


@pytest.mark.parametrize("thing", [3, torch.mm, aten.mm, torch.ops.higher_order.cond])
def test_what_is_no_overload(thing):
    with pytest.raises(TypeError, match="no operator overload"):
        schema(thing)
    with pytest.raises(TypeError, match="no operator overload"):
        _C._extern(thing, (), {})
