// The loop: executes a real CPython frame, linked as the thread's current one, on its own value stack.
//
// Any frame can be handed to CPython between two instructions, which keeps CPython's rarer machinery out of here: tracing (also when
// settrace is called in the middle of a frame) and making generators. How a handler ends (Outcome) decides what happens next; errors go
// through `unwind`.
//
// The loop is compiled twice. The watched one asks `watcher` around every instruction; it may change or vanish in the middle of a frame, so
// it is read again each time.
#include "plugin/interpret/interpreter.h"
#include "plugin/interpret/errors.h"
#include "plugin/interpret/hot.h"
#include "plugin/interpret/run.h"

namespace framejit {

constinit thread_local Watcher* watcher = nullptr;
constinit InterpreterCounters interpreter_counters;

#define INSTRUCTION(name) HANDLER(name);
#include "plugin/interpret/instruction.def"
#undef INSTRUCTION

namespace {

// Frames are refused below this, so that C code called from the last one still has room.
constexpr size_t kStackReserve = 64 << 10;

constexpr Ins kReturn = {Op::ReturnValue, 0, -1, -1, -1};

[[gnu::always_inline]] inline Stack execute(Run& run, const Ins& ins, Stack sp) {
    switch (ins.op) {
#define INSTRUCTION(name)                                                                                                                  \
    case Op::name: return do_##name(run, ins, sp);
#include "plugin/interpret/instruction.def"
#undef INSTRUCTION
    default: __builtin_unreachable();
    }
}

// The keyword names that KwNames would have left, when execution enters at the Precall or Call behind it.
const Ins* find_kwnames(const Code* code, const Ins* at) {
    const Ins* const first = code->ins.data();
    if (at > first && at->op == Op::Call) --at;
    if (at > first && at->op == Op::Precall) --at;
    return at->op == Op::KwNames ? at : nullptr;
}

void enter_at(Run& run, const Ins* at) {
    const Ins* kwnames = find_kwnames(run.code, at);
    run.kwnames = kwnames ? run.constant(kwnames->arg) : nullptr;
    run.next = at;
}

int depth_of(const Run& run, Stack sp) { return (int)(sp - run.fast); }

// ---- the watcher's side ----

// Calls the thread's watcher, if there is one. A shadow is shown only to the watcher that made it.
struct Observer {
    Watcher** current = &watcher;  // where this thread keeps it: frames do not change threads while they run
    Watcher* maker = nullptr;
    void* made = nullptr;

    void* shadow() const { return *current == maker ? made : nullptr; }

