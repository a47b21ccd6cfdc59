"""Every call of a compiled function as eager: results, exceptions and the input afterwards."""
import pytest

torch = pytest.importorskip("torch")
import framejit  # noqa: E402


def outcome(function, *args):
    try:
        return str(function(*args))
    except Exception as error:  # noqa: BLE001
        return repr(error)


def compare(make, numbers=(0, 1, 1, 2, 0, 2, 1, 3)):
    """Every call of make()'s function as eager."""
    eager, compiled = make(), framejit.compile(make(), wait=True)
    with torch.no_grad():
        for n in numbers:
            x, y = torch.ones(2), torch.ones(2)
            assert (outcome(compiled, x, n), x.tolist()) == (outcome(eager, y, n), y.tolist())
    return compiled
