"""State that only C code, a generator or a special method reads: every call as eager, also after it has changed.

A row: the function, a maker of its arguments from a number, and the numbers of successive calls. Whether it compiles is not asked here; what
would be stale is.
"""

import collections
import contextvars
import functools
import itertools
import operator
import threading
import traceback
import types
import weakref

import pytest

torch = pytest.importorskip("torch")
import framejit  # noqa: E402


class K:
    def __init__(self, k):
        self.k = k

    def m(self, q):
        return q * self.k


class Compared(K):
    def __bool__(self):
        return self.k > 1

    def __contains__(self, v):
        return v == self.k

    def __eq__(self, o):
        return self.k == getattr(o, "k", o)

    def __lt__(self, o):
        return self.k < o.k

    def __index__(self):
        return self.k

    def __hash__(self):
        return 1


class Slotted:
    __slots__ = ("a",)


class Doubling(dict):
    def __setitem__(self, key, value):
        super().__setitem__(key, value * 3)

    def __getitem__(self, key):
        return super().__getitem__(key) * 2


CONFIG = [{"w": 1}, {"w": 2}]
VARIABLE = contextvars.ContextVar("VARIABLE")
LOCAL = threading.local()
HELD = K(5)
PROXY = weakref.proxy(HELD)
MODULES = torch.nn.ModuleList([torch.nn.Linear(2, 2)])
Name = types.SimpleNamespace


def scaled(s):
    return lambda q, *rest: q * s


def config(n):
    CONFIG[0]["w"] = n
    return ()


def variable(n):
    if n > 1:
        VARIABLE.set(n)
    return ()


def local(n):
    LOCAL.k = n
    return ()


def held(n):
    HELD.k = n
    return ()


def modules(n):
    MODULES[0].k = n
    return ()


def slot(n):
    s = Slotted()
    if n > 1:
        s.a = n
    return (s,)


def try_slot(x, o):
    try:
        return x * o.a
    except AttributeError:
        return x * 50


def one(n):
    return ([[n]],)


def obj(n):
    return (K(n),)


def compared(n):
    return (Compared(n),)


def pair(n):
    return (Compared(1), Compared(n))


READERS = {
    "tensor of lists": (lambda x, a: x * torch.tensor(a), lambda n: ([[n, 2]],)),
    "tensor of a list in a dict": (lambda x, d: x * torch.tensor(d["a"]), lambda n: ({"a": [[n, 1]]},)),
    "equal lists": (lambda x, a: x * (a == [[1]]), one),
    "list in list": (lambda x, a: x * ([1] in a), one),
    "sum of lists": (lambda x, a: x * len(sum(a, [])), lambda n: ([[1] * n],)),
    "map of len": (lambda x, a: x * sum(map(len, a)), lambda n: ([[1] * n],)),
    "unpacked zip": (lambda x, a: x * len(list(zip(*a))), lambda n: ([[1] * n],)),
    "str": (lambda x, a: x * len(str(a)), lambda n: ([[10**n]],)),
    "genexpr over globals": (lambda x: x * sum(c["w"] for c in CONFIG), config),
    "genexpr over objects": (lambda x, a: x * sum(o.k for o in a), lambda n: ([K(n)],)),
    "max over modules": (lambda x: x * max(m.k for m in MODULES), modules),
    "list of genexpr": (lambda x, a: x * list(o.k for o in a)[0], lambda n: ([K(n)],)),
    "any": (lambda x, a: x * any(o.k > 1 for o in a), lambda n: ([K(n)],)),
    "map of a lambda": (lambda x, a: x * list(map(lambda o: o.k, a))[0], lambda n: ([K(n)],)),
    "bool": (lambda x, a: x * (3 if a else 2), compared),
    "not": (lambda x, a: x * (not a), compared),
    "in object": (lambda x, a: x * (1 in a), compared),
    "object in": (lambda x, a: x * (a in [1]), compared),
    "index": (lambda x, a: x * [7, 8, 9, 10][a], compared),
    "object in objects": (lambda x, a, b: x * (a in [b]), pair),
    "count": (lambda x, a, b: x * [a].count(b), pair),
    "max of objects": (lambda x, a, b: x * max(a, b).k, pair),
    "closure of a callback": (lambda x, f: x * sum(map(f, [1, 2])), lambda n: (scaled(n),)),
    "key": (lambda x, f: x * sorted([1, 2], key=f)[0], lambda n: (scaled(1 if n == 1 else -1),)),
    "starmap": (lambda x, f: x * sum(itertools.starmap(f, [(1, 2)])), lambda n: (scaled(n),)),
    "method as a callback": (lambda x, o: x * sum(map(o.m, [1, 2])), obj),
    "dict.__getitem__ as a callback": (lambda x, d: x * sum(map(d.__getitem__, ["a"])), lambda n: ({"a": n},)),
    "empty slot": (lambda x, o: x * hasattr(o, "a"), slot),
    "empty slot raises": (try_slot, slot),
    "context variable with a default": (lambda x: x * VARIABLE.get(9), variable),
    "thread's own": (lambda x: x * LOCAL.k, local),
    "proxy": (lambda x: x * PROXY.k, held),
    "attrgetter": (lambda x, o: x * operator.attrgetter("a.b")(o), lambda n: (Name(a=Name(b=n)),)),
}


