"""Programs that must be captured whole: right on every call, one region, no break; programs that must break, with the right reason; and
changes between calls that a compiled region has to notice."""
import collections
import functools
import inspect
import itertools
import logging
import weakref

import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F
from torch import nn

import framejit

X = torch.linspace(-2, 2, 32).reshape(4, 8)
GRID = torch.tensor([[1, 2, 3], [2, 2, 2]])
MASK = torch.tensor([1, 0, 1, 1])
ORDERED = collections.OrderedDict(a=X, b=X + 1)
SETTINGS = {"scale": 2.0, "flags": ["on", "off"], "pair": (X, 3)}


def engine_row(compiled):
    (row,) = framejit.report(compiled).functions
    return row


def leaves(value):
    if isinstance(value, dict):
        value = list(value.values())
    return [t for v in value for t in leaves(v)] if isinstance(value, (list, tuple)) else [value]


def same(got, want):
    got, want = leaves(got), leaves(want)
    assert len(got) == len(want)
    for a, b in zip(got, want):
        if isinstance(b, torch.Tensor):
            torch.testing.assert_close(a, b)
            assert a.stride() == b.stride()
        else:
            assert a == b and type(a) is type(b)


class Scale(nn.Module):
    factor = 3

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))
        self.extra = {"bias": nn.Parameter(torch.ones(8))}

    @property
    def gain(self):
        return self.factor / 2

    @functools.lru_cache(maxsize=3)
    def positions(self, n):
        return torch.arange(n).float()

    def forward(self, x, *, shift=1.0):
        for layer in self.layers:
            x = F.relu(layer(x)) + shift
        return x * self.gain + self.extra["bias"] + self.positions(x.shape[1])


