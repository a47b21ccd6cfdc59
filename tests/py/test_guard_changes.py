"""Every way to change Python state that a guard depends on is noticed, armed or not; what changes nothing is not."""

import collections
import contextvars
import types

import pytest
from guard_builder import NULL, Builder


class Base:
    inherited = 0


class Other(Base):
    def __init__(self):
        self.x = 1
        self.y = 2


def fresh():
    """An object of a class of its own, because changing a class is for good."""

    class K(Base):
        cattr = 1

        def __init__(self):
            self.x = 1
            self.y = 2

        def m(self):
            return 1

    return K()


def watch_x(b, self, obj):
    b.row("Type", self, type(obj))
    b.row("Value", b.attr(self, "x"), 1)


def hot(source, name, prepare):
    """A store site that CPython has specialised on other objects before it meets the guarded one."""
    ns = {}
    exec(source, ns)
    for i in range(300):
        ns[name](prepare(), i)
    return ns[name]


def with_dict():
    o = Other()
    o.__dict__["zz"] = 1
    return o


STORE = "def store(o, v):\n    o.x = v\n"
inline_store = hot(STORE, "store", Other)
dict_store = hot(STORE, "store", with_dict)
subscript_store = hot("def store(d, v):\n    d['x'] = v\n", "store", lambda: {"x": 0})


def delete_x(o):
    del o.x


def new_dict(o):
    o.__dict__ = {"x": 9, "y": 2}


def new_class(o):
    o.__class__ = Other


def move(o):
    o.d.move_to_end("a")


ATTRIBUTE_CHANGES = {
    "setattr": lambda o: setattr(o, "x", 5),
    "store, inline values": lambda o: inline_store(o, 5),
    "store, dict": lambda o: dict_store(o, 5),
    "object.__setattr__": lambda o: object.__setattr__(o, "x", 5),
    "del": delete_x,
    "object.__delattr__": lambda o: object.__delattr__(o, "x"),
    "__dict__[k] =": lambda o: o.__dict__.__setitem__("x", 5),
    "hot subscript store": lambda o: subscript_store(o.__dict__, 5),
    "update": lambda o: o.__dict__.update(x=5),
    "|=": lambda o: o.__dict__.__ior__({"x": 5}),
    "pop": lambda o: o.__dict__.pop("x"),
    "clear": lambda o: vars(o).clear(),
    "bool for int": lambda o: setattr(o, "x", True),
    "float for int": lambda o: setattr(o, "x", 1.0),
    "__dict__ replaced": new_dict,
    "__class__ replaced": new_class,
}


@pytest.mark.parametrize("change", ATTRIBUTE_CHANGES.values(), ids=ATTRIBUTE_CHANGES)
def test_attribute(change):
    expect_noticed(fresh, watch_x, change)


def expect_noticed(make, watch, change):
    obj = make()
    b = Builder()
    watch(b, b.slot(0), obj)
    guards = b.build()
    assert guards.explain((obj,)) is None
    assert guards.check((obj,))
    evaluations = guards.counts()["evaluations"]
    assert guards.check((obj,))
    assert guards.counts()["evaluations"] == evaluations, "an unchanged object is answered from the armed state"
    change(obj)
    assert guards.explain((obj,)) is not None
    assert not guards.check((obj,))
    assert not guards.check((obj,))


QUIET = {
    "the same object again": lambda o: setattr(o, "x", o.x),
    "another attribute": lambda o: setattr(o, "unrelated", 5),
    "attribute removed and set again": lambda o: (o.__dict__.pop("x"), setattr(o, "x", 1)),
    "the dict grows": lambda o: [setattr(o, f"a{i}", i) for i in range(100)],
    "an equal dict": lambda o: setattr(o, "__dict__", dict(o.__dict__)),
    "an unrelated class attribute": lambda o: setattr(type(o), "new", 1),
}


@pytest.mark.parametrize("change", QUIET.values(), ids=QUIET)
def test_what_is_no_change(change):
    obj = fresh()
    b = Builder()
    watch_x(b, b.slot(0), obj)
    guards = b.build()
    assert guards.check((obj,))
    for _ in range(3):
        change(obj)
        assert guards.check((obj,))
        assert guards.check((obj,))
        assert guards.explain((obj,)) is None


def test_moved_tag_is_repaired_not_evaluated():
    obj = fresh()
    b = Builder()
    watch_x(b, b.slot(0), obj)
    guards = b.build()
    assert guards.check((obj,))
    before = guards.counts()
    obj.counter = 0
    for _ in range(5):
        obj.counter += 1
        assert guards.check((obj,))
    after = guards.counts()
    assert after["evaluations"] == before["evaluations"]
    assert after["repairs"] == before["repairs"] + 5
    assert guards.check((obj,)) and guards.counts() == after


