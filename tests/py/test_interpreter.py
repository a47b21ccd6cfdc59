"""The interpreter against CPython: every sample of the language, and what an evaluator must get right beside instructions."""
import ctypes
import gc
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest
from framejit import _C
from language_samples import SAMPLES
import language_samples_flow  # noqa: F401  adds its own

DEFINITIONS = os.path.join(os.path.dirname(__file__), "..", "..", "plugin", "interpret", "instruction.def")


def interpreted(function, *args):
    before = _C.interpreter_counters()["frames"]
    _C.interpret_everything(True)
    try:
        return function(*args)
    finally:
        _C.interpret_everything(False)
        assert _C.interpreter_counters()["frames"] > before


def outcome(function):
    """The result, or the exception with what its traceback shows of this process."""
    try:
        return "returned", repr(function())
    except Exception as error:
        lines, tb = [], error.__traceback__.tb_next
        while tb:
            code = tb.tb_frame.f_code
            lines.append((code.co_name, tb.tb_lineno, list(code.co_positions())[tb.tb_lasti // 2]))
            tb = tb.tb_next
        return "raised", type(error).__name__, re.sub(r" at 0x\w+", "", str(error)), repr(error.__context__), lines


@pytest.mark.parametrize("function", SAMPLES, ids=lambda f: f.__name__)
def test_sample(function):
    outcome(function)    # imports, caches
    expected = outcome(function)
    assert interpreted(outcome, function) == expected


def test_samples_use_every_instruction():
    with open(DEFINITIONS) as text:
        defined = set(re.findall(r"^INSTRUCTION\((\w+)\)", text.read(), re.M))
    seen = set()

    def note(event, shadow):
        if event[0] == "before":
            seen.add(event[3])
    for function in SAMPLES:
        try:
            _C.watch(function, note)
        except Exception:
            pass
    assert defined - seen == set()


def test_samples_leave_nothing_behind():
    functions = [f for f in SAMPLES if f.__name__ not in ("imports", "import_missing_module")]    # these fill caches of the import system

    def rounds(n):
        for _ in range(n):
            for function in functions:
                outcome(function)
        gc.collect()
        return sys.getallocatedblocks()
    interpreted(rounds, 3)
    start = interpreted(rounds, 1)
    grown = interpreted(rounds, 10) - start
    assert grown < 10 * len(functions), f"{grown} blocks more after 10 rounds"


# ---- eval breaker ----

def spin_until(done, seconds=20):
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "the eval breaker was not served"


def test_signal_handler_gets_the_frame():
    frames = []
    old = signal.signal(signal.SIGALRM, lambda number, frame: frames.append(frame.f_code.co_name))

    def busy():
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        n = 0
        while not frames:
            n += 1
        return n
    try:
        assert interpreted(busy) > 0
    finally:
        signal.signal(signal.SIGALRM, old)
    assert frames == ["busy"]


def test_signal_handler_may_raise():
    def raise_error(number, frame):
        raise LookupError("from the handler")
    old = signal.signal(signal.SIGALRM, raise_error)

    def busy():
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        try:
            while True:
                pass
        except LookupError as error:
            return str(error)
    try:
        assert interpreted(busy) == "from the handler"
    finally:
        signal.signal(signal.SIGALRM, old)


def test_other_threads_run():
    flags = []

    def busy():
        thread = threading.Thread(target=lambda: flags.append(1))
        thread.start()
        spin_until(lambda: flags)
        thread.join()
    interpreted(busy)


def test_asynchronous_exception():
    caught, started = [], []

    def victim():
        try:
            started.append(threading.get_ident())
            while True:
                pass
        except KeyError:
            caught.append(sys.exc_info()[2].tb_frame.f_code.co_name)

    def attack():
        thread = threading.Thread(target=victim)
        thread.start()
        spin_until(lambda: started)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(started[0]), ctypes.py_object(KeyError))
        thread.join(20)
        assert not thread.is_alive()
    interpreted(attack)
    assert caught == ["victim"]


def run_script(text, **environment):
    """A process of its own; everything in it is interpreted."""
    import framejit
    folder = os.path.dirname(os.path.dirname(os.path.abspath(framejit.__file__)))
    path = os.pathsep.join(filter(None, (folder, os.environ.get("PYTHONPATH"))))
    prelude = "from framejit import _C\n_C.interpret_everything(True)\n"
    return subprocess.run([sys.executable, "-c", prelude + textwrap.dedent(text)], capture_output=True, text=True, timeout=120,
                          env=dict(os.environ, PYTHONPATH=path, **environment))


def test_audit_hook_written_in_python_and_signals():
    done = run_script("""
        import signal, sys
        seen, hits = [], []
        sys.addaudithook(lambda event, args: seen.append(event))
        signal.signal(signal.SIGALRM, lambda *a: hits.append(1))
        signal.setitimer(signal.ITIMER_REAL, 0.01, 0.001)
        while len(hits) < 5:
            compile("1 + 1", "x", "eval")
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(len(hits) >= 5, "compile" in seen)
    """)
    assert done.stdout.split() == ["True", "True"], done.stderr


# ---- tracing ----

def traced_program(events):
    def trace(frame, event, arg):
        name = frame.f_code.co_name
        if name in ("inner", "outer", "numbers"):
            events.append((name, event, frame.f_lineno - frame.f_code.co_firstlineno))
        return trace

    def start():
        sys.settrace(trace)
        sys._getframe(1).f_trace = trace
        sys._getframe(2).f_trace = trace

    def numbers():
        yield 1
        yield 2

    def inner(fail):
        start()
        x = list(numbers())
        if fail:
            raise ValueError(x)
        return x

    def outer():
        first = inner(False)
        try:
            inner(True)
        except ValueError:
            return first
        finally:
            sys.settrace(None)
    return outer()


def test_settrace_in_the_middle_of_a_frame():
    plain, ours = [], []
    assert traced_program(plain) == interpreted(traced_program, ours)
    assert plain and ours == plain


def test_trace_function_that_raises():
    def program():
        def trace(frame, event, arg):
            raise KeyError(event)

        def start():
            sys.settrace(trace)

        def inner():
            start()
            return abs(-1)

        def call():
            return 3
        try:
            inner()
            call()
        except KeyError as error:
            return str(error), sys.gettrace()
        finally:
            sys.settrace(None)
    assert interpreted(program) == program()


def test_profile_in_the_middle_of_a_frame():
    def program():
        events = []

        def profile(frame, event, arg):
            events.append((frame.f_code.co_name, event))

        def start():
            sys.setprofile(profile)

        def inner():
            start()
            return len([1])
        inner()
        sys.setprofile(None)
        return events
    assert interpreted(program) == program()


# ---- depth ----

def test_recursion_error():
    def down(n):
        return down(n + 1)

    def program():
        try:
            down(0)
        except RecursionError as error:
            return str(error)
    assert interpreted(program) == program()


def test_recursion_error_leaves_room():
    def down(n):
        try:
            return down(n + 1)
        except RecursionError:
            return n
    assert abs(interpreted(down, 0) - down(0)) <= 2


def test_c_stack_is_not_overrun():
    done = run_script("""
        import sys, threading
        sys.setrecursionlimit(10**7)
        def down(n): return down(n + 1)
        def attempt():
            try: down(0)
            except RecursionError as error: print(error)
        attempt()
        threading.stack_size(1 << 20)
        thread = threading.Thread(target=attempt)
        thread.start()
        thread.join()
    """)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("C stack is used up") == 2


# ---- frames and code objects ----

def test_frame_objects_outlive_their_call():
    def inner(x):
        y = x + 1
        return sys._getframe()

    def program():
        frame = inner(1)
        return frame.f_locals, frame.f_back is None, frame.f_lineno - frame.f_code.co_firstlineno
    assert interpreted(program) == program()


def test_generator_frames_move():
    def g():
        frame = sys._getframe()
        yield frame.f_lineno - frame.f_code.co_firstlineno, frame.f_back.f_code.co_name
        yield frame.f_lineno - frame.f_code.co_firstlineno, frame.f_back.f_code.co_name

    def program():
        h = g()
        return next(h), list(h), h.gi_frame, h.gi_running
    assert interpreted(program) == program()


def test_generator_resumed_by_whoever():
    def g():
        total = 0
        while True:
            total += yield total
    h = g()
    assert [interpreted(h.send, None), h.send(1), interpreted(h.send, 2), h.send(3)] == [0, 1, 3, 6]


def test_traceback_keeps_locals():
    def failing():
        kept = "here"
        raise ValueError

    def program():
        try:
            failing()
        except ValueError as error:
            return error.__traceback__.tb_next.tb_frame.f_locals["kept"]
    assert interpreted(program) == "here"


def test_code_objects_are_forgotten():
    def make(n):
        for i in range(n):
            exec(f"def f(): return {i}\nf()", {})
        gc.collect()
        return _C.interpreter_counters()["decoded"]
    start = interpreted(make, 10)
    assert interpreted(make, 500) <= start + 20


def test_code_replaced_in_place():
    def first():
        return 1

    def second():
        return 2

    def program():
        before = first()
        old, first.__code__ = first.__code__, second.__code__
        after = first()
        first.__code__ = old
        return before, after
    assert interpreted(program) == (1, 2)


def test_many_match_operands():
    fields = ", ".join(f"f{i}" for i in range(300))
    text = f"""
class Wide:
    __match_args__ = tuple(f"f{{i}}" for i in range(300))
wide = Wide()
for i in range(300): setattr(wide, f"f{{i}}", i)
def f(x):
    match x:
        case Wide({fields}): return f0, f1, f299
"""
    space = {}
    exec(text, space)
    assert interpreted(space["f"], space["wide"]) == (0, 1, 299)


def test_environment_turns_it_on():
    import framejit
    folder = os.path.dirname(os.path.dirname(os.path.abspath(framejit.__file__)))
    program = "import framejit._C as c\ndef f(): pass\nf()\nprint(c.interpreter_counters()['frames'] > 0)"
    for value, expected in (("all", "True"), ("", "False")):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60,
                              env=dict(os.environ, PYTHONPATH=folder, FRAMEJIT_INTERPRET=value))
        assert done.stdout.strip() == expected, done.stderr