class Times(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.kept = 3
        ctx.save_for_backward(a, b)
        return a * b + 1

    @staticmethod
    def backward(ctx, grad):
        return grad, grad


@functools.lru_cache(maxsize=8)
def table(n, dtype):
    return torch.arange(n, dtype=dtype)


def closure():
    factor, seen = 2.0, []

    def f(x):
        seen.append(1)
        return x * factor

    return f


def grids(grid, x):
    for t, h, w in grid.tolist():
        x = x * t + h * w
    return x


def segments(grid, x):
    lengths = torch.repeat_interleave(grid[:, 1] * grid[:, 2], grid[:, 0])
    return x.sum() * lengths.cumsum(0)


def generator(x):
    def halves(n):
        for i in range(n):
            yield x / (i + 1)

    return sum(halves(4))


def caught(x):
    try:
        raise ValueError(x.shape[0])
    except ValueError as e:
        return x * e.args[0]


def matched(x):
    match x.shape:
        case (4, n):
            return x + n
        case _:
            return x


def written(x):
    x = x.clone()
    x[1:3] += 2
    x.mul_(2)
    return x, x[0], x.t()


MODEL = Scale()
SIGNATURE = inspect.signature(segments)
REFS = [weakref.ref(X), weakref.ref(ORDERED["b"])]
WHOLE = {
    "closure": (closure(), X),
    "dict, list, tuple": (lambda x: x * SETTINGS["scale"] + len(SETTINGS["flags"]) + SETTINGS["pair"][0] * SETTINGS["pair"][1], X),
    "module": (MODEL.forward, X),
    "keyword": (lambda x: MODEL(x, shift=2.0), X),
    "unpacked arguments": (lambda x: MODEL(*[x], **{"shift": 0.5}), X),
    "signature": (lambda x: x * len(SIGNATURE.bind(x, x).arguments), X),
    "lru_cache": (lambda x: x * table(8, torch.float32), X),
    "lru_cache, keywords": (lambda x: x * table(n=8, dtype=torch.float32) + table(8, dtype=torch.float32), X),
    "lru_cache of a method": (lambda x: x + MODEL.positions(8), X),
    "weak references": (lambda x: sum(x * r() for r in REFS), X),
    "lstm": (nn.LSTM(8, 8, batch_first=True).forward, X[None]),
    "gru": (nn.GRU(8, 8, batch_first=True).forward, X[None]),
    "autograd function": (lambda x: Times.apply(x, x + 1) * 2, X),
    "enumerate of zip": (lambda x: sum(a * i * b for i, (a, b) in enumerate(zip([x, x + 1], [x * 2, x * 3]))), X),
    "enumerate of items": (lambda x: sum(v * i * x for i, (k, v) in enumerate(ORDERED.items())), X),
    "zip of zips": (lambda x: sum(a * b * c for (a, b), c in zip(zip([x, x], [x, x + 1]), [x, x])), X),
    "filtered items": (lambda x: {k: v * x for k, v in ORDERED.items() if k != "b"}, X),
    "reversed, map": (lambda x: list(map(lambda p: p * x, reversed([x, x + 1]))), X),
    "chain": (lambda x: sum(itertools.chain([x], (x + 1, x + 2))), X),
    "generator": (generator, X),
    "exception": (caught, X),
    "match": (matched, X),
    "writes to a copy": (written, X),
    "tolist of a small input": (grids, GRID, X),
    "repeat_interleave": (segments, GRID, X),
    "mask of a small input": (lambda m, x: x[m.bool()] * 2, MASK, X),
    "nonzero": (lambda m, x: x[m.nonzero()[:, 0]] * 2, MASK, X),
    "all()": (lambda m, x: x + 1 if m.all() else x * 2, MASK, X),
}


@pytest.mark.parametrize("name", WHOLE)
def test_captured_whole(name):
    function, *args = WHOLE[name]
    with torch.no_grad():
        want = function(*args)
        compiled = framejit.compile(function)
        for _ in range(4):
            same(compiled(*args), want)
    row = engine_row(compiled)
    assert not row["breaks"] and not row["eager"], (row["breaks"], row["eager"])
    assert len(row["regions"]) == 1
    assert row["calls"]["compiled"] >= 3


BREAKS = {
    "data": (lambda x: x * 2 if x.sum() > 100 else x + 1, X),
    "leak": (lambda x: x * float((x * 2).numpy().sum()), X),
    "dynamic_shape": (lambda x: x[x > 0] * 2, X),
    "asked": (lambda x: (framejit.graph_break(), x * 2)[1], X),
}


@pytest.mark.parametrize("code", BREAKS)
def test_breaks_are_named(code):
    function, x = BREAKS[code]
    with torch.no_grad():
        want = function(x)
        compiled = framejit.compile(function)
        for _ in range(4):
            same(compiled(x), want)
    assert code in {b["code"] for b in engine_row(compiled)["breaks"]}


def test_inference_mode_captures_as_no_grad_does():
    model = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.ReLU()).eval()
    with torch.inference_mode():
        want = model(X)
        framejit.compile(model)
        for _ in range(3):
            same(model(X), want)
    row = engine_row(model)
    assert not row["breaks"] and len(row["regions"]) == 1


def test_printing_a_tensor_is_one_break(capsys):
    def shows(x):
        print(x)
        return x * 2

    row = run_with(shows, (X,))
    assert [b["code"] for b in row["breaks"]] == ["effect"]
    assert capsys.readouterr().out.count("tensor(") == 8


def run_with(function, *calls):
    """Every call against eager, twice, in order and again backwards."""
    compiled = framejit.compile(function)
    with torch.no_grad():
        for args in [*calls, *calls[::-1]]:
            for _ in range(2):
                same(compiled(*args), function(*args))
    return engine_row(compiled)


def test_guarded_data_changes():
    others = [torch.tensor([[3, 2, 3], [1, 2, 2]]), torch.tensor([[3, 5, 3], [1, 2, 2]]), torch.tensor([[0, 5, 3], [1, 2, 2]])]
    for function in (grids, segments):
        run_with(function, (GRID, X), *[(g, X) for g in others])


def test_a_mask_that_changes_its_count():
    masks = [torch.tensor(m) for m in ([1, 0, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 1, 1])]
    run_with(lambda m, x: x[m.bool()] * 2, *[(m, X) for m in masks])


