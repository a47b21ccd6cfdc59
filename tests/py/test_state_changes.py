"""State that changes between calls of a compiled function, and writes that show outside of it: every call as eager, twice per state, twice
round. A row makes fresh arguments for each call; arguments that the call changed are compared too."""
import collections
import contextvars
import functools
import operator
import random
import threading
import time

import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F

import framejit

ar = torch.arange
ONE = torch.ones(1)


class Slots:
    __slots__ = ("p",)


class Setter:
    def __init__(self):
        self._lr = 1.0

    @property
    def lr(self):
        return self._lr

    @lr.setter
    def lr(self, value):
        self._lr = value


class Bare:
    pass


class Bound:
    def b(self, m):
        time.time()
        return type(self).__name__, m


class Key:
    def __init__(self, value):
        self.value = value

    def __hash__(self):
        return hash(self.value)

    def __eq__(self, other):
        return self.value == other.value


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 100


BOUND, KEYED, SLOTS, BARE = Bound().b, {Key(1): 10}, Slots(), Bare()
HASHED = functools.lru_cache(maxsize=4)(lambda k: torch.ones(1) * k.value)
PAIR = [torch.ones(1), torch.ones(1) * 2]


def tail():
    return ar(10.0)[3:9]


def assigned(x):
    x[1:3] = 7
    return x * 2


def added_to_second(x, y):
    v = x * 2
    y.add_(1)
    return v


def shared():
    b = ar(4.0)
    return b, b.detach()


def base_and_row(b):
    return b, b[0]


def copied(x, w):
    v = x.clone()
    v.copy_(w)
    v[0] = 7
    return v


def filled(x):
    v = torch.zeros(2, 4)
    v[:] = x
    v[0] = 5
    return v


def out_names_input(x):
    x.zero_()
    torch.add(x, 5, out=x)
    return x


def data_after_alias(x, y):
    v = x[0]
    v.add_(1)
    return y + x.sum().item()


def stored_in_dict(x, n, d):
    d["b"] = n
    return x * sum(d.values())


def slot_written(x, o, n):
    o.p = n
    return x * o.p


def over_range(x, r):
    for i in r:
        x = x * 2 + i
    return x


def tagged(value):
    t = torch.ones(2)
    t.scale = value
    return t


def with_grad(value):
    t = torch.ones(2, requires_grad=True)
    t.grad = value
    return t


def partial_target(a, b):
    return a + b


def class_in_function(x, n):
    class A:
        k = n
    return x * A.k


def deletes(x, o, n):
    o.a, o.b = 1, 2
    delattr(o, n)
    return x * (1 if hasattr(o, "a") else 2)


def mask(m):
    return torch.tensor(m)


