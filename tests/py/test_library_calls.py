"""C code of the standard library with a state of its own: deques, caches, warnings, ABCs, modes. Every call as eager, and its state too.

A row makes a function, with the state that it works on: eager and compiled get one each.
"""

import abc
import collections
import contextlib
import functools
import pickle
import sys
import traceback
import warnings

import pytest

torch = pytest.importorskip("torch")
import framejit  # noqa: E402
from eager_compare import compare, outcome  # noqa: E402
from torch.overrides import TorchFunctionMode  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

cut = framejit.graph_break


class Stack:
    def __init__(self):
        self.callbacks = collections.deque()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        while self.callbacks:
            self.callbacks.pop()()


def with_stack(make_stack, push):
    def function(x, n):
        with make_stack() as stack:
            push(stack, lambda: x.add_(n + 1))
            cut()
            return x * 2
    return function


def new_deque(use):
    """A deque that the call makes, with a break after each use of it."""
    def function(x, n):
        d, seen = collections.deque(), []
        for step in use:
            seen.append(step(d, x, n))
            cut()
        return x * 2, list(d), seen
    return function


def own_deque(use):
    """A deque that is there before the call and changes in it; no break is asked for."""
    d = collections.deque([5, 6], maxlen=5)

    def function(x, n):
        d.append(n)
        seen = use(d, n)
        return x * 2, seen
    return function


PAIRS = [lambda d, x, n: d.append((n, x + 1)), lambda d, x, n: d.appendleft([n, x + 2])]
OWN = {
    "copy": lambda d, n: d.copy(),
    "list": lambda d, n: list(d),
    "length": lambda d, n: len(d),
    "pop": lambda d, n: d.pop(),
    "popleft": lambda d, n: d.popleft(),
    "index": lambda d, n: d.index(n),
    "count": lambda d, n: d.count(1),
    "item": lambda d, n: d[0],
    "in": lambda d, n: 2 in d,
    "sum": lambda d, n: d + d,
    "equal": lambda d, n: d == collections.deque([5, 6, 0]),
    "insert into a full one": lambda d, n: d.insert(1, n),
    "remove": lambda d, n: d.remove(1),
    "bound before": lambda d, n: [push(n) for push in (d.append, d.appendleft)],
    "unbound": lambda d, n: collections.deque.append(d, n + 1),
    "rotate": lambda d, n: d.rotate(n),
    "extend": lambda d, n: d.extend([n, n + 1]),
    "clear and fill": lambda d, n: (d.clear(), d.extendleft((n, 7))),
}
DEQUES = {
    "exit stack": lambda: with_stack(contextlib.ExitStack, lambda s, f: s.callback(f)),
    "own stack": lambda: with_stack(Stack, lambda s, f: s.callbacks.append(f)),
    "pairs": lambda: new_deque(PAIRS),
    "functions": lambda: new_deque([lambda d, x, n: d.append(lambda: n), lambda d, x, n: d.pop()()]),
    "pop and rotate": lambda: new_deque([*PAIRS, lambda d, x, n: d.rotate(1), lambda d, x, n: d.popleft()[0]]),
    **{"own: " + name: lambda use=use: own_deque(use) for name, use in OWN.items()},
}


@pytest.mark.parametrize("name", DEQUES)
def test_deques(name):
    compare(DEQUES[name])


def test_a_deque_that_is_only_filled_breaks_nothing():
    compiled = compare(lambda: own_deque(lambda d, n: d.appendleft(n)))
    assert not framejit.report(compiled).breaks


def cached(wrap, use, clear_at=()):
    """A function that uses what a cache keeps, and the cache's own counts; it is emptied before the calls numbered clear_at."""
    made, kept, calls = [], [], []
    cache = wrap(lambda k: made.append(k) or torch.zeros(2))

    def function(x, n):
        return use(cache, x, n)

    def call(x, n):
        if len(calls) in clear_at:
            cache.cache_clear()
        calls.append(n)
        out = function(x, n)
        kept.append(cache(1))
        counts = cache.cache_info()[:2] if cache.cache_parameters()["maxsize"] else None   # of the others hits are not counted
        return out, len(made), counts, [t is kept[-1] for t in kept]
    return function, call


CACHES = {
    "changed in place": (functools.lru_cache, lambda g, x, n: g(1).add_(x) * 1),
    "unbounded": (functools.cache, lambda g, x, n: g(1).add_(x) * n),
    "two keys": (functools.lru_cache, lambda g, x, n: (g(n % 2).add_(x) * 1, g(1))),
    "the oldest goes": (functools.lru_cache(maxsize=2), lambda g, x, n: (g(5).add_(x) * 1, g(n).add_(1) * 1)),
    "keeps nothing": (functools.lru_cache(maxsize=0), lambda g, x, n: g(n).add_(x) * 1),
    "with a break": (functools.lru_cache, lambda g, x, n: (g(1).add_(x) * 1, cut(), g(2).add_(x) * 2)),
    "key is a tensor": (functools.lru_cache, lambda g, x, n: g(x).add_(x) * 1),
    "by map": (functools.lru_cache, lambda g, x, n: [t.add_(x) * 1 for t in map(g, (1, 2))]),
}