@pytest.mark.parametrize("name", READERS)
def test_what_others_read(name):
    function, arguments = READERS[name]
    compiled = framejit.compile(lambda *a: function(*a), wait=True)

    def calls():
        for n in (1, 1, 1, 2, 1, 3, 3):
            made = arguments(n)
            assert torch.equal(compiled(torch.ones(2), *made), function(torch.ones(2), *made)), n

    with torch.no_grad():
        contextvars.copy_context().run(calls)


def iand(s):
    s &= {1}


def isub(s):
    s -= {1}


def ixor(s):
    s ^= {1}


def imul(s):
    s *= 2


WRITERS = {
    "list.__iadd__": lambda a, d, s: a.__iadd__([3]),
    "iadd": lambda a, d, s: operator.iadd(a, [3]),
    "setitem": lambda a, d, s: operator.setitem(d, "a", 3),
    "delitem": lambda a, d, s: operator.delitem(d, "k"),
    "dict.__delitem__": lambda a, d, s: dict.__delitem__(d, "k"),
    "list.__delitem__": lambda a, d, s: a.__delitem__(0),
    "dict.__init__": lambda a, d, s: dict.__init__(d, z=1),
    "map of append": lambda a, d, s: list(map(a.append, [7])),
    "partial of append": lambda a, d, s: functools.partial(a.append, 7)(),
    "methodcaller": lambda a, d, s: operator.methodcaller("append", 7)(a),
    "map of pop": lambda a, d, s: list(map(d.pop, ["k"])),
    "reduce": lambda a, d, s: functools.reduce(operator.iadd, [[1]], a),
    "map of __setitem__": lambda a, d, s: list(map(d.__setitem__, ["q"], [1])),
    "set &=": lambda a, d, s: iand(s),
    "set -=": lambda a, d, s: isub(s),
    "set ^=": lambda a, d, s: ixor(s),
    "list *=": lambda a, d, s: imul(a),
    "dict of an object": lambda a, d, s: (setattr(HELD, "d", d), HELD.d.update(k=2), HELD.d["k"]),
}


@pytest.mark.parametrize("name", WRITERS)
def test_what_others_write(name):
    change = WRITERS[name]

    def function(x, a, d, s):
        change(a, d, s)
        return x * (len(a) + 10 * len(d) + 100 * len(s)) + d.get("k", 7)

    compiled = framejit.compile(function, wait=True)
    with torch.no_grad():
        for _ in range(4):
            mine, eagers = ([1], {"k": 1}, {1, 2}), ([1], {"k": 1}, {1, 2})
            assert torch.equal(compiled(torch.ones(2), *mine), function(torch.ones(2), *eagers))
            assert mine == eagers


SPECIAL = ["__len__", "__getitem__", "__mul__", "__rmul__", "__enter__", "__getattr__", "__call__", "__neg__", "__index__", "__bool__"]


def test_special_methods_replaced_on_the_class():
    def fresh():
        return type("A", (), {n: (lambda self, *a: 3) for n in SPECIAL} | {"__exit__": lambda self, *a: None})

    def function(x, o):
        with o as q:
            return x * len(o), x * o[0], x * (o * 1), x * (1 * o), x * q, x * o.zz, x * o(), x * -o, x * range(9)[o], x * bool(o)

    for name in SPECIAL:
        cls = fresh()
        cls.__bool__ = lambda self: True
        o, compiled = cls(), framejit.compile(function, wait=True)
        with torch.no_grad():
            for value in (3, 3, 4, 4):
                if value == 4:
                    setattr(cls, name, (lambda self: False) if name == "__bool__" else (lambda self, *a: 4))
                for a, b in zip(compiled(torch.ones(2), o), function(torch.ones(2), o)):
                    assert torch.equal(a, b), name


def test_the_closure_of_a_class_function():
    class A:
        pass

    class N(torch.nn.Module):
        pass

    module = N()
    compiled = framejit.compile(lambda x, o: module(x) * o.m(), wait=True)
    with torch.no_grad():
        for v in (3, 3, 4, 4):
            A.m, N.forward = (lambda v: lambda *a: v)(v), (lambda v: lambda self, x: x * v)(v)
            assert compiled(torch.ones(2), A()).tolist() == [v * v] * 2


def test_module_getattr_replaced_and_put_back():
    class A(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(2))

        def forward(self, x):
            return x * self.w

    compiled = framejit.compile(A(), wait=True)
    x = torch.ones(2)
    with torch.no_grad():
        assert [compiled(x).tolist() for _ in range(3)] == [[1, 1]] * 3
        A.__getattr__ = lambda self, n: torch.ones(2) * 5 if n == "w" else torch.nn.Module.__getattr__(self, n)
        assert [compiled(x).tolist() for _ in range(3)] == [[5, 5]] * 3
        del A.__getattr__
        assert [compiled(x).tolist() for _ in range(3)] == [[1, 1]] * 3


