"""The self-check: a region's first compiled run is compared with what eager made, also where the region writes to its inputs or draws random numbers."""

import warnings

import pytest

torch = pytest.importorskip("torch")
import framejit  # noqa: E402
import torch.nn.functional as F  # noqa: E402


def regions(compiled):
    return [region for function in framejit.report(compiled).functions for region in function["regions"]]


def attend(cache, x, at):
    cache.index_copy_(0, at, x)
    return (cache * 2).sum(0)


WRITERS = {
    "add_": (lambda x: x.add_(1).sum(), [(4, 5)]),
    "part": (lambda x: (x[1:3].mul_(2), x.sum())[1], [(4, 5)]),
    "two inputs": (lambda x, y: (x.copy_(y), y.add_(x), x * y)[2], [(4, 5), (4, 5)]),
    "transposed": (lambda x: x.t().add_(1) + x.t(), [(4, 5)]),
    "zero_": (lambda x: x.zero_() + 1, [(4, 5)]),
    "extern": (lambda c, x: attend(c, x, torch.tensor([2])), [(4, 5), (1, 5)]),
    "dropout": (lambda x: F.dropout(x, 0.5, True) + 1, [(40, 5)]),
    "multinomial": (lambda x: torch.multinomial(x.softmax(-1), 2), [(40, 5)]),
    "uniform_": (lambda x: x.uniform_() * 2, [(40, 5)]),
}


@pytest.mark.parametrize("name", WRITERS)
def test_writers_and_random_regions_are_checked(name):
    function, shapes = WRITERS[name]
    compiled = framejit.compile(lambda *tensors: function(*tensors), wait=True)
    with torch.no_grad():
        for call in range(3):
            torch.manual_seed(call)
            mine = [torch.randn(*shape) for shape in shapes]
            eagers = [t.clone() for t in mine]
            torch.manual_seed(10)
            want = [function(*eagers), *eagers, torch.rand(2)]
            torch.manual_seed(10)
            got = [compiled(*mine), *mine, torch.rand(2)]
            for a, b in zip(want, got):
                torch.testing.assert_close(a, b)
    (region,) = regions(compiled)
    assert region["unchecked"] == "" and region["entries"] == 1


LIBRARY = torch.library.Library("framejit_self_check", "DEF")
LIBRARY.define("next(Tensor x) -> Tensor")
LIBRARY.define("bump_(Tensor(a!) x) -> ()")
calls = {"next": 0, "bump_": 0}


def _next(x):
    calls["next"] += 1
    return x + calls["next"]


def _bump(x):
    calls["bump_"] += 1
    x.add_(calls["bump_"])


LIBRARY.impl("next", _next, "CPU")
LIBRARY.impl("bump_", _bump, "CPU")


@pytest.mark.parametrize("operator", ["next", "bump_"])
def test_a_wrong_region_is_found_and_stays_eager(operator):
    """An operator that is another function every time stands for a bug of ours."""

    def f(x):
        made = getattr(torch.ops.framejit_self_check, operator)(x)
        return (x if made is None else made) * 2

    compiled = framejit.compile(f, wait=True)
    with torch.no_grad(), warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        start = torch.zeros(3)
        calls[operator] = 0
        out = compiled(start)
    assert torch.equal(out, torch.full((3,), 2.0)), "the first call is eager's"
    assert torch.equal(start, torch.full((3,), 1.0 if operator == "bump_" else 0.0)), "the check works on copies"
    assert any("gave a wrong result" in str(w.message) for w in seen)
    assert not regions(compiled)
    assert any("self-check failed" in e["why"] for function in framejit.report(compiled).functions for e in function["eager"])


def test_large_writes_are_not_copied():
    big = torch.zeros(70 << 20)
    compiled = framejit.compile(lambda x: x.add_(1)[:2] * 2, wait=True)
    with torch.no_grad():
        assert compiled(big).tolist() == [2, 2] and compiled(big).tolist() == [4, 4]
    (region,) = regions(compiled)
    assert "more than 256 MB" in region["unchecked"]