CHANGES = {
    "in place, then layer norm": (lambda x, y: (x.add_(y), F.layer_norm(x, (64,)))[1], lambda: (ar(128.0).view(2, 64) / 50, torch.ones(2, 64))),
    "in place, then softmax": (lambda w: (w.mul_(2), w.softmax(0))[1], lambda: (ar(8.0),)),
    "in place, then mean": (lambda w: (w.mul_(2), w - w.mean(-1, keepdim=True))[1], lambda: (ar(32.0).view(4, 8),)),
    "item assignment at an offset": (assigned, lambda: (tail(),)),
    "matmul at an offset": (lambda x: x @ x.t(), lambda: (ar(24.0).view(6, 4)[3:],)),
    "a second input that shares memory": (added_to_second, lambda: (ar(4.0), ar(4.0)), shared),
    "inputs no longer share memory": (lambda x, w: (w * 2, x @ x.T), lambda: base_and_row(ar(12.0).view(3, 4)),
                                      lambda: (ar(6.0).view(2, 3), ar(12.0).view(3, 4)[0])),
    "view of another dtype": (lambda x: (x.add_(1), x.view(torch.int32))[1], lambda: (ar(4.0),)),
    "view_as_real": (lambda x: torch.view_as_real(x * 2).sum(-1), lambda: (torch.complex(ar(4.0), ar(4.0)),)),
    "view_as_complex": (lambda x: torch.view_as_real(torch.view_as_complex(x.view(2, 2, 2)) * (1 + 1j)).flatten(1) + 1, lambda: (ar(8.0),)),
    "copy_ of an input": (copied, lambda: (ar(4.0), ar(4.0) + 1)),
    "copy into a slice": (filled, lambda: (ar(8.0).view(2, 4),)),
    "out=": (out_names_input, lambda: (ar(4.0),)),
    "guarded data behind an alias": (data_after_alias, lambda: (mask([0, 1]), ONE), lambda: (mask([1, 1]), ONE)),
    "tensor_split": (lambda x, i: torch.tensor_split(x, i)[0] * 2, lambda: (ar(6.0), mask([2])), lambda: (ar(6.0), mask([4]))),
    "requires_grad=True": (lambda x: torch.ones(2, requires_grad=True), lambda: (ONE,)),
    "append, read": (lambda x, n, l: (l.append(n), x * l[-1])[1], lambda: (ONE, 3, [1]), lambda: (ONE, 4, [1])),
    "append, sum": (lambda x, n, l: (l.append(n), x * sum(l))[1], lambda: (ONE, 3, [1]), lambda: (ONE, 4, [1])),
    "append, pop": (lambda x, n, l: (l.append(n), x * l.pop())[1], lambda: (ONE, 3, [1]), lambda: (ONE, 4, [1])),
    "insert, read": (lambda x, n, l: (l.insert(0, n), x * l[0])[1], lambda: (ONE, 3, [1]), lambda: (ONE, 4, [1])),
    "dict item, values": (stored_in_dict, lambda: (ONE, 3, {"a": 1}), lambda: (ONE, 4, {"a": 1})),
    "__setitem__, values": (lambda x, n, d: (d.__setitem__("b", n), x * sum(d.values()))[1], lambda: (ONE, 3, {"a": 1}), lambda: (ONE, 4, {"a": 1})),
    "set, len": (lambda x, n, s: (s.add(n), x * len(s))[1], lambda: (ONE, 3, {1}), lambda: (ONE, 1, {1})),
    "slot": (slot_written, lambda: (ONE, SLOTS, 2), lambda: (ONE, SLOTS, 3)),
    "bound method, nested break": (lambda x: (x * time.time() * 0, BOUND(5)), lambda: (ONE,)),
    "random's bound method": (lambda x: (x * random.random() * 0, random.randint(0, 0)), lambda: (ONE,)),
    "range": (over_range, lambda: (ONE, range(3)), lambda: (ONE, range(2))),
    "attribute of a tensor": (lambda x: x * x.scale, lambda: (tagged(2.0),), lambda: (tagged(3.0),)),
    "attribute of a tensor, absent": (lambda x: x * getattr(x, "scale", 5.0), lambda: (tagged(2.0),), lambda: (torch.ones(2),)),
    "grad": (lambda p: p * 2 if p.grad is None else p + p.grad, lambda: (with_grad(None),), lambda: (with_grad(torch.ones(2)),),
             lambda: (with_grad(torch.ones(2) * 3),)),
    "deque": (lambda x, d: x * len(d) + d[-1], lambda: (ONE, collections.deque([1, 2])), lambda: (ONE, collections.deque([1, 2, 5]))),
    "partial": (lambda x, q: q(x), lambda: (ONE, functools.partial(partial_target, b=0)), lambda: (ONE, functools.partial(partial_target, b=1))),
    "id of a tensor": (lambda x: x + {id(PAIR[0]): 1, id(PAIR[1]): 2}[id(x)], lambda: (PAIR[0],), lambda: (PAIR[1],)),
    "class body": (class_in_function, lambda: (ONE, 3), lambda: (ONE, 4)),
    "delattr": (deletes, lambda: (ONE, BARE, "a"), lambda: (ONE, BARE, "b")),
    "slice bound": (lambda x, i: x[:i] * 1, lambda: (ar(4.0), torch.tensor(1)), lambda: (ar(4.0), 1)),
    "lru_cache, key with __hash__": (lambda x, k: x + HASHED(k), lambda: (ONE, Key(1)), lambda: (ONE, Key(2))),
    "key with __hash__": (lambda x, k: x + KEYED.get(k, 5), lambda: (ONE, Key(1)), lambda: (ONE, Key(2))),
    "key with __eq__": (lambda x, k: x + (1 if k in KEYED else 2), lambda: (ONE, Key(1)), lambda: (ONE, Key(2))),
}


