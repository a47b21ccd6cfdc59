// The state of one running frame, and how a handler looks.
//
// A handler executes one neutral instruction: it gets the top of the value stack and returns the new top, or null after `fail` or `leave`
// said how it ended. Rules:
//   * operands stay on the stack until the instruction can no longer run Python code that looks at them; `finish` pops them when the result
//   is
//     there. After a failure they may stay: unwinding drops them.
//   * a handler that jumps sets `run.next`; everything else falls through to the instruction behind it.
// To add one: a row in instruction.def and a HANDLER in the file of its family. A missing one does not link.
#pragma once
#include "plugin/frame/running.h"
#include "plugin/interpret/watcher.h"

namespace framejit {

using Stack = PyObject**;

enum class Outcome : uint8_t {
    Error,     // an exception is set; this frame gets an entry in its traceback
    Unwind,    // an exception that has its traceback already was raised again
    Return,    // Run::result
    Yield,     // Run::result
    HandOver,  // CPython executes the rest of the frame, from this very instruction on
};

struct Run {
    PyThreadState* thread;
    Frame* frame;
    const Code* code;
    PyCodeObject* co;
    Stack fast;          // locals, cells and free variables
    const int* breaker;  // non-zero: the thread has something else to do
    const Ins* next;     // the instruction to execute next
    PyObject* kwnames;   // set by KwNames for the Call behind it; borrowed from the constants
    PyObject* result;
    Stack sp;  // where the stack ended, valid once a handler has returned null
    Outcome outcome;
    Link link;

    PyObject* name(int index) const { return PyTuple_GET_ITEM(co->co_names, index); }
    PyObject* constant(int index) const { return PyTuple_GET_ITEM(co->co_consts, index); }
    PyObject* local_name(int index) const { return PyTuple_GET_ITEM(co->co_localsplusnames, index); }
    void jump(const Ins& ins) { next = code->ins.data() + ins.target; }
};

#define HANDLER(name) Stack do_##name([[maybe_unused]] Run& run, [[maybe_unused]] const Ins& ins, Stack sp)

inline Stack leave(Run& run, Stack sp, Outcome outcome, PyObject* result = nullptr) {
    run.sp = sp;
    run.outcome = outcome;
    run.result = result;
    return nullptr;
}

inline Stack fail(Run& run, Stack sp) { return leave(run, sp, Outcome::Error); }

inline Stack push(Stack sp, PyObject* value) {
    *sp = value;
    return sp + 1;
}

inline Stack pop(Stack sp, int count) {
    while (count-- > 0) Py_XDECREF(*--sp);
    return sp;
}

// Replaces `operands` values by one new reference; null means that the operation failed.
inline Stack finish(Run& run, Stack sp, int operands, PyObject* result) {
    if (!result) return fail(run, sp);
    return push(pop(sp, operands), result);
}

// The same for operations without a result, which return a negative number when they fail.
inline Stack finish_status(Run& run, Stack sp, int operands, int status) { return status < 0 ? fail(run, sp) : pop(sp, operands); }

inline PyObject* new_bool(bool value) { return Py_NewRef(value ? Py_True : Py_False); }

// Where CPython looks whether signals, pending calls, another thread or an asynchronous exception want something.
inline Stack check_breaker(Run& run, Stack sp) {
    if (!__atomic_load_n(run.breaker, __ATOMIC_RELAXED)) [[likely]]
        return sp;
    return serve_eval_breaker(run.thread) ? sp : fail(run, sp);
}

// A string constant as an interned object, made once per place.
#define INTERNED(text)                                                                                                                     \
    ([] {                                                                                                                                  \
        static PyObject* const string = PyUnicode_InternFromString(text);                                                                  \
        return string;                                                                                                                     \
    }())

}  // namespace framejit