def test_a_cleared_cache():
    compiled = framejit.compile(lambda x: x * table(8, torch.float32))
    with torch.no_grad():
        for _ in range(3):
            same(compiled(X), X * torch.arange(8))
        table.cache_clear()
        for _ in range(3):
            same(compiled(X), X * torch.arange(8))
        table(8, torch.float32).mul_(2)  # the next call sees what the cache holds
        same(compiled(X), X * torch.arange(8) * 2)
    table.cache_clear()


def test_a_referent_that_dies_or_changes():
    class Holder:
        pass

    holder, value = Holder(), X + 1
    holder.ref = weakref.ref(value)

    def function(holder, x):
        t = holder.ref()
        return x if t is None else x * t

    compiled = framejit.compile(function)
    with torch.no_grad():
        for _ in range(3):
            same(compiled(holder, X), X * (X + 1))
        other = X + 5
        holder.ref = weakref.ref(other)
        same(compiled(holder, X), X * (X + 5))
        del other, value
        same(compiled(holder, X), X)


COMPREHENSIONS = {
    "list": lambda x, n: [x * int(x.sum() + i) for i in range(n)],
    "dict": lambda x, n: {i: x * int(x.sum() + i) for i in range(n)},
    "set": lambda x, n: sorted({int(x.sum() + i) * 2 for i in range(n)}),
    "display": lambda x, n: [x, *[x + i for i in range(n)], x * int(x.sum() + n), *(x - 1, x - 2), x * int(x.sum())],
    "dict display": lambda x, n: {"a": x, **{str(i): x + i for i in range(n)}, "b": x * int(x.sum()), **{"c": x}},
    "set display": lambda x, n: sorted({n, *range(n), int(x.sum()), *(7, 8)}),
    "nested": lambda x, n: [[x * int(x.sum() + i) for i in range(n)] + [x] for _ in range(2)],
    "iterator of tensors": lambda x, n: [row * int(row.sum()) for _, row in zip(range(n), x)],
}


@pytest.mark.parametrize("kind", COMPREHENSIONS)
def test_breaks_inside_a_display(kind):
    run_with(COMPREHENSIONS[kind], (X + 1, 3), (X + 1, 2), (X + 2, 4))


def test_reset_inside_a_compiled_function():
    @framejit.compile
    def function(x):
        framejit.reset()
        return x * 2

    with torch.no_grad():
        for _ in range(3):
            same(function(X), X * 2)


def test_class_attribute_changes():
    with torch.no_grad():
        compiled = framejit.compile(lambda x: MODEL(x))
        for factor in (3, 3, 4, 4, 3):
            Scale.factor = factor
            same(compiled(X), MODEL(X))
    Scale.factor = 3


def test_breaks_of_the_first_calls_do_not_cut_for_good():
    """A buffer made and a message logged on first use: after a few compiled calls one recording goes past those places."""

    class Lazy(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.uses = {}, []

        def prepare(self, x):
            if "scale" not in self.table:
                logging.getLogger("framejit.tests").debug("made %s", x.sum().item())
                self.table["scale"] = torch.ones(4) * x.abs().max().item()
            return self.table["scale"]

        def forward(self, x):
            y = x * 2
            y = y * self.prepare(x)
            return y.relu() + 1

    module = Lazy()
    compiled = framejit.compile(module, wait=True)
    with torch.no_grad():
        for _ in range(14):
            x = torch.randn(3, 4)
            got = compiled(x)
            same(got, (x * 2 * module.table["scale"]).relu() + 1)
    row = engine_row(compiled)
    assert len(row["regions"]) == 1 and not row["breaks"] and row["calls"]["compiled"] >= 10


def test_breaks_that_go_on_are_tried_once_more_only():
    def f(x):
        y = x * 2
        return y + y.sum().item()

    compiled = framejit.compile(f, wait=True)
    with torch.no_grad():
        for _ in range(40):
            x = torch.randn(3, 4)
            same(compiled(x), f(x))
    row = engine_row(compiled)
    assert row["calls"]["recorded"] == 1 and len(row["regions"]) == 2 and row["breaks"][0]["count"] == 2