def same(a, b):
    if isinstance(a, torch.Tensor):
        assert type(a) is type(b) and a.dtype == b.dtype and a.stride() == b.stride() and a.requires_grad == b.requires_grad
        torch.testing.assert_close(a, b)
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            same(x, y)
    elif isinstance(a, (int, float, str, dict, set)):
        assert a == b


@pytest.mark.parametrize("name", CHANGES)
def test_as_eager(name):
    function, *states = CHANGES[name]
    compiled = framejit.compile(function, wait=True)
    with torch.no_grad():
        for make in [s for s in states * 2 for _ in range(2)]:
            for_eager, for_us = make(), make()
            same(function(*for_eager), compiled(*for_us))
            same(list(for_eager), list(for_us))


def test_constants_are_new_tensors():
    def scaled(x):
        t = torch.tensor([1.0])
        t += x
        return t

    for function, value in ((scaled, [2.0]), (lambda x: torch.tensor([1.0, 2.0]), [1.0, 2.0])):
        compiled = framejit.compile(function)
        with torch.no_grad():
            for _ in range(4):
                result = compiled(ONE)
                assert result.tolist() == value
                result.add_(5)


def test_views_of_a_parameter_are_not_the_parameter():
    p = torch.nn.Parameter(torch.ones(3))
    for function in (lambda p: p.detach(), lambda p: p.data, lambda p: p.view(3)):
        compiled = framejit.compile(function)
        with torch.no_grad():
            for _ in range(3):
                got, want = compiled(p), function(p)
                assert got is not p and type(got) is torch.Tensor and got.requires_grad == want.requires_grad
                assert got.data_ptr() == p.data_ptr()


def test_gradients_through_an_autograd_function():
    compiled = framejit.compile(lambda x: Twice.apply(x))
    for _ in range(3):
        x = torch.ones(2, requires_grad=True)
        compiled(x).sum().backward()
        assert x.grad.tolist() == [100.0, 100.0]


def test_attributes_set_on_a_result():
    def tag(x):
        y = x + 1
        y.tag = "a"
        return y

    compiled = framejit.compile(tag)
    with torch.no_grad():
        for _ in range(4):
            assert compiled(ONE).tag == "a"


def test_property_setters():
    def step(x, s):
        s.lr = s.lr * 2
        return x * s.lr

    compiled, ours, eager = framejit.compile(step), Setter(), Setter()
    with torch.no_grad():
        for _ in range(5):
            assert compiled(ONE, ours).item() == step(ONE, eager).item() and ours.lr == eager.lr


def test_numpy_arrays_change():
    np = pytest.importorskip("numpy")

    def function(x, a):
        return x * float(a.sum()) + a[0]

    compiled = framejit.compile(function)
    with torch.no_grad():
        for value in (2.0, 2.0, 5.0, 5.0, 2.0):
            a = np.array([value, 1.0])
            same(compiled(ONE, a), function(ONE, a))


INDEX = torch.tensor([1])


def raising_inv(x, index):
    y = x * 2
    z = torch.linalg.inv(y)
    return z + index


def raising_after_a_write(x, index):
    x.mul_(2)
    y = torch.embedding(torch.ones(5, 3), index)
    return y + 1


def raising_after_an_extern_write(x, index):
    x.index_copy_(0, INDEX, torch.ones(1, 3))
    return torch.linalg.inv(x)


