"""The samples in which control leaves a line otherwise: exceptions, with, generators, coroutines, match."""
import asyncio
import contextlib
import sys

from language_samples import sample


# ---- exceptions ----

@sample
def try_statements():
    out = []
    for error in (ValueError("v"), KeyError("k"), None):
        try:
            out.append("in")
            if error:
                raise error
        except ValueError as e:
            out.append(repr(e))
        except (KeyError, OSError) as e:
            out.append(repr(e))
        else:
            out.append("else")
        finally:
            out.append("finally")
    return out, sys.exc_info()


@sample
def chained():
    try:
        try:
            {}["missing"]
        except KeyError as e:
            raise ValueError("chained") from e
    except ValueError as e:
        return repr(e.__cause__), repr(e.__context__), e.__suppress_context__


@sample
def from_none():
    try:
        raise TypeError from None
    except TypeError as e:
        return repr(e.__cause__), e.__suppress_context__


@sample
def reraised():
    try:
        try:
            int("x")
        except ValueError:
            raise
    finally:
        sys.exc_info()


@sample
def reraise_nothing():
    raise


@sample
def raise_no_exception():
    raise 3


@sample
def bad_cause():
    raise ValueError from 3


@sample
def class_makes_no_exception():
    class Odd(Exception):
        def __new__(cls):
            return 3
    raise Odd


@sample
def except_no_class():
    try:
        raise ValueError
    except (ValueError, 3):
        pass


@sample
def exception_groups():
    out = []
    try:
        raise ExceptionGroup("g", [ValueError(1), TypeError(2), ExceptionGroup("h", [OSError(3), ValueError(4)])])
    except* ValueError as group:
        out.append([repr(e) for e in group.exceptions])
    except* OSError as group:
        out.append(repr(group))
    except* TypeError:
        out.append("type")
    return out


@sample
def exception_group_left():
    try:
        raise ExceptionGroup("g", [ValueError(1), TypeError(2)])
    except* ValueError:
        raise KeyError("new")


@sample
def finally_returns():
    for i in range(3):
        try:
            try:
                1 / (i - 1)
            finally:
                if i == 1:
                    return "swallowed"
        except ZeroDivisionError:
            return "not reached"


@sample
def error_in_finally():
    try:
        1 / 0
    finally:
        {}["second"]


@sample
def with_statements():
    out = []

    @contextlib.contextmanager
    def manager(name):
        out.append("enter " + name)
        try:
            yield name
        except ZeroDivisionError:
            out.append("caught in " + name)
        finally:
            out.append("exit " + name)
    with manager("a") as a, manager("b"):
        out.append(a)
        1 / 0
    with contextlib.suppress(KeyError):
        {}[1]
    for name in "xy":
        with manager(name):
            if name == "x":
                continue
            return out


@sample
def with_error():
    with contextlib.nullcontext():
        raise ValueError("through")


@sample
def with_nothing():
    with 3:
        pass


@sample
def with_half():
    class Half:
        def __enter__(self):
            return self
    with Half():
        pass


# ---- generators and coroutines ----

@sample
def generators():
    def numbers(n):
        got = []
        try:
            for i in range(n):
                got.append((yield i))
        except KeyError as e:
            got.append(repr(e))
            yield "thrown"
        finally:
            got.append("closed")
        return got

    def outer():
        return (yield from numbers(3))
    g = outer()
    out = [next(g), g.send("a"), g.throw(KeyError("k"))]
    try:
        next(g)
    except StopIteration as e:
        out.append(e.value)
    h = numbers(2)
    next(h)
    h.close()
    return out, list(numbers(2)), sum(x * x for x in range(5))


@sample
def throw_into_subiterator():
    class Iterator:
        def __iter__(self):
            return self

        def __next__(self):
            return 1

        def throw(self, *args):
            return "got it"

    def outer():
        yield from Iterator()
    g = outer()
    next(g)
    return g.throw(ValueError)


@sample
def throw_unstarted():
    def g():
        yield 1
    g().throw(ValueError("early"))


@sample
def throw_uncaught():
    def inner():
        yield 1

    def outer():
        yield from inner()
    g = outer()
    next(g)
    g.throw(ValueError("deep"))


@sample
def generator_stop_iteration():
    def g():
        yield 1
        raise StopIteration
    return list(g())


@sample
def yield_from_coroutine():
    async def c():
        return 1

    def g(x):
        yield from x
    coroutine = c()
    try:
        return list(g(coroutine))
    finally:
        coroutine.close()


@sample
def coroutines():
    class Manager:
        async def __aenter__(self):
            await asyncio.sleep(0)
            return "entered"

        async def __aexit__(self, *error):
            return error[0] is ZeroDivisionError

    async def ticks(n):
        for i in range(n):
            await asyncio.sleep(0)
            yield i

    async def main():
        out = [i async for i in ticks(3)]
        async for i in ticks(2):
            out.append(i)
        async with Manager() as m:
            out.append(m)
            1 / 0
        out.append(await asyncio.gather(*[asyncio.sleep(0, result=k) for k in "ab"]))
        return out
    return asyncio.run(main())


@sample
def async_for_error():
    async def ticks():
        yield 1
        raise LookupError("in the generator")

    async def main():
        async for i in ticks():
            pass
    asyncio.run(main())


@sample
def await_nothing():
    async def main():
        await 3
    asyncio.run(main())


@sample
def async_with_nothing():
    async def main():
        async with 3:
            pass
    asyncio.run(main())


@sample
def async_for_nothing():
    async def main():
        async for i in 3:
            pass
    asyncio.run(main())


# ---- match ----

class Point:
    __match_args__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y


def describe(subject):
    match subject:
        case []:
            return "empty"
        case [1, *rest]:
            return "one", rest
        case {"k": value, **others}:
            return value, others
        case Point(x=0, y=y):
            return "axis", y
        case Point(a, b) if a == b:
            return "diagonal"
        case Point(x, _):
            return "point", x
        case str() | bytes() as text:
            return text
        case -3 | None | True:
            return "constant"
        case (a, b):
            return a + b
        case _:
            return "other"


@sample
def matching():
    return [describe(s) for s in ([], [1, 2, 3], {"k": 1, "z": 2}, {"q": 1}, Point(0, 4), Point(2, 2), Point(2, 3), "s", b"b", -3, None, True,
                                  (4, 5), 6.5)]


@sample
def match_bad_class():
    match 3:
        case SAMPLES(x):
            pass


# ---- imports, interactive ----

@sample
def imports():
    import os.path
    import xml.dom as dom
    from json import decoder, dumps as d
    space = {}
    exec("from colorsys import *", space)
    return os.path.__name__, dom.__name__, decoder.__name__, d([1]), sorted(k for k in space if k[0] != "_")


@sample
def import_missing_module():
    import no_such_module_anywhere


@sample
def import_missing_name():
    from json import no_such_name


@sample
def import_star_missing():
    exec("__builtins__ = {}\nfrom os import *", {})


@sample
def interactive():
    shown = []
    old = sys.displayhook
    sys.displayhook = shown.append
    try:
        exec(compile("for i in range(2): i + 1\n", "<console>", "single"), {})
    finally:
        sys.displayhook = old
    return shown


@sample
def no_build_class():
    exec("class C: pass", {"__builtins__": {}})


@sample
def locals_and_frames():
    x = 1
    here = sys._getframe()
    names = sorted(locals())
    return names, here.f_code.co_name, here.f_lineno - here.f_code.co_firstlineno, here.f_locals["x"]
