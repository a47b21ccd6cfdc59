"""What C code says of objects whose class says nothing (their address), and what it keeps; what is pure breaks no graph."""
import array
import bisect
import collections
import copy
import datetime
import decimal
import hashlib
import heapq
import json
import operator
import re
import sys
import types
import weakref
import zlib

import pytest

torch = pytest.importorskip("torch")
import framejit  # noqa: E402
from eager_compare import compare, outcome  # noqa: E402


class Plain:
    def __init__(self, v):
        self.v = v


class Slotted:
    __slots__ = ("v",)

    def __init__(self, v):
        self.v = v


class Method:
    def m(self):
        return 1


def setup(make, values):
    """A function of two of the values and one more; the values stay the same objects through all calls."""
    objects = values()

    def calls(function):
        seen = []
        for n in (1, 1, 2, 2, 0, 1, 2, 0, 1, 1):
            a, b = objects[n % len(objects)], objects[1]
            seen.append((outcome(function, torch.ones(1), a, b), n))
        return seen
    return calls


def plain():
    return [Plain(i) for i in range(3)]


def dates():
    return [datetime.date(2020 + i, 1, 1) for i in range(3)]


ADDRESSES = {  # what C code says of an object whose class says nothing, and of values that only it knows
    "==": (plain, lambda a, b: (a == b, a != b)),
    "operator": (plain, lambda a, b: (operator.eq(a, b), operator.is_(a, b), operator.is_not(a, b))),
    "in": (plain, lambda a, b: (a in [b], a in (b, 1), a in {b}, a in {b: 1})),
    "sequence": (plain, lambda a, b: ([b, a].index(a), [b, a].count(b), (b, a).index(a))),
    "remove": (plain, lambda a, b: [(made := [b, b, a]).remove(a), len(made), made[0].v]),
    "nested": (plain, lambda a, b: ((a, 1) == (b, 1), [[a]] == [[b]])),
    "hash": (plain, lambda a, b: hash(a) == hash(b)),
    "set": (plain, lambda a, b: (len({a, b}), len(set([a, b])), len(dict.fromkeys([a, b])))),
    "dict": (plain, lambda a, b: {a: 1, b: 2}[a]),
    "key": (plain, lambda a, b: [(made := {b: 1}).__setitem__(a, 2), len(made)][1]),
    "text": (plain, lambda a, b: (repr(a) == repr(b), f"{a}" == str(b), "%s" % a == "{}".format(b))),
    "object's own": (plain, lambda a, b: (object.__repr__(a) == object.__repr__(b), object.__hash__(a) == hash(b))),
    "set of tuples": (lambda: [(1, 2), (2, 3), (3, 4)], lambda a, b: (len({a, b}), {a: 1}.get(b))),
    "functions": (lambda: [lambda: i for i in range(3)], lambda a, b: (a == b, a in [b])),
    "methods": (lambda: [Method() for _ in range(3)], lambda a, b: a.m == b.m),
    "C methods": (lambda: [[], [], []], lambda a, b: a.append == b.append),
    "copy": (plain, lambda a, b: (copy.copy(a).v, copy.deepcopy(b).v, a.__reduce_ex__(2)[2])),
    "slots": (lambda: [Slotted(i) for i in range(3)], lambda a, b: copy.copy(a).v),
    "errors": (lambda: [ValueError(i) for i in range(3)], lambda a, b: (str(a), repr(a), copy.copy(a).args)),
    "dates": (dates, lambda a, b: (str(a), a < b, a == b, f"{a}")),
    "date as a key": (dates, lambda a, b: {a: 1}.get(b)),
    "spans": (lambda: [datetime.timedelta(i) for i in range(3)], lambda a, b: (1 if a else 2, not a, a + b)),
    "decimals": (lambda: [decimal.Decimal(i) for i in range(3)],
                 lambda a, b: (float(a), int(a), hash(a), 1 if a else 2, sorted([a, b]), min(a, b))),
    "match": (lambda: [re.match(".", t) for t in "abc"], lambda a, b: (str(a), a[0])),
    "namespace": (lambda: [types.SimpleNamespace(a=i) for i in range(3)], lambda a, b: (a == b, repr(a), a.a)),
    "getter": (lambda: [operator.itemgetter(i) for i in range(3)], lambda a, b: (a([5, 6, 7]), sorted([[1, 4, 2], [2, 3, 1]], key=a))),
    "method caller": (lambda: [operator.methodcaller(n) for n in ("pop", "copy", "sort")], lambda a, b: a([6, 5])),
}


