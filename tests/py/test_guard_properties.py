"""Armed and full evaluation agree after any history of changes, and both agree with Python's own reading of the sources."""

import gc
import struct
import sys
import types
import weakref

import pytest
from guard_builder import NULL, Builder, resolve
from hypothesis import given, settings
from hypothesis import strategies as st


class Node:
    shared = 1

    def method(self):
        return 1


class Leaf(Node):
    shared = 2


class Slotted:
    __slots__ = ("x", "__weakref__")


VALUES = (0, 1, 2**70, True, 0.0, -0.0, float("nan"), float("inf"), "a", "b", b"a", None, 1j, (1, (2.0, "x")), (1, (-0.0, "x")), slice(1, 2), range(3))
NAMES = ("a", "b", "c", "d")


class World:
    """A random graph of objects, and random changes to it."""

    def __init__(self, random):
        self.random = random
        self.nodes = []
        self.root = self.make(3)

    def make(self, depth):
        kinds = ["value"] * 3 + (["node", "dict", "list", "tuple", "function", "slotted"] * (depth > 0))
        return getattr(self, "make_" + (self.random.choice(kinds) if depth < 3 else "node"))(depth)

    def make_value(self, _):
        return self.random.choice(VALUES)

    def make_node(self, depth):
        node = self.random.choice((Node, Leaf))()
        self.nodes.append(node)
        for name in NAMES[: self.random.randint(1, 4)]:
            setattr(node, name, self.make(depth - 1))
        return node

    def make_dict(self, depth):
        d = {name: self.make(depth - 1) for name in NAMES[: self.random.randint(0, 3)]}
        self.nodes.append(d)
        return d

    def make_list(self, depth):
        items = [self.make(depth - 1) for _ in range(self.random.randint(0, 3))]
        self.nodes.append(items)
        return items

    def make_tuple(self, depth):
        return tuple(self.make(depth - 1) for _ in range(self.random.randint(0, 3)))

    def make_slotted(self, depth):
        o = Slotted()
        o.x = self.make(depth - 1)
        self.nodes.append(o)
        return o

    def make_function(self, depth):
        captured = self.make(depth - 1)

        def f(a, b=self.make(depth - 1), *, c=self.make(depth - 1)):
            return captured

        self.nodes.append(f)
        return f

    def change(self):
        node = self.random.choice(self.nodes)
        name = self.random.choice(NAMES)
        value = self.make(self.random.randint(0, 2))
        if isinstance(node, Node):
            self.change_node(node, name, value)
        elif isinstance(node, dict):
            self.random.choice((lambda: node.__setitem__(name, value), lambda: node.pop(name, None), node.clear, lambda: node.update(node)))()
        elif isinstance(node, list):
            self.random.choice((lambda: node.append(value), node.reverse, node.clear, lambda: node.insert(0, value), lambda: node and node.pop()))()
        elif isinstance(node, Slotted):
            node.x = value
        else:
            self.change_function(node, value)

    def change_node(self, node, name, value):
        def swap_dict():
            node.__dict__ = self.random.choice((dict(node.__dict__), {name: value}))

        def restore():
            old = node.__dict__.get(name)
            node.__dict__[name] = value
            node.__dict__[name] = old

        def swap_class():
            node.__class__ = self.random.choice((Node, Leaf))

        changes = [lambda: setattr(node, name, value)] * 4 + [lambda: node.__dict__.pop(name, None), swap_dict, restore, swap_class]
        changes += [lambda: setattr(node, "unrelated", value), lambda: setattr(Leaf, "shared", self.random.randint(2, 3))]
        self.random.choice(changes)()

    def change_function(self, f, value):
        self.random.choice(
            (
                lambda: setattr(f, "__defaults__", (value,)),
                lambda: setattr(f, "__defaults__", None),
                lambda: f.__kwdefaults__ and f.__kwdefaults__.__setitem__("c", value),
                lambda: setattr(f, "__kwdefaults__", {"c": value}),
                lambda: setattr(f.__closure__[0], "cell_contents", value),
            )
        )()


