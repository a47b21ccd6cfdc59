"""A compiled function behaves as the function does, and binds arguments to the slots that a frame would have."""

import copy
import functools
import gc
import inspect
import pickle
import types
import typing
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framejit import _C


def compiled(function):
    return _C.make_callable(function, {})


def user(x: int, y: int = 2, *, z=3):
    "doc of user"
    return x, y, z


user.tag = 7
original = user
user = compiled(user)


class Net:
    @compiled
    def method(self, x, scale=1):
        return self, x, scale

    static = staticmethod(compiled(lambda x: x))
    of_class = classmethod(compiled(lambda cls, x: (cls, x)))
    prop = property(compiled(lambda self: self))

    def plain(self, x):
        return self, x

    def __reduce__(self):
        return "net"


net = Net()
net_plain = compiled(net.plain)


def test_attributes():
    assert (user.__name__, user.__qualname__, user.__doc__, user.__module__) == ("user", "user", "doc of user", __name__)
    assert user.tag == 7 and user.__wrapped__ is original
    assert user.__code__ is original.__code__ and user.__defaults__ == (2,) and user.__globals__ is globals()
    assert typing.get_type_hints(user) == {"x": int, "y": int}
    assert inspect.signature(user) == inspect.signature(original)
    assert inspect.unwrap(user) is original and inspect.getsource(user).startswith("def user")
    assert callable(user) and inspect.isroutine(user)
    assert "user" in repr(user) and repr(user).startswith("<framejit.compile of ")
    assert type(user).__name__ == "CompiledFunction" and type(user).__module__ == "framejit"


def test_attributes_can_be_set_and_are_its_own():
    f = compiled(lambda: 0)
    f.extra = 1
    f.__name__ = "renamed"
    assert f.extra == 1 and f.__name__ == "renamed"
    assert not hasattr(f.__wrapped__, "extra") and f.__wrapped__.__name__ == "<lambda>"
    with pytest.raises(AttributeError):
        f.missing


def test_calls():
    assert user(1) == (1, 2, 3)
    assert user(1, 5, z=4) == (1, 5, 4)
    assert user(y=1, x=2) == (2, 1, 3)
    assert user(*(1, 2), **{"z": 9}) == (1, 2, 9)
    assert functools.partial(user, 3)() == (3, 2, 3)


@pytest.mark.parametrize("args, kwargs", [((), {}), ((1, 2, 3), {}), ((1,), {"x": 2}), ((1,), {"q": 2}), ((1,), {"y": 1, "k": 2})])
def test_errors_are_the_functions_own(args, kwargs):
    with pytest.raises(TypeError) as expected:
        original(*args, **kwargs)
    with pytest.raises(TypeError) as got:
        user(*args, **kwargs)
    assert str(got.value) == str(expected.value)
    assert _C._bind(user, *args, **kwargs) is None


def test_an_exception_passes_through():
    @compiled
    def fails():
        raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        fails()


def test_binds_as_a_method():
    assert net.method(1) == (net, 1, 1) and Net.method(net, 1, scale=2) == (net, 1, 2)
    assert net.static(5) == 5 and net.of_class(5) == (Net, 5) and net.prop is net
    bound = net.method
    assert type(bound) is types.MethodType and bound.__self__ is net and bound.__func__ is Net.__dict__["method"]
    assert str(inspect.signature(bound)) == "(x, scale=1)"


def test_a_bound_method_as_target():
    assert net_plain(3) == (net, 3)
    assert str(inspect.signature(net_plain)) == "(x)"
    assert type(net_plain).__name__ == "CompiledMethod"

    class Holder:
        call = net_plain

    assert Holder().call(4) == (net, 4), "already bound: it does not bind again"
    assert _C._bind(net_plain, 5) == {"self": net, "x": 5}
    assert _C._bind(net_plain, 5, self=1) is None
    with pytest.raises(TypeError):
        net_plain(1, 2)


def test_pickle_copy_deepcopy():
    assert pickle.loads(pickle.dumps(user)) is user
    assert copy.copy(user) is user and copy.deepcopy([user])[0] is user
    assert pickle.loads(pickle.dumps(net_plain)) == net.plain
    assert {user: 1}[user] == 1 and user == user and user != original


def test_wraps_and_weakref():
    assert functools.wraps(user)(lambda *a: 0).__name__ == "user"
    f = compiled(lambda: 0)
    reference = weakref.ref(f)
    assert reference() is f
    del f
    assert reference() is None