@pytest.mark.parametrize(
    "function, x, index",
    [(raising_inv, torch.zeros(3, 3), 1.0), (raising_after_a_write, torch.ones(3, 3), torch.tensor([7])), (raising_after_an_extern_write, torch.zeros(3, 3), 1.0)],
)
def test_an_error_in_a_compiled_region_is_eagers(function, x, index):
    """Type, message, state, and the user's line in the traceback, where the region had compiled for inputs that raise nothing."""
    compiled = framejit.compile(function, wait=True)
    good = torch.tensor([1]) if torch.is_tensor(index) else index
    with torch.no_grad():
        for _ in range(3):
            compiled(torch.eye(3), good)
        assert framejit.report(compiled).functions[0]["calls"]["compiled"] >= 2
        mine, eagers = x.clone(), x.clone()
        with pytest.raises(Exception) as want:
            function(eagers, index)
        with pytest.raises(type(want.value)) as got:
            compiled(mine, index)
        assert str(got.value) == str(want.value) and torch.equal(mine, eagers)
        lines = [(entry.name, entry.lineno + 1) for entry in got.traceback]
        assert lines[-1] == [(entry.name, entry.lineno + 1) for entry in want.traceback][-1]
        torch.testing.assert_close(compiled(torch.eye(3), good), function(torch.eye(3), good))
    assert not framejit.report(compiled).functions[0]["recompiles"]


VARIABLE = contextvars.ContextVar("VARIABLE", default=0)
UNSET = contextvars.ContextVar("UNSET")
LOCK = threading.Lock()


def sets(x, n):
    VARIABLE.set(n)
    return x * VARIABLE.get()


def sets_and_resets(x, n):
    token = VARIABLE.set(n)
    y = x * VARIABLE.get()
    VARIABLE.reset(token)
    return y + VARIABLE.get()


def resets_what_was_unset(x, n):
    token = UNSET.set(n)
    try:
        y = x * UNSET.get()
    finally:
        UNSET.reset(token)
    return y + (UNSET.get(None) is None)


def nests(x, n):
    outer, inner = VARIABLE.set(1), VARIABLE.set(n)
    y = x * VARIABLE.get()
    VARIABLE.reset(inner)
    y = y + VARIABLE.get()
    VARIABLE.reset(outer)
    return y + VARIABLE.get()


def keeps_the_token(x, n):
    token = VARIABLE.set(n)
    y = x * VARIABLE.get()
    framejit.graph_break()
    y = y + VARIABLE.get()
    VARIABLE.reset(token)
    try:
        VARIABLE.reset(token)
    except RuntimeError:
        y = y + 100
    return y


def under_a_lock(x, n):
    with LOCK:
        y = (x + n) * LOCK.locked()
    return y * (not LOCK.locked())


def acquires(x, n):
    LOCK.acquire()
    try:
        return (x + n) * LOCK.locked()
    finally:
        LOCK.release()


BREAKS = {under_a_lock: {"held"}, acquires: {"held"}, keeps_the_token: {"asked"}}


@pytest.mark.parametrize("function", [sets, sets_and_resets, resets_what_was_unset, nests, keeps_the_token, under_a_lock, acquires])
def test_context_variables_and_locks(function):
    compiled = framejit.compile(function, wait=True)

    def outcome(f, call):
        VARIABLE.set(10 + call)
        return f(torch.ones(2), call), VARIABLE.get(), UNSET.get(None), LOCK.locked()

    with torch.no_grad():
        for call in range(5):
            want = contextvars.copy_context().run(outcome, function, call)
            got = contextvars.copy_context().run(outcome, compiled, call)
            assert torch.equal(want[0], got[0]) and want[1:] == got[1:]
    row = framejit.report(compiled).functions[0]
    assert row["calls"]["compiled"] >= 2
    assert {b["code"] for b in row["breaks"]} == BREAKS.get(function, set())


def test_a_lock_is_held_while_compiled_code_runs():
    """The extern in the middle looks whether it is."""
    seen = []
    library = torch.library.Library("framejit_lock", "DEF")
    library.define("look(Tensor x) -> Tensor")
    library.impl("look", lambda x: (seen.append(LOCK.locked()), x + 1)[1], "CPU")

    @framejit.compile(wait=True)
    def f(x):
        with LOCK:
            y = torch.ops.framejit_lock.look(x * 2)
        return torch.ops.framejit_lock.look(y)

    with torch.no_grad():
        for _ in range(3):
            f(torch.ones(2))
    assert seen[-2:] == [True, False]