@pytest.mark.parametrize("name", CACHES)
def test_caches(name):
    (_, eager), (function, call) = cached(*CACHES[name], clear_at=(5, 9)), cached(*CACHES[name], clear_at=(5, 9))
    compiled = framejit.compile(function, wait=True)
    call.__closure__[call.__code__.co_freevars.index("function")].cell_contents = compiled
    with torch.no_grad():
        for n in (0, 1, 1, 3, 0, 2, 1, 3, 1, 1, 2, 1, 1):
            x, y = torch.ones(2), torch.ones(2)
            assert (outcome(call, x, n), x.tolist()) == (outcome(eager, y, n), y.tolist())


def test_a_cache_that_never_settles_is_in_the_report():
    numbers = iter(range(1000))
    cache = functools.lru_cache(lambda k: torch.ones(1) * k)
    compiled = framejit.compile(lambda x: x + cache(next(numbers)), wait=True)
    settled = framejit.compile(lambda x: x + cache(0), wait=True)
    with torch.no_grad():
        for i in range(40):
            assert compiled(torch.ones(1)) == i + 1
            assert settled(torch.ones(1)) == 1
    assert framejit.report(settled).calls["compiled"] > 30
    assert "a functools.lru_cache gets something new in every recorded call" in str(framejit.report(compiled))


def abstract(ask):
    """What an abstract class says of another; numbers 2 and 3 of the calls register it, with an unrelated class in between."""
    class Base(abc.ABC):
        pass

    class Other(abc.ABC):
        pass

    class Thing:
        pass

    generic = functools.singledispatch(lambda o: 1)
    generic.register(Base, lambda o: 5)

    def function(x, n):
        if n == 2:
            Other.register(Thing)
        if n == 3:
            Base.register(Thing)
        return inner(x)

    def inner(x):
        return x * (2 if ask(Base, Thing(), generic) else 3)
    inner = framejit.compile(inner, wait=True)
    return function


ABSTRACT = {
    "instance": lambda base, o, generic: isinstance(o, base),
    "one of several": lambda base, o, generic: isinstance(o, (int, base)),
    "subclass": lambda base, o, generic: issubclass(type(o), base),
    "generic function": lambda base, o, generic: generic(o) == 5,
}


@pytest.mark.parametrize("name", ABSTRACT)
def test_abstract_classes(name):
    eager = [3, 3, 3, 3, 3, 2, 2, 2]
    function = abstract(ABSTRACT[name])
    with torch.no_grad():
        assert [function(torch.ones(1), n).item() for n in (0, 1, 0, 2, 0, 3, 0, 0)] == eager


def test_a_registration_in_the_compiled_function():
    class Base(abc.ABC):
        pass
    compare(lambda: lambda x, n: (Base.register(type("T", (), {})), x * 2)[1])


def test_a_metaclass_in_python_sees_the_value():
    class Small(type):
        def __instancecheck__(cls, o):
            return o < 2

    class Check(metaclass=Small):
        pass
    compare(lambda: lambda x, n: x * 2 if isinstance(n, Check) else x * 3)


class Own(UserWarning):
    pass


def helper(x, level, message="from a helper", category=None):
    warnings.warn(message, category, stacklevel=level)
    return x + 1


def ignored(x, n):   # the filters come and go, with a warning in between
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn("not seen")
        y = x * 2
    warnings.warn("seen")
    return y


def recorded(x, n):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        warnings.warn("inside")
        y = x * 2
    return y, [str(w.message) for w in seen]


def in_place(x, n):
    x.add_(1)
    warnings.warn("between", stacklevel=1)
    return x * 2


WARNINGS = {
    "plain": lambda x, n: (warnings.warn("careful"), x * 2)[1],
    "text that changes": lambda x, n: (warnings.warn(f"careful {n}", DeprecationWarning), x * 2)[1],
    "an object": lambda x, n: (warnings.warn(Own("mine", n)), x * 2)[1],
    "the caller's line": lambda x, n: helper(x, 2),
    "the helper's line": lambda x, n: helper(x, 1, category=Own),
    "outside of the recording": lambda x, n: helper(x, 3),
    "far outside": lambda x, n: helper(x, 300),
    "level from outside": lambda x, n: helper(x, n, "levels"),
    "after a break": lambda x, n: (cut(), helper(x, 2), x * 2)[2],
    "no category": lambda x, n: helper(x, 1, category=int),
    "ignored": ignored,
    "recorded": recorded,
    "in place": in_place,
}
FILTERS = ["always", "default", "module", "once", "ignore", "error"]


def warned(function, filters):
    """What a caller sees: results, errors with their lines, warnings with their places."""
    seen = []
    for action in filters:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter(action)
            before = list(warnings.filters)
            for n in (1, 2, 1, 2, 3, 1):
                x = torch.ones(1)
                try:
                    seen.append(str(function(x, n)))
                except (Warning, TypeError) as error:
                    lines = [(f.name, f.lineno) for f in traceback.extract_tb(error.__traceback__)]
                    seen.append((repr(error), [at for at in lines if at[0] != "warned"], x.tolist()))
                assert warnings.filters == before
        seen += [(action, str(w.message), w.category, w.filename, w.lineno) for w in caught]
    return seen