def test_targets_that_are_no_python_functions():
    for target in (len, 5, functools.partial(original), Net, net.method, [].append):
        with pytest.raises(TypeError, match="compiles Python functions"):
            compiled(target)
    with pytest.raises(TypeError):
        type(user)()


def test_collected_in_a_cycle():
    def make():
        def f():
            return g

        g = compiled(f)
        g.me = g
        return weakref.ref(f), weakref.ref(g)

    references = make()
    gc.collect()
    assert [r() for r in references] == [None, None]


def test_no_reference_leaks():
    import sys

    @compiled
    def f(a, b=1, *rest, c=2, **named):
        return a

    value = object()
    before = sys.getrefcount(value), sys.getrefcount(f.__wrapped__), sys.getrefcount(f)
    for _ in range(100):
        f(value)
        f(value, value, value, value, c=value, d=value)
        _C._bind(f, value, value, value, c=value, d=value)
        _C._bind(f, value, value, value, a=value)
        f.__code__, f.__name__, repr(f)
    assert (sys.getrefcount(value), sys.getrefcount(f.__wrapped__), sys.getrefcount(f)) == before


def test_another_code_is_run_as_it_is():
    def f(a):
        return a

    g = compiled(f)
    f.__code__ = (lambda a, b: (a, b)).__code__
    assert g(1, 2) == (1, 2)


def test_changed_defaults():
    def f(a, b=1, *, c=2):
        return a, b, c

    g = compiled(f)
    f.__defaults__ = (5, 6)
    f.__kwdefaults__["c"] = 7
    assert g() == (5, 6, 7) and _C._bind(g) == {"a": 5, "b": 6, "c": 7}
    f.__kwdefaults__ = None
    assert _C._bind(g) is None


def test_cells_and_free_variables():
    outer = 3

    def f(a, b):
        def inner():
            return a, outer

        return inner

    bound = _C._bind(compiled(f), 1, 2)
    assert bound["a"] == 1 and bound["b"] == 2, "arguments that become cells are still plain"
    assert bound["outer"] is f.__closure__[0]


def test_many_locals():
    ns = {}
    exec("def f(a, *rest, **named):\n" + "".join(f"    v{i} = a\n" for i in range(200)) + "    return v199", ns)
    g = compiled(ns["f"])
    assert g(5) == 5
    assert _C._bind(g, 5, 6, k=7) == {"a": 5, "rest": (6,), "named": {"k": 7}}


def test_method_without_a_first_parameter():
    class K:
        def m(*args, **kw):
            return args

    k = K()
    assert _C._bind(compiled(k.m), 1, a=2) == {"args": (k, 1), "kw": {"a": 2}}
    assert compiled(types.MethodType(lambda: 0, k)).__wrapped__ and _C._bind(compiled(types.MethodType(lambda: 0, k))) is None


names = ["a", "b", "c", "d", "e", "f"]


@st.composite
def functions(draw):
    """Functions of every shape: positional-only, defaults, *args, keyword-only, **kwargs."""
    only, both, kwonly = (draw(st.integers(0, 2)) for _ in range(3))
    parts, known = [], draw(st.integers(0, only + both))
    parameters = names[: only + both]
    for i, name in enumerate(parameters):
        parts.append(name + (f"={i}" if i >= only + both - known else ""))
        if i == only - 1:
            parts.append("/")
    rest = draw(st.booleans())
    if rest:
        parts.append("*rest")
    elif kwonly:
        parts.append("*")
    for name in names[only + both : only + both + kwonly]:
        parts.append(name + ("=9" if draw(st.booleans()) else ""))
    if draw(st.booleans()):
        parts.append("**named")
    ns = {}
    exec(f"def f({', '.join(parts)}):\n    return dict(locals())", ns)
    return ns["f"]


@given(functions(), st.lists(st.integers(100, 200), max_size=6), st.dictionaries(st.sampled_from(names + ["q", "rest"]), st.integers(), max_size=4))
def test_binding_is_pythons(function, args, kwargs):
    try:
        expected = function(*args, **kwargs)
    except TypeError:
        expected = None
    assert _C._bind(compiled(function), *args, **kwargs) == expected
    assert _C._bind(compiled(types.MethodType(function, 77)), *args, **kwargs) == call(function, (77, *args), kwargs)


def call(function, args, kwargs):
    try:
        return function(*args, **kwargs)
    except TypeError:
        return None