@pytest.mark.parametrize("name", ADDRESSES)
def test_objects_without_methods_of_their_own(name):
    values, use = ADDRESSES[name]
    calls = setup(use, values)

    def function(x, a, b):
        return x * 2, use(a, b)
    compiled = framejit.compile(function, wait=True)
    with torch.no_grad():
        assert calls(compiled) == calls(function)


def stateful(make_state, use):
    state = make_state()
    return lambda x, n: (x * 2, use(state, n))


STATES = {  # what lives on, and changes
    "heap": (lambda: [3, 4], lambda s, n: (heapq.heappush(s, n), s[0], len(s))),
    "heap, popped": (lambda: list(range(30)), lambda s, n: heapq.heappop(s)),
    "insort": (lambda: [1, 5], lambda s, n: (bisect.insort(s, n), s.index(n))),
    "array": (lambda: array.array("i", [1, 2]), lambda s, n: (s.__setitem__(0, n), s.append(n), s.tolist())),
    "bytearray": (lambda: bytearray(b"a"), lambda s, n: (s.append(n), bytes(s))),
    "hash": (hashlib.md5, lambda s, n: (s.update(b"%d" % n), s.hexdigest())),
    "names": (lambda: Plain(1), lambda s, n: (len(dir(s)), setattr(s, f"v{n}", 1))),
    "attributes of a function": (lambda: lambda: 0, lambda s, n: (getattr(s, "a", 0), setattr(s, "a", n))),
    "limits": (lambda: None, lambda s, n: (sys.setswitchinterval(0.005 + n / 1000), sys.getswitchinterval())),
    "decimal context": (lambda: None, lambda s, n: (setattr(decimal.getcontext(), "prec", 5 + n), str(decimal.Decimal(1) / 7))),
}


@pytest.mark.parametrize("name", STATES)
def test_states(name):
    interval, precision = sys.getswitchinterval(), decimal.getcontext().prec
    try:
        compare(lambda: stateful(*STATES[name]))
    finally:
        sys.setswitchinterval(interval)
        decimal.getcontext().prec = precision


PURE = {
    "heap": lambda n: heapq.nlargest(2, [n, 1, 3]),
    "bisect": lambda n: bisect.bisect([0, 1, 2], n),
    "hash": lambda n: hashlib.sha256(b"%d" % n).hexdigest(),
    "zlib": lambda n: zlib.crc32(zlib.compress(b"a" * n)),
    "json": lambda n: json.loads(json.dumps({"b": n, "a": [1.5, None]}, sort_keys=True, indent=1)),
    "encode": lambda n: "ä".encode("latin1") + str(n).encode(),
    "weak reference": lambda n: weakref.ref(test_states)().__name__,
    "annotations": lambda n: (isinstance(n, int | str), list[int] == list[int], dict[str, int].__args__,
                              Optional.__args__, Optional | float),
    "named tuple": lambda n: collections.namedtuple("T", "a b")(n, 2)._replace(a=3) if n < 0 else Pair(n, 2)._replace(a=3),
}
Pair = collections.namedtuple("Pair", "a b")
Optional = int | None


@pytest.mark.parametrize("name", PURE)
def test_nothing_breaks_for_what_is_pure(name):
    compiled = compare(lambda: lambda x, n: (x * 2, PURE[name](n)))
    assert not framejit.report(compiled).breaks
