"""Programs that were once not eager's: each runs several times with inputs that change, compared call by call with eager on state of its own.

A row of PROGRAMS makes a function (with its own state) and says which arguments the calls get.
"""
import collections
import sys
import warnings

import pytest

torch = pytest.importorskip("torch")
import framejit  # noqa: E402

X = lambda i: torch.arange(4.0) + i  # noqa: E731


def on_text(read):
    def make():
        def f(x):
            s = read(x)
            return x * 2, s
        return f
    return make, lambda i: (X(i),)


def dict_length(keys, new=dict):
    def make():
        d = new()

        def f(x, key):
            d[key] = 1
            return x * 0 + len(d)
        return f
    return make, lambda i: (X(i), keys[i % len(keys)])


def attributes():
    class Space:
        pass
    space = Space()

    def f(x, n):
        name = f"a{n}"
        if hasattr(space, name):
            delattr(space, name)
        else:
            setattr(space, name, 1)
        return x * 2, len(space.__dict__)
    return f


def order():
    d = collections.OrderedDict({0: 1, 1: 1, 2: 1})

    def f(x, n):
        d.move_to_end(n, last=False)
        framejit.graph_break()
        return x * 2, list(d)
    return f


def division(write):
    def make():
        def f(x, n):
            try:
                return write(x, n)
            except ZeroDivisionError:
                return x - 1000
        return f
    return make, lambda i: (X(i), (i // 2) % 3)


def unused(x, n):
    1 / n
    return x * 2


def rows_of(x):
    try:
        yield x
        yield x + 1
    finally:
        x.add_(1)


def dropped():
    def f(x):
        for _ in rows_of(x):
            break
        return x * 2
    return f


def kept():
    def f(x):
        rows = rows_of(x)
        next(rows)
        return x * 2, x
    return f


def let_go():
    def f(x):
        rows = rows_of(x)
        next(rows)
        y = x * 2
        del rows
        return y, x * 2
    return f


def unseen():
    def found(n):
        return any(v > n for v in range(5)) and next((v for v in enumerate(w for w in range(n + 2)) if v[0] > n), None)

    def f(x):
        for n in range(20):
            if found(n % 3):
                x = x + n
        return x * 2
    return f


class Doubles:
    def __init__(self, x):
        self.x = x

    def __del__(self):
        self.x.mul_(2)


def freed(how):
    def f(x):
        a = Doubles(x)
        b = x + 1
        if how == "del":
            del a
        elif how == "rebind":
            a = None
        return x, b, x + 1
    return lambda: f


def class_body():
    def f(x, n):
        class A:
            u = 5
            t = x * n
            framejit.graph_break()
            w = 7
        return A.u, A.w, A.t
    return f


def getattribute():
    class A:
        pass
    o = A()
    o.k = 8
    calls = []

    def f(x):
        return x * o.k

    def g(x):
        calls.append(1)
        if len(calls) == 5:
            A.__getattribute__ = lambda self, name: 9
        return f(x)
    return g


def version():
    def f(x):
        x.add_(1)
        return x * x._version
    return f


def complex_numbers(f):
    return lambda: f, lambda i: (torch.complex(X(i), X(2 * i) - 1).view(2, 2),)


def written(f):
    """Inputs that are zero in the first calls: what is read from them afterwards looks right whatever was read."""
    return lambda: f, lambda i: (X(i) * (i > 2), X(i + 3) * (i > 2))


def add_then_copy(x, y):
    v = x + y
    x.copy_(y)
    return v


def state(x, h):
    out = (x + h).abs() * 0.5
    h.copy_(x)
    return out


def where_then_zero(x, y):
    v = torch.where(x > 1, x, y)
    x.zero_()
    y.fill_(3)
    return v


BASE = lambda i: torch.arange(12.0) * (i > 2)  # noqa: E731

PROGRAMS = {
    "part of a str": on_text(lambda x: str(x)[8:]),
    "character of a str": on_text(lambda x: str(x)[8]),
    "byte of a bytes": on_text(lambda x: x.numpy().tobytes()[6:8]),
    "part of a format": on_text(lambda x: format(x.sum(), ".2f")[:1]),
    "item of a range": on_text(lambda x: range(int(x.sum()), 99)[2]),
    "dict length": dict_length([0, 1, 1, 2, 0, 2]),
    "dict length, str": dict_length(["a", "b", "b", "c"]),
    "dict length, tensors": dict_length([torch.ones(1), torch.ones(1), torch.ones(1)]),
    "dict length, objects": dict_length([object(), object()]),
    "ordered dict length": dict_length([object(), object()], collections.OrderedDict),
    "attributes that come and go": (attributes, lambda i: (X(i), i % 3)),
    "order of an OrderedDict": (order, lambda i: (X(i), (i * 7 + i // 3) % 3)),
    "division": division(lambda x, n: x + 1 / n),
    "floor division": division(lambda x, n: x + 7 // n),
    "remainder": division(lambda x, n: x + 7 % n),
    "power": division(lambda x, n: x + 0.0 ** (n - 1)),
    "quotient that is not used": division(unused),
    "generator dropped in a loop": (dropped, lambda i: (X(i),)),
    "generator kept": (kept, lambda i: (X(i),)),
    "generator let go": (let_go, lambda i: (X(i),)),
    "generators that end unseen": (unseen, lambda i: (X(i),)),
    "freed by del": (freed("del"), lambda i: (X(i),)),
    "freed by another value": (freed("rebind"), lambda i: (X(i),)),
    "freed at the end": (freed(""), lambda i: (X(i),)),
    "class body with a break": (class_body, lambda i: (X(i), i % 2)),
    "__getattribute__ set later": (getattribute, lambda i: (X(i),)),
    "_version": (version, lambda i: (X(i),)),
    "conj": complex_numbers(lambda a: a.conj()),
    "conj times": complex_numbers(lambda a: a * a.conj()),
    "adjoint": complex_numbers(lambda a: a.mH @ a),
    "conj real": complex_numbers(lambda a: (a.conj() * a).sum().real),
    "negative view": complex_numbers(lambda a: a.conj().imag + 1),
    "read, then written": written(add_then_copy),
    "state": written(state),
    "where, then written": written(where_then_zero),
    "as_strided before the view": (lambda: lambda a: a.as_strided((3,), (1,), 0) * 2, lambda i: (BASE(i)[4:],)),
    "as_strided of one element": (lambda: lambda a: a.as_strided((3,), (1,)) * 2, lambda i: (BASE(i)[4:5],)),
    "as_strided of a number": (lambda: lambda a: a.as_strided((3,), (1,)) * 2, lambda i: (BASE(i)[4],)),
    "as_strided, written": (lambda: lambda a: a.as_strided((3,), (1,)).add_(1) * 2, lambda i: (BASE(i)[4:5],)),
    "as_strided inside": (lambda: lambda a: a.as_strided((2, 2), (3, 1), 5) * 2, lambda i: (BASE(i)[4:],)),
    "cos of 0": (lambda: lambda a: (torch.cos(a).to(torch.int64), torch.cos(a) == 1), lambda i: (X(i) - i,)),
    "batch norm of -0.0": (lambda: lambda a: 1 / torch.batch_norm(a, None, None, torch.zeros(2), torch.ones(2), False, 0.1, 0, False),
                           lambda i: (torch.tensor([[-0.0, i]]),)),
    "jvp": (lambda: lambda a: torch.func.jvp(lambda x: x.sin() * 2, (a,), (torch.ones_like(a),)), lambda i: (X(i),)),
}


def outcome(function, arguments):
    try:
        return "result", function(*arguments), arguments
    except Exception as error:  # noqa: BLE001  compared
        return type(error), str(error), arguments


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_call_is_eagers(name):
    make, arguments = PROGRAMS[name]
    eager, compiled = make(), framejit.compile(make(), wait=True)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for i in range(12):
            want, got = outcome(eager, arguments(i)), outcome(compiled, arguments(i))
            assert str(want) == str(got), i


def test_operator_of_tensors_replaced():
    compiled = framejit.compile(lambda x: x + 1, wait=True)
    with torch.no_grad():
        for _ in range(3):
            compiled(torch.ones(1))
        old = torch.Tensor.__add__
        torch.Tensor.__add__ = lambda a, b: torch.Tensor.mul(a, 100)
        try:
            assert compiled(torch.ones(1)).item() == 100
        finally:
            torch.Tensor.__add__ = old
        assert compiled(torch.ones(1)).item() == 2


def test_a_handler_that_is_left_is_left():
    @framejit.compile(wait=True)
    def f(x):
        try:
            raise KeyError("a")
        except KeyError:
            framejit.graph_break()
            return x + 1

    with torch.no_grad():
        for _ in range(5):
            f(torch.ones(1))
            assert sys.exc_info()[1] is None
            with pytest.raises(ValueError) as caught:
                raise ValueError
            assert caught.value.__context__ is None


RAISES = {
    "written before and after": (lambda x, d: (x.mul_(2), (x * 3) // d, x.add_(5))[1], torch.int64),
    "masked before": (lambda x, d: (x.masked_fill_(x > 1, 0), x // d, x.zero_())[1], torch.int64),
    "another tensor after": (lambda x, d: (torch.where(d != 0, x, d) % d, x.logical_not_())[0], torch.int64),
    "index that nobody needs": (lambda x, d: (x.add_(1), x[d * 9 - 9].relu().sum(), x * 2)[2], torch.int64),
    "index": (lambda x, d: (x.add_(1), torch.index_put(x.relu(), (d * 9 - 9,), x[0]), x.mul_(2))[1], torch.int64),
}


@pytest.mark.parametrize("name", RAISES)
def test_inputs_after_an_operator_has_raised(name):
    function, dtype = RAISES[name]
    compiled = framejit.compile(lambda x, d: function(x, d), wait=True)
    good = lambda: (torch.arange(1, 5), torch.ones(4, dtype=dtype))  # noqa: E731
    bad = lambda: (torch.arange(1, 5), torch.tensor([1, 0, 1, 5], dtype=dtype))  # noqa: E731
    with torch.no_grad():
        for _ in range(3):
            compiled(*good())
        assert str(outcome(function, bad())) == str(outcome(compiled, bad()))


EXACT_ENOUGH = {
    "float32 then float64": lambda a: a.logsumexp(-1).double(),
    "bfloat16 then float64": lambda a: torch.nn.functional.gelu(a.bfloat16()).double(),
    "a new layer": lambda a: torch.nn.Linear(33, 3)(a),
    "memory of torch.empty": lambda a: torch.nn.init.trunc_normal_(torch.empty(33)) + a,
    "empty over a break": lambda a: (b := torch.empty(33), framejit.graph_break(), b.copy_(a[0]) * 2)[2],
}


@pytest.mark.parametrize("name", EXACT_ENOUGH)
def test_the_self_check_is_not_wrong(name):
    compiled = framejit.compile(lambda a: EXACT_ENOUGH[name](a), wait=True)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for _ in range(3):
            waste = [torch.full((33,), 1e30) * 1 for _ in range(30)]
            del waste
            compiled(torch.randn(7, 33))
    assert framejit.report(compiled).calls["compiled"]
