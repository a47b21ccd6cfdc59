"""What a watcher sees of the interpreter and how it steers it, through the watcher in Python that `_C.watch` installs."""
import dis

import pytest
from framejit import _C


def events_of(function, code=None):
    events = []

    def note(event, shadow):
        if code is None or event[1] is code:
            events.append(event)
    return _C.watch(function, note), events


def unit_of(function, opname, nth=0):
    return [i.offset // 2 for i in dis.get_instructions(function) if i.opname == opname][nth]


def add(a, b):
    return a + b


def test_order_of_events():
    result, events = events_of(lambda: add(1, 2), add.__code__)
    assert result == 3
    assert [(e[0], *e[3:]) if e[0] in ("before", "after") else (e[0], *e[2:]) for e in events] == [
        ("enter", 0),
        ("before", "Resume", []), ("after", "Resume", []),
        ("before", "LoadFast", []), ("after", "LoadFast", [1]),
        ("before", "LoadFast", [1]), ("after", "LoadFast", [1, 2]),
        ("before", "BinaryOp", [1, 2]), ("after", "BinaryOp", [3]),
        ("before", "ReturnValue", [3]),
        ("leave", "return", 2),
    ]


def test_every_activation_has_its_own_shadow():
    def down(n):
        return n and down(n - 1) + 1
    entered, pairs = [], []

    def note(event, shadow):
        if event[1] is not down.__code__:
            return None
        if event[0] == "enter":
            entered.append(f"activation {len(entered)}")
            return entered[-1]
        if event[0] == "leave":
            pairs.append(shadow)
    assert _C.watch(lambda: down(3), note) == 3
    assert pairs == entered[::-1]


def test_leave_says_how():
    def numbers():
        yield 1
        raise KeyError

    def program():
        try:
            return list(numbers())
        except KeyError:
            return "error"
    result, events = events_of(program, numbers.__code__)
    assert result == "error"
    # Making the generator is CPython's work; each resume is an activation of its own.
    assert [(e[0], e[2]) for e in events if e[0] in ("enter", "leave")] == [
        ("enter", 0), ("leave", "hand over"), ("enter", 0), ("leave", "yield"), ("enter", 0), ("leave", "error")]


def test_throw_enters_with_the_flag():
    def numbers():
        yield 1

    def program():
        g = numbers()
        next(g)
        with pytest.raises(KeyError):
            g.throw(KeyError)
    _, events = events_of(program, numbers.__code__)
    assert [e[2] for e in events if e[0] == "enter"] == [0, 0, 1]


def test_unwound_tells_the_depth():
    def program(x):
        for i in x:
            try:
                [].missing
            except AttributeError:
                return i
    result, events = events_of(lambda: program([7]), program.__code__)
    assert result == 7
    at = [e[0] for e in events].index("unwound")
    assert events[at][2] == 2 + 1 + 1                       # two locals; the iterator; the exception
    assert len(events[at + 1][4]) == 1 + 1


def steer_once(code, unit, answer):
    """Before the instruction at `unit`, once, the answer; if it is an exception, raise it."""
    fired = []

    def callback(event, shadow):
        if event[0] == "before" and event[1] is code and event[2] == unit and not fired:
            fired.append(event)
            if isinstance(answer, BaseException):
                raise answer
            return answer
    return callback


def test_return_instruction():
    callback = steer_once(add.__code__, 0, (None, ["steered"]))
    assert _C.watch(lambda: add(1, 2), callback) == "steered"


def test_return_from_a_generator():
    def numbers():
        yield 1
        yield 2

    def program():
        g = numbers()
        first = next(g)
        try:
            next(g)
        except StopIteration as stop:
            return first, stop.value, list(g)
    callback = steer_once(numbers.__code__, unit_of(numbers, "LOAD_CONST", 1), (None, ["early"]))
    assert _C.watch(program, callback) == (1, "early", [])


def test_jump_with_another_stack():
    def program(n):
        total = 0
        for i in range(n):
            total += i
        return total * 10
    # Over the whole loop, to the multiplication, as if the loop had ended with 9.
    callback = steer_once(program.__code__, 0, (unit_of(program, "BINARY_OP", 1), [9, 10]))
    assert _C.watch(lambda: program(5), callback) == 90


def test_before_is_called_for_the_target():
    seen = []

    def callback(event, shadow):
        if event[0] == "before" and event[1] is add.__code__:
            seen.append(event[3:])
            if event[3] == "Resume":
                return unit_of(add, "BINARY_OP"), [4, 5]
            if event[3] == "BinaryOp" and event[4] == [4, 5]:
                return event[2], [6, 7]             # the instruction itself with other operands: executed, not asked again
    assert _C.watch(lambda: add(1, 2), callback) == 13
    assert seen == [("Resume", []), ("BinaryOp", [4, 5]), ("ReturnValue", [13])]


def test_enter_at_a_call_with_keywords():
    def callee(*args, **kw):
        return args, kw

    def program():
        return callee(1, key=2)
    for opname in ("KW_NAMES", "PRECALL", "CALL"):
        callback = steer_once(program.__code__, 0, (unit_of(program, opname), [..., callee, 10, 20]))
        assert _C.watch(program, callback) == ((10,), {"key": 20})


def test_error_is_raised_at_the_instruction():
    def program(x):
        try:
            y = x + 1
        except LookupError as error:
            return str(error), error.__traceback__.tb_lineno - program.__code__.co_firstlineno
        return y
    callback = steer_once(program.__code__, unit_of(program, "BINARY_OP"), KeyError("steered"))
    assert _C.watch(lambda: program(1), callback) == ("'steered'", 2)


def test_error_without_a_handler():
    with pytest.raises(KeyError, match="steered") as info:
        _C.watch(lambda: add(1, 2), steer_once(add.__code__, unit_of(add, "BINARY_OP"), KeyError("steered")))
    assert "add" in [entry.frame.code.name for entry in info.traceback]


def test_the_watcher_may_leave_in_the_middle():
    seen = []

    def callback(event, shadow):
        seen.append((event[0], event[1].co_name, event[3] if event[0] == "before" else None))
        if event[1] is add.__code__ and event[0] == "before" and event[3] == "BinaryOp":
            return False
    assert _C.watch(lambda: add(1, 2) + add(3, 4), callback) == 10
    assert seen[-1] == ("before", "add", "BinaryOp")


def test_nested_watchers():
    outer, inner = [], []

    def program():
        first = add(1, 2)
        second = _C.watch(lambda: add(3, 4), lambda event, shadow: inner.append(event[0]))
        return first + second + add(5, 6)
    assert _C.watch(program, lambda event, shadow: outer.append((event[0], event[1].co_name))) == 21
    assert inner.count("enter") == inner.count("leave") == 2
    assert outer.count(("enter", "add")) == outer.count(("leave", "add")) == 2


def test_callbacks_are_not_watched():
    def helper():
        return 1

    names = set()

    def callback(event, shadow):
        helper()
        names.add(event[1].co_name)
    _C.watch(lambda: add(1, 2), callback)
    assert names == {"<lambda>", "add"}


def test_exception_on_its_way_survives_the_callbacks():
    def failing():
        raise ValueError("kept")

    def callback(event, shadow):
        try:
            raise KeyError
        except KeyError:
            pass
    with pytest.raises(ValueError, match="kept"):
        _C.watch(failing, callback)


def test_stack_is_balanced_after_steering():
    marker = object()
    import sys
    count = sys.getrefcount(marker)

    def program(x):
        return [x, x, add(x, 1)]
    for _ in range(5):
        with pytest.raises(TypeError):
            _C.watch(lambda: program(marker), lambda event, shadow: None)
        assert _C.watch(lambda: program(marker), steer_once(program.__code__, unit_of(program, "CALL"), (None, [7]))) == 7
    assert sys.getrefcount(marker) == count
