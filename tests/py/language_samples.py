"""Small programs that together use every instruction. A sample is a function without arguments; its result, or its exception with the lines of
the traceback, must not depend on who runs it. Each call starts from nothing, so samples may be called again.
"""

SAMPLES = []


def sample(function):
    SAMPLES.append(function)
    return function


# ---- operators, names, cells ----

@sample
def arithmetic():
    a, b = 7, 3
    out = [a + b, a - b, a * b, a / b, a // b, a % b, a ** b, a << b, a >> b, a & b, a | b, a ^ b, -a, +a, ~a, not a]
    c = a
    c += 1; c -= 2; c *= 3; c **= 2; c //= 5; c %= 11; c <<= 3; c >>= 1; c &= 63; c |= 8; c ^= 5
    d = 9.0
    d /= 4
    return out, c, d, a < b, a == b, a is b, a is not b, a in (1, 7), a not in (1, 7), 1 < a < 10, a and 0, 0 or b


@sample
def matrix_multiplication():
    class Vector:
        def __matmul__(self, other):
            return "matmul"

        def __imatmul__(self, other):
            return "imatmul"
    v = Vector()
    first = v @ v
    v @= 1
    return first, v


@sample
def subscripts():
    rows = [1, 2, 3, 4]
    rows[0] = 9
    del rows[1]
    table = {"k": rows}
    table["k"][1:] = [7]
    return rows[0], rows[-1:], rows[::2], table


@sample
def unbound_local():
    if len("") == 1:
        x = 1
    return x


@sample
def deleted_local():
    x = 1
    del x
    del x


@sample
def cells():
    count, gone = 0, 1

    def bump(by=2):
        nonlocal count
        count += by
        return count
    bump()
    del gone
    try:
        (lambda: gone)()
    except NameError as error:
        message = str(error)
    return bump(5), message


@sample
def unbound_cell():
    def inner():
        return later
    if not inner:
        later = 1
    del later


@sample
def unknown_global():
    return no_such_name_anywhere


@sample
def globals_and_names():
    space = {}
    exec("global g\ng = 1\nx = 2\ny: int = x\ndel x\nprint_ = __annotations__\nfor i in range(2): pass\ndel g\n", space)
    space.pop("__builtins__")
    return space


@sample
def globals_that_change():
    space = {"probe": 1}
    exec("def read(): return len, probe\nseen = []", space)
    read, seen = space["read"], space["seen"]

    def look():
        try:
            seen.append(str(read()))
        except NameError as error:
            seen.append(str(error))
    look(); look()
    space["probe"] = 2
    look(); look()
    space["len"] = "shadowed"
    look(); look()
    del space["len"], space["probe"]
    look(); look()
    space["__builtins__"]["probe"] = "from builtins"
    look(); look()
    del space["__builtins__"]["probe"]
    look()
    return seen


@sample
def globals_read_through_odd_keys():
    class Key(str):
        def __eq__(self, other):
            space.pop("other", None)
            return str.__eq__(self, other)
        __hash__ = str.__hash__
    space = {Key("probe"): 1, "other": 2}
    exec("def read(): return probe", space)
    return space["read"](), space["read"](), "other" in space


@sample
def deleted_global():
    exec("global g\ndel g", {})


@sample
def deleted_name():
    exec("del nothing", {})


@sample
def exec_in_mappings():
    class Recording(dict):
        def __missing__(self, key):
            if key.startswith("any_"):
                return key.upper()
            raise KeyError(key)
    out = Recording()
    exec("a = any_thing\ndef f(): return any_global\nb = f()\nc = len('xyz')", out)
    return out["a"], out["b"], out["c"]


@sample
def class_bodies():
    outer = "cell"

    class Base:
        kind: str = "base"

        def __init_subclass__(cls, **kw):
            cls.kw = kw

        def who(self):
            return f"{self.kind} of {__class__.__name__}"

    class Derived(Base, flag=True):
        seen = outer

        def who(self):
            return super().who() + "!"
    return Derived().who(), Derived.kw, Derived.seen, Base.__annotations__


@sample
def attributes():
    class Box:
        def get(self):
            return self.value
    box = Box()
    box.value = 3
    first = box.get(), box.value
    box.call = lambda: "not a method"
    second = box.call()
    del box.value
    try:
        box.get()
    except AttributeError as error:
        return first, second, str(error), error.name


# ---- control ----

@sample
def jumps():
    out = []
    for i in range(20):
        if i % 2:
            continue
        if i > 12:
            break
        out.append(i if i is not None else -1)
    else:
        out.append("never")
    n = None
    while n is None:
        n = 3
    while n:
        n -= 1
    m = 2
    while m is not None:
        m = m - 1 or None
    while not m:
        m = True
    return out, n, m


def odd_positions(n):
    i = 0
    while True:
        i += 1
        if i > n:
            return i
        while i % 3 != 0:
            i += 1


@sample
def long_jumps():
    lines = ["def f(n):", "    s = 0", "    for i in range(n):"]
    lines += [f"        s += i * {k} if s is not None and i != {k} else 1" for k in range(200)]
    space = {}
    exec("\n".join(lines + ["    return s"]), space)
    return space["f"](5), odd_positions(10)


@sample
def assertion():
    value = 3
    assert value == 4, f"{value!r:>5}"


# ---- calls ----

@sample
def calls():
    def f(a, b=2, /, c=3, *rest, d, e=5, **more):
        return a, b, c, rest, d, e, more
    pack, names = [2, 3, 4], {"d": 9, "z": 1}
    return (f(1, d=4), f(1, 2, 3, 4, d=0), f(*pack, **names), f(0, *pack, 1, d=2, **{"q": 3}), f(*(i for i in range(3)), d=1),
            max([3, 1], key=lambda x: -x), "{a}-{b}".format(a=1, b=2), [].append(1), print.__call__.__name__)


@sample
def keywords_twice():
    def f(**kw):
        return kw
    return f(**{"a": 1}, **{"a": 2})


@sample
def argument_not_iterable():
    return len(*3)


@sample
def argument_not_a_mapping():
    def f(**kw):
        return kw
    return f(**3)


@sample
def wrong_arguments():
    def f(a, b):
        return a
    return f(1, c=2)


@sample
def functions():
    def f(a: int, *, k: str = "k") -> bool:
        return a, k, f.__annotations__, f.__kwdefaults__
    return f(1)


# ---- building, unpacking, formatting ----

@sample
def building():
    a, b = 1, 2
    lists = [a, *range(3), b]
    sets = {a, b, *"xy"}
    dicts = {"a": a, **{"b": b}, b: 3}
    return lists, sorted(map(str, sets)), dicts, (*lists, b), [x * 2 for x in lists if x], {x for x in "aa"}, {k: v for k, v in dicts.items()}


@sample
def constant_keys():
    x, y = 1, 2
    return {"a": x, "b": y, "c": x + y}, {x, y}, [1, 2, 3], slice(x, y)


@sample
def not_a_mapping():
    return {**3}


@sample
def not_iterable_star():
    return [*3]


@sample
def unhashable():
    return {[]: 1}


@sample
def unhashable_in_set():
    x = []
    return {1, x}


@sample
def unpacking():
    a, b = [1, 2]
    c, *d, e = range(5)
    (f, g), *h = iter([(1, 2), 3])
    first, second = "xy"
    i, j, k = {1: 2, 3: 4, 5: 6}
    return a, b, c, d, e, f, g, h, first, second, i, j, k


@sample
def too_many():
    a, b = iter([1, 2, 3])


@sample
def too_few():
    a, b, c = iter([1, 2])


@sample
def too_few_starred():
    a, *b, c = [1]


@sample
def unpack_nothing():
    a, b = 3


@sample
def unpack_failing_iterator():
    def numbers():
        yield 1
        raise LookupError("inside")
    a, b = numbers()


@sample
def formatting():
    x, width = 3.14159, 10
    return f"{x}", f"{x:.2f}", f"{x!r:>{width}}", f"{'é'!a}", f"{x!s}{width}", f"a{x:}b"