def watch_class(name):
    def watch(b, self, obj):
        b.row("Type", self, type(obj))
        found = b.source("TypeLookup", self, name)
        value = next((k.__dict__[name] for k in type(obj).__mro__ if name in k.__dict__), NULL)
        if value is NULL:
            b.row("Missing", found)
        else:
            b.row("Identity", found, value)

    return watch


def set_base(o):
    Base.inherited = 1


@pytest.mark.parametrize(
    "name, change",
    [
        ("cattr", lambda o: setattr(type(o), "cattr", 2)),
        ("m", lambda o: setattr(type(o), "m", lambda self: 2)),
        ("x", lambda o: setattr(type(o), "x", property(lambda s: 99))),
        ("inherited", set_base),
        ("inherited", lambda o: setattr(type(o), "inherited", 7)),
        ("cattr", lambda o: setattr(type(o), "__bases__", (Other,)) or delattr(type(o), "cattr")),
        ("__getattribute__", lambda o: setattr(type(o), "__getattribute__", lambda s, n: 5)),
        ("__getattr__", lambda o: setattr(type(o), "__getattr__", lambda s, n: 5)),
    ],
)
def test_class(name, change):
    Base.inherited = 0
    expect_noticed(fresh, watch_class(name), change)


def make_module():
    module = types.ModuleType("m")
    exec("g = 1\ndef put(v):\n    global g\n    g = v\n", module.__dict__)
    return module


@pytest.mark.parametrize(
    "change",
    [
        lambda m: [m.put(i) for i in range(300)],
        lambda m: setattr(m, "g", 5),
        lambda m: exec("g = 5", m.__dict__),
        lambda m: delattr(m, "g"),
        lambda m: setattr(m, "__class__", type("M", (types.ModuleType,), {})),
    ],
)
def test_module(change):
    def watch(b, self, module):
        held = b.const(module)
        b.row("Type", held, types.ModuleType)
        b.row("Value", b.item(b.const(module.__dict__), "g"), 1)

    expect_noticed(make_module, watch, change)


def holder(make):
    return lambda: types.SimpleNamespace(d=make())


def watch_keys(b, self, obj):
    d = b.attr(self, "d")
    b.row("Keys", d, tuple(obj.d))


DICT_CHANGES = {
    "OrderedDict set": (lambda: collections.OrderedDict(a=1, b=2), lambda o: o.d.__setitem__("c", 5)),
    "OrderedDict order": (lambda: collections.OrderedDict(a=1, b=2), move),
    "defaultdict miss": (lambda: collections.defaultdict(int), lambda o: o.d["q"]),
    "dict delete": (lambda: {"a": 1, "b": 2}, lambda o: o.d.pop("a")),
    "dict order": (lambda: {"a": 1, "b": 2}, lambda o: o.d.__setitem__("a", o.d.pop("a"))),
    "dict key of another type": (lambda: {1: 2}, lambda o: (o.d.clear(), o.d.__setitem__(True, 2))),
    "another dict": (lambda: {"a": 1}, lambda o: setattr(o, "d", {"b": 1})),
}


@pytest.mark.parametrize("make, change", DICT_CHANGES.values(), ids=DICT_CHANGES)
def test_keys(make, change):
    expect_noticed(holder(make), watch_keys, change)


@pytest.mark.parametrize(
    "make, change",
    [
        (lambda: [1, 2], lambda o: o.d.append(3)),
        (lambda: {1, 2}, lambda o: o.d.add(3)),
        (lambda: {1: 1, 2: 2}, lambda o: o.d.clear()),
        (lambda: (1, 2), lambda o: setattr(o, "d", (1,))),
        (lambda: "ab", lambda o: setattr(o, "d", "abc")),
        (lambda: frozenset((1, 2)), lambda o: setattr(o, "d", 5)),
    ],
)
def test_length(make, change):
    expect_noticed(holder(make), lambda b, self, o: b.row("Length", b.attr(self, "d"), None, 2), change)


@pytest.mark.parametrize(
    "change",
    [
        lambda o: o.d.__setitem__(1, 5),
        lambda o: o.d.insert(0, 7),
        lambda o: o.d.clear(),
        lambda o: o.d.reverse(),
        lambda o: setattr(o, "d", [10]),
        lambda o: setattr(o, "d", None),
    ],
)
def test_list_items(change):
    def watch(b, self, obj):
        d = b.attr(self, "d")
        b.row("Value", b.at(d, 1), 20)

    expect_noticed(holder(lambda: [10, 20]), watch, change)


class Slots:
    __slots__ = ("x",)

    def __init__(self):
        self.x = 1


@pytest.mark.parametrize("change", [lambda o: setattr(o, "x", 2), lambda o: delattr(o, "x")])
def test_slots(change):
    expect_noticed(Slots, lambda b, self, o: b.row("Value", b.source("Attr", self, "x"), 1), change)


def make_function():
    captured = 1

    def f(a, b=1, *, z=2):
        return captured + a + b + z

    for _ in range(100):
        f(1)

    def put(value):
        nonlocal captured
        captured = value

    return types.SimpleNamespace(f=f, put=put)