@pytest.mark.parametrize("name", WARNINGS)
def test_warnings(name):
    function = WARNINGS[name]
    compiled = framejit.compile(function, wait=True)
    with torch.no_grad():
        for filters in (FILTERS, FILTERS[::-1], ["always", "error", "default"]):
            globals().get("__warningregistry__", {}).clear()
            want = warned(function, filters)
            globals().get("__warningregistry__", {}).clear()
            assert warned(compiled, filters) == want


def test_an_effect_is_not_recorded_where_it_is_done_again(python):
    """A stdout written in Python: what print() does with it is no part of the region."""
    done = python("""
import sys, torch, framejit
lines = []
class Tee:
    def write(self, text): lines.append(text)
    def flush(self): pass
def f(x):
    print("once", end="!")
    return x * 2
c, sys.stdout = framejit.compile(f, wait=True), Tee()
with torch.no_grad(): [c(torch.ones(1)) for _ in range(6)]
sys.__stdout__.write(str(len(lines)) + " " + str(framejit.report(c).calls["compiled"]))
""")
    assert done.stdout == "12 5", done.stderr


class Seeing(TorchDispatchMode):
    def __init__(self, seen):
        super().__init__()
        self.seen = seen

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {})) * 2


class SeeingFunctions(TorchFunctionMode):
    def __init__(self, seen):
        self.seen = seen

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append(func.__name__)
        return func(*args, **(kwargs or {}))


class PassingFunctions(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class ChangingFunctions(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {})) if func is not torch.sin else torch.zeros(2, 2)


class Flops:
    def __init__(self, seen):
        self.mode, self.seen = FlopCounterMode(display=False), seen

    def __enter__(self):
        self.mode.__enter__()

    def __exit__(self, *error):
        self.mode.__exit__(*error)
        self.seen.append(self.mode.get_total_flops())


MODES = {"dispatch": Seeing, "functions": SeeingFunctions, "functions, passing": lambda seen: PassingFunctions(),
         "functions, changing": lambda seen: ChangingFunctions(), "flops": Flops, "device": lambda seen: torch.device("meta"),
         "nothing": lambda seen: contextlib.nullcontext()}


def operators(x):
    return torch.sin(x) + x @ x + torch.ones(2, device=x.device)


@pytest.mark.parametrize("first", MODES)
def test_modes_around_a_call(first):
    compiled = framejit.compile(operators, wait=True)
    x = torch.ones(2, 2)
    with torch.no_grad():
        for mode in (first, first, "nothing", "nothing", *MODES, first):
            outcomes = []
            for function in (operators, compiled):
                seen = []
                with MODES[mode](seen):
                    y = function(x)
                outcomes.append((y.tolist(), seen))
            assert outcomes[0] == outcomes[1], mode
    assert framejit.report(compiled).calls["compiled"] >= 1


@pytest.mark.parametrize("mode", MODES)
def test_modes_inside_a_function(mode):
    def make(seen):
        def function(x, breaks):
            y = x + 1
            with MODES[mode](seen):
                y = y * x
                if breaks:
                    cut()
                z = torch.sin(y) + 1
            return z + y
        return function
    seen, want = [], []
    eager, compiled = make(want), framejit.compile(make(seen), wait=True)
    with torch.no_grad():
        for i in range(8):
            x = torch.ones(2, 2) * i
            torch.testing.assert_close(compiled(x, i % 2), eager(x, i % 2))
            assert seen == want


def doubled(x):
    return x * 2


@framejit.compile
def tripled(x):
    return x * 3


def test_pickle():
    """By the name that leads to it, otherwise as compile() of the function that stands there."""
    assert pickle.loads(pickle.dumps(tripled)) is tripled
    options = {"fullgraph": True, "options": {"recompile_limit": 3}}
    again = pickle.loads(pickle.dumps(framejit.compile(doubled, **options)))
    assert again.__wrapped__ is doubled and again(torch.ones(1)) == 2
    function, arguments = again.__reduce__()
    assert function.func is framejit.compile and arguments == (doubled,)
    assert options.items() <= function.keywords.items()
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(framejit.compile(lambda x: x))


@pytest.mark.parametrize("ask", [lambda g, x: g(1) * 2 + g(2) + g(3), lambda g, x: g(x.sum()) + 1], ids=["in turn", "with a new key"])
def test_a_cache_that_keeps_nothing_from_call_to_call(ask):
    """One element, asked for several things, or for what only this call has: every call makes them anew, compiled ones too."""
    cache = functools.lru_cache(maxsize=1)(lambda k: torch.ones(2) * k)
    compiled = framejit.compile(lambda x: ask(cache, x) * x, wait=True)
    with torch.no_grad():
        for n in range(8):
            x = torch.ones(2) * n
            assert torch.equal(compiled(x), ask(functools.cache(lambda k: torch.ones(2) * k), x) * x)
    assert framejit.report(compiled).calls["compiled"] >= 5