def record(b, source, value, random):
    """Rows and sources for a value, as a recording that looked at a random part of it."""
    b.wanted.append(source)
    if random.random() < 0.8:
        b.row("Type", source, type(value))
    if value is NULL:
        raise AssertionError("a recorded source has a value")
    if isinstance(value, Node):
        if random.random() < 0.5:
            b.row("Identity", b.source("TypeLookup", source, "method"), Node.__dict__["method"])
            b.row("Value", b.source("TypeLookup", source, "shared"), value.shared)
        if random.random() < 0.3:
            b.row("Identity", source, value)
        members = b.source("Dict", source)
        for name in NAMES:
            if name not in value.__dict__:
                b.row("Missing", b.item(members, name))
            elif random.random() < 0.7:
                record(b, b.item(members, name), value.__dict__[name], random)
    elif isinstance(value, dict):
        b.row(*random.choice((("Keys", source, tuple(value), 0), ("Length", source, None, len(value)))))
        for name in value:
            record(b, b.item(source, name), value[name], random)
    elif isinstance(value, (list, tuple)):
        b.row("Length", source, None, len(value))
        for i, item in enumerate(value):
            record(b, b.at(source, i), item, random)
    elif isinstance(value, Slotted):
        record(b, b.source("Attr", source, "x"), value.x, random)
    elif isinstance(value, types.FunctionType):
        if random.random() < 0.5:
            b.row("Function", source, value)
        record(b, b.cell(source), value.__closure__[0].cell_contents, random)
        record(b, b.source("KwDefault", source, "c"), value.__kwdefaults__["c"], random)
        if value.__defaults__:
            record(b, b.source("Default", source, NULL, 0), value.__defaults__[0], random)
    else:
        b.row("Value", source, value)


def agree(b, guards, slots):
    failure = guards.explain(slots)
    held = guards.check(slots)
    assert held == (failure is None), (failure, b.rows)
    if held:
        expected = [resolve(b, source, slots) for source in b.wanted]
        assert all(x is y for x, y in zip(guards.values(), expected, strict=True))
        assert guards.check(slots)
    return held


@settings(max_examples=400, deadline=None)
@given(st.randoms(use_true_random=False))
def test_armed_and_full_evaluation_agree(random):
    world = World(random)
    b = Builder()
    record(b, b.slot(0), world.root, random)
    guards = b.build()
    assert agree(b, guards, (world.root,))
    for _ in range(random.randint(1, 12)):
        world.change()
        agree(b, guards, (world.root,))


@settings(max_examples=100, deadline=None)
@given(st.randoms(use_true_random=False))
def test_instances_in_turn(random):
    """Several roots of one class, changed and dropped at random, share one set."""
    worlds = [World(random) for _ in range(3)]
    b = Builder()
    record(b, b.slot(0), worlds[0].root, random)
    guards = b.build()
    for _ in range(30):
        i = random.randrange(len(worlds))
        if random.random() < 0.2:
            worlds[i] = World(random)
        elif random.random() < 0.3:
            worlds[i].change()
        agree(b, guards, (worlds[i].root,))


BINARY = dict(enumerate("+ & // << @ * % | ** >> - / ^".split()))
COMPARE = dict(enumerate("< <= == != > >=".split()))
UNARY = ("-x", "+x", "~x", "not x", "bool(x)", "int(x)", "float(x)", "abs(x)")
NUMBERS = st.one_of(st.integers(-8, 8), st.booleans(), st.sampled_from((0.0, -0.0, 1.5, float("inf"), float("nan"))), st.sampled_from(("a", None)))


def python(text, **names):
    used = [v for name, v in names.items() if name in text.split() or f"({name})" in text or text[1:] == name]
    if any(not isinstance(v, (int, float)) for v in used):
        return NULL
    try:
        return eval(text, {}, names)
    except (ArithmeticError, TypeError, ValueError):
        return NULL


def exactly(value):
    return type(value), struct.pack("d", value) if isinstance(value, float) else value


@settings(deadline=None)
@given(NUMBERS, NUMBERS, NUMBERS, NUMBERS)
def test_arithmetic_is_pythons(x, y, other_x, other_y):
    """Symbolic numbers: what Python computes from the arguments, and nothing where Python raises."""
    b = Builder(("x", "y"))
    left, right = b.slot(0), b.slot(1)
    texts = {}
    for i, op in BINARY.items():
        texts[b.source("Binary", left, right, i)] = f"x {op} y"
        texts[b.source("Binary", left, right, i + 13)] = f"x {op} y"
    for i, op in COMPARE.items():
        texts[b.source("Compare", left, right, i)] = f"x {op} y"
    for i, text in enumerate(UNARY):
        texts[b.source("Unary", left, 0, i)] = text
    for source, text in texts.items():
        value = python(text, x=x, y=y)
        b.row("Missing", source) if value is NULL else b.row("Value", source, value)
    guards = b.build()
    assert guards.explain((x, y)) is None
    assert guards.check((x, y)) and guards.check((x, y))
    first = [exactly(python(text, x=x, y=y)) for text in texts.values()]
    second = [exactly(python(text, x=other_x, y=other_y)) for text in texts.values()]
    assert guards.check((other_x, other_y)) == (first == second)


def test_lengths_as_numbers():
    b = Builder(("items",))
    length = b.source("Len", b.slot(0))
    b.row("Value", b.source("Compare", length, b.const(2), 4), True)
    guards = b.build()
    assert guards.path(len(b.sources)) == "(len(items) > 2)"
    for items in ([1, 2, 3], (1, 2, 3), {1, 2, 3}, "abcd", {1: 1, 2: 2, 3: 3}):
        assert guards.check((items,))
    for items in ([1], (), 5, None):
        assert not guards.check((items,))