def another_code():
    captured = 3

    def f(a, b=1, *, z=2):
        return captured

    return f.__code__


def watch_function(b, self, obj):
    b.row("Function", b.attr(self, "f"), obj.f)


@pytest.mark.parametrize(
    "change",
    [
        lambda o: setattr(o.f, "__code__", another_code()),
        lambda o: setattr(o.f, "__defaults__", (5,)),
        lambda o: setattr(o.f, "__defaults__", None),
        lambda o: setattr(o.f, "__kwdefaults__", {"z": 9}),
        lambda o: setattr(o, "f", make_function().f),
        lambda o: setattr(o, "f", len),
    ],
)
def test_function(change):
    expect_noticed(make_function, watch_function, change)


@pytest.mark.parametrize(
    "kind, key, index, value, change",
    [
        ("Default", NULL, 0, 1, lambda o: setattr(o.f, "__defaults__", (7,))),
        ("KwDefault", "z", 0, 2, lambda o: o.f.__kwdefaults__.__setitem__("z", 9)),
        ("KwDefault", "z", 0, 2, lambda o: setattr(o.f, "__kwdefaults__", {"z": 9})),
    ],
)
def test_function_contents(kind, key, index, value, change):
    expect_noticed(make_function, lambda b, self, o: b.row("Value", b.source(kind, b.attr(self, "f"), key, index), value), change)


@pytest.mark.parametrize("change", [lambda o: o.put(2), lambda o: setattr(o.f.__closure__[0], "cell_contents", 1.0), lambda o: setattr(o, "f", len)])
def test_closure(change):
    expect_noticed(make_function, lambda b, self, o: b.row("Value", b.cell(b.attr(self, "f")), 1), change)


def test_context_variable():
    variable = contextvars.ContextVar("v")
    b = Builder()
    b.row("Value", b.source("ContextVar", b.const(variable)), 1)
    absent = Builder()
    absent.row("Missing", absent.source("ContextVar", absent.const(variable)))
    guards, unset = b.build(), absent.build()
    assert unset.check(()) and not guards.check(())
    token = variable.set(1)
    assert guards.check(()) and guards.check(()) and not unset.check(())
    variable.set(2)
    assert not guards.check(())
    variable.reset(token)
    assert unset.check(())


def test_present():
    obj = types.SimpleNamespace(a=1)
    b = Builder()
    b.row("Present", b.attr(b.slot(0), "a"))
    guards = b.build()
    assert guards.check((obj,)) and guards.check((obj,))
    obj.a = [1]
    assert guards.check((obj,)) and guards.check((obj,))
    del obj.a
    assert not guards.check((obj,)) and guards.explain((obj,))[0] == "Present"


def test_cell_in_a_slot():
    cell = types.CellType(1)
    b = Builder()
    b.row("Value", b.source("CellValue", b.slot(0)), 1)
    guards = b.build()
    assert guards.check((cell,)) and guards.check((cell,))
    cell.cell_contents = 2
    assert not guards.check((cell,))
    del cell.cell_contents
    assert not guards.check((cell,))


def test_method():
    o, p = fresh(), fresh()
    b = Builder()
    method = b.slot(0)
    b.row("Identity", b.source("MethodSelf", method), o)
    b.row("Function", b.source("MethodFunc", method), type(o).m)
    guards = b.build()
    assert guards.check((o.m,)) and guards.check((o.m,))
    assert not guards.check((p.m,))
    assert not guards.check((types.MethodType(lambda self: 1, o),))
    assert not guards.check((len,))


def test_missing():
    obj = types.SimpleNamespace()
    b = Builder()
    b.row("Missing", b.attr(b.slot(0), "late"))
    guards = b.build()
    assert guards.check((obj,)) and guards.check((obj,))
    obj.late = 1
    assert not guards.check((obj,))
    del obj.late
    assert guards.check((obj,))


def test_a_dict_that_is_not_there_yet():
    b = Builder()
    b.row("Missing", b.source("Dict", b.slot(0)))
    guards = b.build()
    assert guards.check((5,)) and guards.check((object(),))
    obj = fresh()
    assert not guards.check((obj,))
    del obj.x, obj.y
    assert guards.check((obj,)) and guards.check((obj,))
    obj.x = 1
    assert not guards.check((obj,))


def test_pairs():
    b = Builder()
    x, y = b.slot(1), b.slot(2)
    b.row("Same", x, None, y)
    guards = b.build()
    other = Builder()
    x, y = other.slot(1), other.slot(2)
    other.row("NotSame", x, None, y)
    different = other.build()
    p, q = object(), object()
    assert guards.check((None, p, p)) and not guards.check((None, p, q))
    assert different.check((None, p, q)) and not different.check((None, p, p))
    assert different.explain((None, p, p)) == ("NotSame", "x", "another object than y", "one object")