def test_a_method_put_on_tensor():
    compiled = framejit.compile(lambda x: x.sigmoid(), wait=True)
    with torch.no_grad():
        compiled(torch.ones(2)), compiled(torch.ones(2))
        torch.Tensor.sigmoid = lambda self: self * 1000
        try:
            assert compiled(torch.ones(2)).tolist() == [1000, 1000]
        finally:
            del torch.Tensor.sigmoid


def test_module_attribute_set_and_deleted_in_one_call():
    class A(torch.nn.Module):
        def forward(self, x):
            self.b = x * 2
            y = self.b + 1
            del self.b
            return y

    compiled = framejit.compile(A(), wait=True)
    with torch.no_grad():
        assert [compiled(torch.ones(2)).tolist() for _ in range(3)] == [[3, 3]] * 3


def test_tensor_setitem_by_name():
    def function(x, v):
        x.__setitem__(0, v)
        torch.Tensor.__setitem__(x, 1, x[0] + 1)
        return x + 1

    compiled = framejit.compile(function, wait=True)
    with torch.no_grad():
        for v in (2, 2, 7):
            mine, eagers = torch.arange(3.0), torch.arange(3.0)
            assert torch.equal(compiled(mine, v), function(eagers, v)) and torch.equal(mine, eagers)


def test_dict_subclasses_with_methods_in_python():
    def function(x, d):
        d["a"] = 1
        return x * d["a"]

    compiled = framejit.compile(function, wait=True)
    with torch.no_grad():
        for _ in range(3):
            assert torch.equal(compiled(torch.ones(2), Doubling()), function(torch.ones(2), Doubling()))


def test_a_result_made_in_inference_mode():
    def function(x):
        with torch.inference_mode():
            return x * 3

    compiled = framejit.compile(function, wait=True)
    with torch.no_grad():
        assert [compiled(torch.ones(2)).is_inference() for _ in range(3)] == [True] * 3


def draws_and_fails(x, i):
    r = torch.rand(3)
    return torch.embedding(x, i) + r + torch.rand(3)


def writes_a_part_and_fails(x, i):
    x[1:].zero_()
    return torch.embedding(x, i)


@pytest.mark.parametrize("function", [draws_and_fails, writes_a_part_and_fails])
def test_an_error_after_effects(function):
    """The random generator, the data and the frame in the traceback are eager's."""
    compiled = framejit.compile(function, wait=True)
    seen = []
    with torch.no_grad():
        for f in (function, compiled):
            torch.manual_seed(0)
            for i in (0, 0, 0, 9):
                x = torch.ones(5, 3)
                try:
                    seen.append(f(x, torch.tensor([i])))
                except IndexError as e:
                    frames = [line.name for line in traceback.extract_tb(e.__traceback__)]
            seen.append((str(frames), x, torch.rand(1)))
    torch.testing.assert_close(seen[:3], seen[4:7])
    assert seen[3][0] == seen[7][0] and torch.equal(seen[3][1], seen[7][1]) and torch.equal(seen[3][2], seen[7][2])


Pair = collections.namedtuple("Pair", "left right")
PAIRS = {"a": Pair(1, lambda x: x * 2)}


def wraps_inside(x):
    def inner(y):
        return y * 2

    @functools.wraps(inner)
    def outer(y):
        return inner(y) + 1

    return outer(x) * len(outer.__name__)


def wraps_a_builtin(x):
    @functools.wraps(torch.relu)
    def outer(y):
        return torch.relu(y)

    return outer(x)


def causal(batch, query, key):
    return (key <= query) & (batch >= 0)


def mask_by_vmap(x):
    mask, n = causal, torch.arange(x.shape[0])
    for dims in ((None, None, 0), (None, 0, None), (0, None, None)):
        mask = torch.vmap(mask, in_dims=dims, out_dims=0)
    return mask(torch.arange(2), n, n)


ONE_REGION = {
    "field of a named tuple": lambda x: PAIRS["a"].right(x) + PAIRS["a"].left,
    "wraps": wraps_inside,
    "wraps a builtin": wraps_a_builtin,
    "vmap": lambda x: torch.vmap(lambda row: (row * 2).sum() / row.shape[0])(x) + 1,
    "vmap of an operator": lambda x: torch.vmap(torch.dot)(x, x),
    "vmap of vmap": mask_by_vmap,
}


@pytest.mark.parametrize("name", ONE_REGION)
def test_one_region_that_is_recorded_once(name):
    function = ONE_REGION[name]
    compiled = framejit.compile(lambda x: function(x), wait=True)
    with torch.no_grad():
        for _ in range(4):
            x = torch.randn(3, 4)
            torch.testing.assert_close(compiled(x), function(x))
    row = framejit.report(compiled).functions[0]
    assert row["calls"] == {"total": 4, "recorded": 1, "eager": 0, "compiled": 3}
    assert len(row["regions"]) == 1 and not row["breaks"]
