"""Shape arithmetic of the ATen rules on random shapes and arguments: what eager accepts must come out equal, element by element."""
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from test_ops import call, framejit_c, overload

SETTINGS = settings(max_examples=80, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def tensors(draw, min_dims=0, max_dims=4):
    """i64 tensors that count, so that an element says where it was read; sometimes with strides of their own."""
    shape = draw(st.lists(st.integers(0, 5), min_size=min_dims, max_size=max_dims))
    size = 1
    for extent in shape:
        size *= extent
    x = torch.arange(size).reshape(shape)
    order = draw(st.permutations(range(len(shape))))
    return x.permute(tuple(order)) if draw(st.booleans()) else x


def dims(x):
    return st.integers(-x.dim(), max(x.dim() - 1, 0)) if x.dim() else st.sampled_from([0, -1])


def check(name, *args):
    try:
        want = call(overload(name), args)
    except Exception:  # noqa: BLE001 - eager rejects it
        return
    want = [want] if isinstance(want, torch.Tensor) else list(want)
    got = framejit_c._lower_and_run("aten::" + name, args, want, True)
    if got is None:
        return
    for g, w in zip(got, want, strict=True):
        assert g.dtype == w.dtype and torch.equal(g, w), (name, [a.shape if isinstance(a, torch.Tensor) else a for a in args])


@SETTINGS
@given(st.data())
def test_slices(data):
    x = data.draw(tensors(min_dims=1))
    bound = st.one_of(st.none(), st.integers(-7, 7))
    d = data.draw(dims(x))
    start, end, step = data.draw(bound), data.draw(bound), data.draw(st.integers(1, 3))
    check("slice.Tensor", x, d, start, end, step)
    part = x[(slice(None),) * (d % x.dim()) + (slice(start, end, step),)]
    check("slice_scatter", x, -part, d, start, end, step)


@SETTINGS
@given(st.data())
def test_views(data):
    x = data.draw(tensors())
    shapes = [s for s in ([x.numel()], [1, x.numel()], [x.numel(), 1], list(x.shape[::-1]), [-1, *x.shape[-1:]], [2, -1], [-1, 3])]
    check("_unsafe_view", x.contiguous(), data.draw(st.sampled_from(shapes)))
    check("unsqueeze", x, data.draw(st.integers(-x.dim() - 1, x.dim())))
    check("squeeze.dim", x, data.draw(dims(x)))
    check("transpose.int", x, data.draw(dims(x)), data.draw(dims(x)))
    check("permute", x, data.draw(st.permutations(range(x.dim()))))
    check("select.int", x, data.draw(dims(x)), data.draw(st.integers(-5, 4)))
    check("diagonal", x, data.draw(st.integers(-3, 3)), data.draw(dims(x)), data.draw(dims(x)))
    check("unfold", x, data.draw(dims(x)), data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3)))
    check("unbind.int", x, data.draw(dims(x)))
    check("split.Tensor", x, data.draw(st.integers(1, 4)), data.draw(dims(x)))


@SETTINGS
@given(st.data())
def test_moves(data):
    x = data.draw(tensors(min_dims=1))
    some = data.draw(st.lists(dims(x), min_size=1, max_size=3))
    check("flip", x, some)
    check("roll", x, [data.draw(st.integers(-7, 7)) for _ in some], some)
    check("roll", x, [data.draw(st.integers(-7, 7))], [])
    check("repeat", x, [data.draw(st.integers(0, 3)) for _ in range(x.dim() + data.draw(st.integers(0, 1)))])
    check("constant_pad_nd", x, data.draw(st.lists(st.integers(-2, 3), min_size=2, max_size=2 * x.dim()).filter(lambda p: len(p) % 2 == 0)), 7)
    check("tril", x, data.draw(st.integers(-4, 4)))
    check("triu", x, data.draw(st.integers(-4, 4)))
    check("expand", x, [data.draw(st.sampled_from([2, 3])), *x.shape], False)


@SETTINGS
@given(st.data())
def test_joins(data):
    x = data.draw(tensors(min_dims=1))
    d = data.draw(dims(x))
    parts = [x]
    for _ in range(data.draw(st.integers(0, 3))):
        shape = list(x.shape)
        shape[d] = data.draw(st.integers(0, 4))
        parts.append(torch.arange(torch.Size(shape).numel()).reshape(shape) + 1000 * len(parts))
    check("cat", parts, d)
    check("stack", [x + 100 * k for k in range(data.draw(st.integers(1, 4)))], data.draw(st.integers(-x.dim() - 1, x.dim())))


@SETTINGS
@given(st.data())
def test_reductions(data):
    x = data.draw(tensors())
    some = data.draw(st.lists(dims(x), max_size=3, unique_by=lambda d: d % max(x.dim(), 1)))
    keep = data.draw(st.booleans())
    check("sum.dim_IntList", x, some, keep, None)
    check("amax", x, some, keep)
    check("any.dims", x, some, keep)
    check("argmax", -(x % 3), data.draw(st.one_of(st.none(), dims(x))), keep)
    check("min.dim", x % 3, data.draw(dims(x)), keep)
    check("cumsum", x, data.draw(dims(x)), None)


@SETTINGS
@given(st.data())
def test_indexing(data):
    x = data.draw(tensors(min_dims=1))
    d = data.draw(dims(x))

    def index(shape, below):
        return torch.tensor([data.draw(st.integers(-below, below - 1)) for _ in range(torch.Size(shape).numel())], dtype=torch.int64).reshape(shape)

    if x.numel() == 0:
        return
    shape = data.draw(st.lists(st.integers(1, 3), max_size=2))
    first = data.draw(st.integers(0, x.dim() - 1))
    count = data.draw(st.integers(1, x.dim() - first))
    check("index.Tensor", x, [None] * first + [index(shape, x.shape[first + k]) for k in range(count)])
    check("index_select", x, d, index([data.draw(st.integers(1, 4))], x.shape[d]).abs() % x.shape[d])
    smaller = [max(1, extent - data.draw(st.integers(0, 1))) for extent in x.shape]
    check("gather", x, d, index(smaller, x.shape[d]).abs() % x.shape[d], False)


@pytest.mark.parametrize("end", [0, 1, 7, 40])
def test_ranges(end):
    for start in (-3, 0, 2):
        for step in (1, 3):
            check("arange.start_step", start, max(end, start), step, None, None, None, None)