EVENTS = []


def raises_on_nan(x, b):
    y = x * 2
    if torch.isnan(y).any():
        raise ValueError("nan")
    return y + b


def two_ways(x, b):
    y = x * 2
    return y + b if (y > 0).all() else y - b


def halves(x, b):
    n = 0
    while (x.abs() > 1).any():
        x, n = x / 2, n + 1
    return x + b, n


def writes_later(x, b):
    y = x * 2
    if not (y > 0).all():
        b.add_(1)
    return y + b


def draws(x, b):
    y = x + torch.rand(4)
    return y + 1 if (y > 0).any() else y - b


def appends(x, b):
    EVENTS.append(1)
    if (x > 0).any().item():
        EVENTS.append(2)
        return x + b
    EVENTS.append(3)
    return x - b


SIGNS = {"one": lambda i: 1, "once": lambda i: 1 if i < 5 else -1, "each time": lambda i: (-1) ** i, "in threes": lambda i: (-1) ** (i // 3)}


@pytest.mark.parametrize("signs", SIGNS)
@pytest.mark.parametrize("function", [raises_on_nan, two_ways, halves, writes_later, draws, appends])
def test_checks_of_float_data(function, signs):
    """any() and all() of anything are assumed inside the region, and what follows happens only when they hold."""
    compiled = framejit.compile(function, wait=True)
    with torch.no_grad():
        for call in range(12):
            x, b = torch.full((4,), 3.0) * SIGNS[signs](call) * (call % 3 + 1), torch.zeros(4)
            outcomes = []
            for f in (function, compiled):
                EVENTS.clear()
                mine = b.clone()
                torch.manual_seed(call)
                outcomes.append((f(x, mine), mine, torch.rand(1), list(EVENTS)))
            torch.testing.assert_close(outcomes[1], outcomes[0], rtol=0, atol=0)
        if function is raises_on_nan:
            with pytest.raises(ValueError, match="nan"):
                compiled(torch.full((4,), float("nan")), b)
    row = framejit.report(compiled).functions[0]
    assert row["calls"]["compiled"] >= 6
    if function is raises_on_nan or (function is two_ways and signs != "each time" and signs != "in threes"):
        assert not row["breaks"] and len(row["regions"]) == 1


class Changing:
    pass


CHANGING = Changing()


def attempts(change):
    def f(x):
        try:
            change(CHANGING)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            x = x * 3
        CHANGING.items.append(9)
        return x + 1

    return f


def fails_below(o):
    o.items.append(7)
    o.items.remove(50)


def sorts_half(o):
    def key(v):
        if v == 1:
            raise ValueError(v)
        return v

    o.items.sort(key=key)


class Grumbling(dict):
    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        raise KeyError(key)


RAISERS = {
    "remove": lambda o: o.items.remove(5),
    "pop": lambda o: o.names.pop("zz"),
    "insert": lambda o: o.items.insert("a", 1),
    "below": fails_below,
    "setitem": lambda o: o.items.__setitem__(9, 1),
    "delattr": lambda o: delattr(o, "zz"),
    "delitem": lambda o: o.names.__delitem__("zz"),
    "sort": sorts_half,
    "python setitem": lambda o: operator.setitem(o.grumbling, "q", 1),
}


@pytest.mark.parametrize("name", RAISERS)
def test_a_change_that_raises_is_not_replayed(name):
    """The program catches the exception and goes on; C code may have changed half of it before."""
    function = attempts(RAISERS[name])
    compiled = framejit.compile(function, wait=True)
    with torch.no_grad():
        for _ in range(4):
            outcomes = []
            for f in (function, compiled):
                CHANGING.items, CHANGING.names, CHANGING.grumbling = [3, 2, 1, 0], {"a": 1}, Grumbling()
                outcomes.append((f(torch.ones(2)).tolist(), list(CHANGING.items), dict(CHANGING.names), dict(CHANGING.grumbling)))
            assert outcomes[0] == outcomes[1]