    void enter(Frame* frame, int throwflag) {
        if (!(maker = *current)) return;
        made = maker->enter(frame, throwflag);
    }
    const Ins* before(Run& run, const Ins& ins, Stack& sp) { return *current ? (*current)->before(shadow(), run.frame, ins, sp) : &ins; }
    bool moves(Run& run, const Ins& ins, Stack sp) {
        return only_moves(ins.op) && *current && (*current)->moves(shadow(), run.frame, ins, sp);
    }
    void after(Run& run, const Ins& ins, Stack sp) {
        if (*current) (*current)->after(shadow(), run.frame, ins, sp);
    }
    void unwound(Run& run, Stack sp) {
        if (*current) (*current)->unwound(shadow(), run.frame, depth_of(run, sp));
    }
    void leave(Run& run, PyObject* result, Stack sp, Watcher::Exit exit) {
        if (*current) (*current)->leave(shadow(), run.frame, result, depth_of(run, sp), exit);
    }
};

struct NoObserver {
    void leave(Run&, PyObject*, Stack, Watcher::Exit) {}
};

// ---- leaving the loop ----

template <class O> PyObject* finish_run(Run& run, O& observer, PyObject* result, Stack sp, Watcher::Exit exit) {
    give_stack(run.frame, sp);
    observer.leave(run, result, sp, exit);
    unlink_frame(run.thread, run.link);
    return result;
}

// CPython goes on with `at`. Keyword names live in its evaluator, so a call starts again at its KwNames, which is harmless.
template <class O> [[gnu::noinline]] PyObject* hand_over(Run& run, O& observer, const Ins* at, Stack sp) {
    ++interpreter_counters.handed_over;
    if (run.kwnames) at = find_kwnames(run.code, at);
    set_unit(run.frame, at->start - 1);
    finish_run(run, observer, nullptr, sp, Watcher::Exit::HandOver);
    return eval_default(run.thread, run.frame, 0);
}

// ---- errors ----

// The events that CPython sends to a trace function while it unwinds. A frame starts untraced here, so this is for one installed by a
// callee.
void send_trace_event(Run& run, Stack sp, int event) {
    PyThreadState* thread = run.thread;
    if (!run.link.traced() || !thread->c_tracefunc || thread->tracing || is_incomplete(run.frame)) return;
    PyFrameObject* frame = PyEval_GetFrame();
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyRef argument;
    if (event == PyTrace_EXCEPTION) {
        PyErr_NormalizeException(&type, &value, &traceback);
        argument = PyRef::steal(PyTuple_Pack(3, type, value, traceback ? traceback : Py_None));
    }
    PyThreadState_EnterTracing(thread);
    give_stack(run.frame, sp);
    const int failed = thread->c_tracefunc(thread->c_traceobj, frame, event, argument.get());
    hide_stack(run.frame);
    PyThreadState_LeaveTracing(thread);
    if (!failed) {
        PyErr_Restore(type, value, traceback);
        return;
    }
    Py_XDECREF(type);  // the trace function's own error takes its place
    Py_XDECREF(value);
    Py_XDECREF(traceback);
}

void begin_error(Run& run) {
    run.kwnames = nullptr;
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, "error return without exception set");
    if (!is_incomplete(run.frame))
        if (PyFrameObject* frame = PyEval_GetFrame()) PyTraceBack_Here(frame);
    send_trace_event(run, run.sp, PyTrace_EXCEPTION);
}

// Enters the handler of the code unit where the exception came from: the stack cut to its depth, the exception on top. Null: there is none.
// A generator's `throw` may have left the frame's position inside an instruction's caches; handlers are found by unit, not by instruction.
Stack unwind(Run& run, int unit) {
    Stack sp = run.sp;
    Stack const base = run.fast + locals_count(run.co);
    const Handler handler = unit >= 0 ? run.code->handler[unit] : Handler{};
    const bool handled = handler.target >= 0;
    sp = pop(sp, (int)(sp - base) - (handled ? handler.depth : 0));
    if (!handled) {
        send_trace_event(run, sp, PyTrace_RETURN);
        run.sp = sp;
        return nullptr;
    }
    if (handler.lasti) sp = push(sp, PyLong_FromLong(unit_of(run.frame)));
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyException_SetTraceback(value, traceback ? traceback : Py_None);
    Py_XDECREF(traceback);
    Py_XDECREF(type);
    run.next = run.code->ins.data() + handler.target;
    return push(sp, value);
}

// ---- the loop ----

template <bool Watched> PyObject* run_loop(Run& run, Stack sp, int unit, int throwflag) {
    std::conditional_t<Watched, Observer, NoObserver> observer;
    if constexpr (Watched) observer.enter(run.frame, throwflag);
    if (throwflag) sp = fail(run, sp);
    for (;;) {
        if (!sp) [[unlikely]] {
            switch (run.outcome) {
            case Outcome::Return: return finish_run(run, observer, run.result, run.sp, Watcher::Exit::Return);
            case Outcome::Yield: return finish_run(run, observer, run.result, run.sp, Watcher::Exit::Yield);
            case Outcome::HandOver: return hand_over(run, observer, run.next - 1, run.sp);
            case Outcome::Error: begin_error(run); break;
            case Outcome::Unwind: break;
            }
            sp = unwind(run, unit);
            if (!sp) return finish_run(run, observer, nullptr, run.sp, Watcher::Exit::Error);
            if constexpr (Watched) observer.unwound(run, sp);
        }
        const Ins* ins = run.next;
        if (run.link.traced()) [[unlikely]]
            return hand_over(run, observer, ins, sp);
        unit = ins->unit;
        set_unit(run.frame, unit);
        [[maybe_unused]] bool moved = false;
        if constexpr (Watched) moved = observer.moves(run, *ins, sp);
        if constexpr (Watched) {
            const Ins* chosen = moved ? ins : observer.before(run, *ins, sp);
            if (chosen != ins) [[unlikely]] {
                if (!chosen)
                    sp = fail(run, sp);
                else if (chosen == &kReturn)
                    sp = do_ReturnValue(run, kReturn, sp);
                else
                    enter_at(run, chosen);
                continue;
            }
        }
        run.next = ins + 1;
        sp = execute(run, *ins, sp);
        if constexpr (Watched)
            if (sp && !moved) observer.after(run, *ins, sp);
    }
}

bool enter_call(PyThreadState* thread) {
    if (!enter_recursion(thread)) return false;
    if (c_stack_left() > kStackReserve) [[likely]]
        return true;
    PyErr_SetString(PyExc_RecursionError, "maximum recursion depth exceeded: the C stack is used up");
    return false;
}

template <bool Watched> PyObject* run_frame(PyThreadState* thread, Frame* frame, int throwflag, const Code* code) {
    Run run;
    run.thread = thread;
    run.frame = frame;
    run.code = code;
    run.co = code_of(frame);
    run.fast = slots_of(frame);
    run.breaker = eval_breaker(thread);
    ++interpreter_counters.frames;
    link_frame(thread, frame, run.link);
    if (!enter_call(thread)) [[unlikely]] {
        unlink_frame(thread, run.link);
        return nullptr;
    }
    const int unit = unit_of(frame);
    enter_at(run, code->ins.data() + code->at[unit + 1]);
    return run_loop<Watched>(run, take_stack(frame), unit, throwflag);
}

bool everything;

PyObject* interpret_or_evaluate(PyThreadState* thread, Frame* frame, int throwflag) {
    const Code* code = traced(thread) ? nullptr : decode(code_of(frame));
    if (!code || code->native) return eval_default(thread, frame, throwflag);
    return interpret(thread, frame, throwflag, code);
}

}  // namespace

const Ins* return_instruction() { return &kReturn; }

PyObject* interpret(PyThreadState* thread, Frame* frame, int throwflag, const Code* code) {
    return watcher ? run_frame<true>(thread, frame, throwflag, code) : run_frame<false>(thread, frame, throwflag, code);
}

int init_interpreter() {
    if (const char* reason = unsupported_version()) {
        PyErr_SetString(PyExc_ImportError, reason);
        return -1;
    }
    c_stack_left();  // on the main thread libc reads /proc/self/maps for it: not in the middle of somebody's first call
    init_lru_cache();
    return init_thunks();
}

void interpret_everything(bool on) {
    everything = on;
    set_eval_hook(on ? interpret_or_evaluate : nullptr);
}

bool interprets_everything() { return everything; }

}  // namespace framejit