def test_instances_of_a_class_do_not_thrash():
    def make():
        node = Node()
        node.a, node.b = 1, "x"
        return node

    nodes = [make() for _ in range(8)]
    b = Builder()
    self = b.slot(0)
    b.row("Type", self, Node)
    b.row("Value", b.attr(self, "a"), 1)
    b.row("Identity", b.source("TypeLookup", self, "method"), Node.__dict__["method"])
    guards = b.build()
    assert all(guards.check((node,)) for node in nodes)
    before = guards.counts()["evaluations"]
    assert all(guards.check((node,)) for node in nodes * 5)
    assert guards.counts()["evaluations"] == before
    nodes[3].a = 2
    assert [guards.check((node,)) for node in nodes] == [i != 3 for i in range(8)]


def test_an_address_that_came_back_is_another_object():
    """Armed state holds nothing, so an object may die and another take its place."""

    class Holder:
        def __init__(self, value):
            self.value = value
            self.inner = Node()
            self.inner.a = value

    b = Builder()
    self = b.slot(0)
    b.row("Value", b.attr(self, "value"), 1.5)
    b.row("Value", b.attr(b.attr(self, "inner"), "a"), 1.5)
    guards = b.build()
    addresses = set()
    for i in range(200):
        value = float("1.5") if i % 2 else float("2.5")
        holder = Holder(value)
        addresses.add(id(holder))
        assert guards.check((holder,)) == (i % 2 == 1)
        del holder, value
    if len(addresses) == 200:
        pytest.skip("this allocator never used an address again")


def test_an_attribute_at_the_same_address():
    """The dict's tag moves, the pointer in it does not, and yet the value is another one."""
    node = Node()
    node.a = float("1.5")
    b = Builder()
    b.row("Value", b.attr(b.slot(0), "a"), 1.5)
    guards = b.build()
    addresses = set()
    for i in range(100):
        addresses.add(id(node.a))
        node.a = None
        node.a = float("1.5") if i % 2 else float("2.5")
        assert guards.check((node,)) == (i % 2 == 1)
    if len(addresses) == 100:
        pytest.skip("this allocator never used an address again")


def test_identity_is_not_the_address():
    node = Node()
    b = Builder()
    b.row("Identity", b.slot(0), node)
    guards = b.build()
    b.rows.clear()
    assert guards.check((node,))
    address = id(node)
    del node
    kept = []
    for _ in range(1000):
        kept.append(Node())
        assert not guards.check((kept[-1],))
        if id(kept[-1]) == address:
            return
    pytest.skip("this allocator never used the address again")


def test_closures_with_floats_at_the_same_address():
    def make(s):
        return lambda x: x * s

    b = Builder()
    f = b.slot(0)
    b.row("Type", f, types.FunctionType)
    b.row("Value", b.cell(f), 0.5)
    guards = b.build()
    for i in range(100):
        assert guards.check((make(float("0.5") if i % 2 else float("0.7")),)) == (i % 2 == 1)


def test_defaults_at_the_same_address():
    def f(a=0.5):
        return a

    b = Builder()
    b.row("Value", b.source("Default", b.slot(0)), 0.5)
    guards = b.build()
    for i in range(100):
        f.__defaults__ = None
        f.__defaults__ = (float("0.5") if i % 2 else float("0.7"),)
        assert guards.check((f,)) == (i % 2 == 1)


def test_values_by_exact_type_and_bits():
    for i, expected in enumerate(VALUES):
        b = Builder()
        b.row("Value", b.slot(0), expected)
        guards = b.build()
        for j, value in enumerate(VALUES):
            assert guards.check((value,)) == (i == j), (expected, value)
    again = (0, 1, int("1" + "0" * 30), float("nan"), -0.0, "".join("abc"), (1, (-0.0,)), slice(1, None), complex(2.5, 1), frozenset((1, 2)), range(5))
    for value in again:
        b = Builder()
        b.row("Value", b.slot(0), value)
        copy = eval(repr(value), {"nan": float("nan")})
        assert b.build().check((copy,)), value


def test_equality_written_in_python_is_never_asked():
    class Sly:
        def __eq__(self, other):
            raise AssertionError("asked")

        __hash__ = object.__hash__

    class SlyInt(int):
        __eq__ = Sly.__eq__
        __hash__ = int.__hash__

    for expected, value in ((Sly(), Sly()), (SlyInt(1), SlyInt(1)), (1, SlyInt(1)), ((Sly(),), (Sly(),))):
        b = Builder()
        b.row("Value", b.slot(0), expected)
        guards = b.build()
        assert guards.check((expected,)) and not guards.check((value,))
        assert guards.explain((value,))[0] == "Value"


