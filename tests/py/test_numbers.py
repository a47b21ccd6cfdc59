"""Python's and numpy's numbers, dtypes and other values without identity: computed with, stored, and changed between calls."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import framejit  # noqa: E402


class State:
    pass


STATE = State()
CONSTANT = np.float64(2.0)


def converts(x):
    kinds = (STATE.dtype, STATE.n)
    return x.to(kinds[0])


def converts_by_name(x):
    options = {"dtype": STATE.dtype}
    return torch.ones(3, **options) + x.to(**options)


FUNCTIONS = {
    "sqrt": lambda x: x * np.sqrt(STATE.n),
    "left": lambda x: np.sqrt(STATE.n) * x,
    "returned": lambda x: (x + 1, np.sqrt(STATE.n)),
    "log": lambda x: x * -(np.log(float(STATE.n)) / (STATE.n - 1)),
    "integers": lambda x: x * np.lcm(STATE.n, 6),
    "branch": lambda x: x + 1 if np.power(2.0, STATE.n) > 20 else x - 1,
    "slice": lambda x: x[: int(np.ceil(STATE.n / 2))],
    "constructor": lambda x: x * np.float64(STATE.n),
    "item": lambda x: x * np.maximum(STATE.n, 3).item(),
    "attribute": lambda x: x * STATE.scale,
    "attribute decides": lambda x: x if STATE.scale > 1 else x * 2,
    "attribute slices": lambda x: x[: STATE.k],
    "global": lambda x: x * CONSTANT + STATE.n,
    "written": lambda x: (setattr(STATE, "made", STATE.scale * 2), x * STATE.made)[1],
    "dtype in a tuple": converts,
    "dtype in a dict": converts_by_name,
    "dtype in a list": lambda x: [t.to(d) for t, d in zip([x, x], [STATE.dtype, torch.float64])][0],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_without_identity(name):
    function = FUNCTIONS[name]
    compiled = framejit.compile(lambda x: function(x), wait=True)
    with torch.no_grad():
        for n in (4, 4, 5, 5, 4, 5):
            STATE.n, STATE.scale, STATE.k = n, np.float32(n - 3.5), np.int64(n - 3)
            STATE.dtype = torch.float16 if n == 4 else torch.bfloat16
            x = torch.randn(4 if "slice" in name else 3)
            want, made = function(x), getattr(STATE, "made", None)
            got = compiled(x)
            for a, b in zip(want if isinstance(want, tuple) else (want,), got if isinstance(got, tuple) else (got,)):
                assert type(a) is type(b)
                assert torch.equal(a, b) and a.dtype == b.dtype if torch.is_tensor(a) else a == b
            assert type(made) is type(getattr(STATE, "made", None)) and made == getattr(STATE, "made", None)
    row = framejit.report(compiled).functions[0]
    assert row["calls"]["compiled"] >= 2 and not row["breaks"]