def test_dict_keys_that_compare_in_python_are_found_by_identity():
    class Parameter:
        def __hash__(self):
            return 7

        def __eq__(self, other):
            raise AssertionError("asked")

    p = Parameter()
    state = types.SimpleNamespace(state={p: 5})
    b = Builder()
    b.row("Value", b.item(b.attr(b.slot(0), "state"), p), 5)
    guards = b.build()
    assert guards.check((state,)) and guards.check((state,))


def test_nothing_is_kept_alive():
    class Tensorish(list):
        __slots__ = ("__weakref__",)

    node, item = Node(), Tensorish()
    node.a, node.inner, node.items = item, Node(), [Node()]
    b = Builder()
    self = b.slot(0)
    b.row("Identity", self, node)
    b.row("Identity", b.attr(self, "inner"), node.inner)
    b.row("Type", b.at(b.attr(self, "items"), 0), Node)
    b.row("Length", b.attr(self, "a"), None, 0)
    guards = b.build()
    b.rows.clear()
    assert guards.check((node,)) and guards.check((node,)) and not guards.dead()
    references = [weakref.ref(o) for o in (node, node.inner, item, node.items[0])]
    del node, item
    gc.collect()
    assert [r() for r in references] == [None] * 4
    assert guards.dead()
    assert not guards.check((Node(),))
    assert guards.explain((Node(),))[2] == "the same object, which is gone"


def test_reference_counts():
    node = Node()
    node.a, node.inner, node.f = object(), Node(), make_function()
    watched = (node, node.a, node.inner, node.__dict__, node.f, node.f.__code__, Node)
    b = Builder()
    self = b.slot(0)
    b.row("Type", self, Node)
    b.row("Type", b.attr(self, "a"), object)
    b.row("Function", b.attr(self, "f"), node.f)
    b.row("Value", b.source("Attr", b.attr(self, "f"), "__name__"), "f")
    b.wanted += [b.attr(self, "a"), b.attr(self, "inner")]
    guards = b.build()
    slots = (node,)
    counts = [sys.getrefcount(o) for o in watched]
    for i in range(50):
        assert guards.check(slots)
        node.counter = i
        assert guards.explain(slots) is None
        if i % 10 == 0:
            guards.disarm()
    assert [sys.getrefcount(o) for o in watched] == counts


def make_function():
    def f(a, b=1):
        return a

    return f


def test_collected_in_a_cycle():
    node = Node()
    b = Builder()
    b.row("Value", b.item(b.const(node.__dict__), "a"), 1)
    node.a, node.guards = 1, b.build()
    b.sources.clear()
    assert node.guards.check(())
    reference = weakref.ref(node)
    del node
    gc.collect()
    assert reference() is None


def test_paths():
    class Module:
        pass

    b = Builder(("self", "x"))
    self = b.slot(0)
    layers = b.item(b.attr(self, "_modules"), "layers")
    third = b.item(b.attr(layers, "_modules"), "3")
    f = b.const(make_function)
    paths = {
        b.item(b.attr(third, "_parameters"), "weight"): "self.layers[3].weight",
        b.item(b.const(globals()), "helper"): f"{__name__}.helper",
        b.item(b.attr(self, "cache"), "key"): "self.cache['key']",
        b.at(b.slot(1), 2): "x[2]",
        b.slot(3): "stack[1]",
        b.source("TypeLookup", self, "forward"): "type(self).forward",
        b.source("TypeLookup", b.source("TypeOf", self), "forward"): "type(self).forward",
        b.source("TypeLookup", b.const(Module), "forward"): "Module.forward",
        b.source("Default", f, NULL, 1): "make_function.__defaults__[1]",
        b.source("Attr", b.slot(1), "shape"): "x.shape",
        b.attr(b.const(types), "x"): "types.x",
    }
    guards = b.build()
    assert {source: guards.path(source) for source in paths} == paths


def test_explanations():
    node = types.SimpleNamespace(scale=3, f=make_function(), hooks={"a": 1})
    b = Builder()
    self = b.slot(0)
    b.row("Type", self, types.SimpleNamespace)
    b.row("Value", b.attr(self, "scale"), 2)
    guards = b.build()
    assert guards.explain((node,)) == ("Value", "self.scale", "int 2", "3")
    assert guards.explain((5,)) == ("Type", "self", "type SimpleNamespace", "type int")
    node.scale = 2.0
    assert guards.explain((node,)) == ("Value", "self.scale", "int 2", "float 2.0")
    del node.scale
    assert guards.explain((node,)) == ("Value", "self.scale", "int 2", "nothing")
    b = Builder()
    b.row("Keys", b.attr(b.slot(0), "hooks"), ("b",))
    assert b.build().explain((node,)) == ("Keys", "self.hooks", "keys ('b')", "keys ('a')")
