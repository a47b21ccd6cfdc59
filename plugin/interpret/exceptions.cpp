// Raising, handlers, `with`.
//
// The exception being handled is the thread's (`handled_exception`): PushExcInfo saves the outer one on the value stack, PopExcept restores
// it.
#include "plugin/interpret/errors.h"
#include "plugin/interpret/run.h"

namespace framejit {
namespace {

PyObject* exception_being_handled(PyThreadState* thread) {  // looks through the generators that are running
    _PyErr_StackItem* item = thread->exc_info;
    while ((!item->exc_value || item->exc_value == Py_None) && item->previous_item) item = item->previous_item;
    return item->exc_value == Py_None ? nullptr : item->exc_value;
}

// The exception instance that `raise expression` means, or null with an error set.
PyRef exception_from(PyObject* expression, const char* complaint) {
    if (PyExceptionClass_Check(expression)) return PyRef::steal(PyObject_CallNoArgs(expression));
    if (PyExceptionInstance_Check(expression)) return PyRef::share(expression);
    PyErr_SetString(PyExc_TypeError, complaint);
    return {};
}

void raise_from(PyObject* expression, PyObject* cause) {  // cause: null without `from`
    PyRef exception = exception_from(expression, "exceptions must derive from BaseException");
    if (!exception) return;
    if (!PyExceptionInstance_Check(exception.get())) {
        PyErr_Format(PyExc_TypeError, "calling %R should have returned an instance of BaseException, not %R", expression,
                     Py_TYPE(exception.get()));
        return;
    }
    if (cause) {
        PyRef instance;
        if (cause != Py_None && !(instance = exception_from(cause, "exception causes must derive from BaseException"))) return;
        PyException_SetCause(exception.get(), instance.release());
    }
    PyObject* type = PyExceptionClass_Check(expression) ? expression : (PyObject*)Py_TYPE(exception.get());
    PyErr_SetObject(type, exception.get());
}

bool may_be_caught(PyObject* type) {
    if (!PyTuple_Check(type)) return PyExceptionClass_Check(type);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type); ++i)
        if (!PyExceptionClass_Check(PyTuple_GET_ITEM(type, i))) return false;
    return true;
}

// `with` and `async with`: leaves the exit method and what entering returned.
Stack enter_context(Run& run, Stack sp, PyObject* enter_name, PyObject* exit_name, const char* kind, const char* missed) {
    PyObject* manager = sp[-1];
    const char* type = Py_TYPE(manager)->tp_name;
    PyRef enter = PyRef::steal(_PyObject_LookupSpecial(manager, enter_name));
    if (!enter) {
        if (!PyErr_Occurred()) PyErr_Format(PyExc_TypeError, "'%.200s' object does not support the %scontext manager protocol", type, kind);
        return fail(run, sp);
    }
    PyRef exit = PyRef::steal(_PyObject_LookupSpecial(manager, exit_name));
    if (!exit) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "'%.200s' object does not support the %scontext manager protocol (missed %s method)", type, kind,
                         missed);
        return fail(run, sp);
    }
    PyObject* entered = PyObject_CallNoArgs(enter.get());  // the manager stays on the stack meanwhile
    if (!entered) return fail(run, sp);
    return push(finish(run, sp, 1, exit.release()), entered);
}

}  // namespace

// The number of operands is 0 (`raise`), 1, or 2 (`raise x from y`).
HANDLER(RaiseVarargs) {
    if (ins.arg > 0) {
        PyObject** operands = sp - ins.arg;
        raise_from(operands[0], ins.arg == 2 ? operands[1] : nullptr);
        return fail(run, sp);
    }
    PyObject* active = exception_being_handled(run.thread);
    if (!active) {
        PyErr_SetString(PyExc_RuntimeError, "No active exception to reraise");
        return fail(run, sp);
    }
    raise_again(Py_NewRef(active));
    return leave(run, sp, Outcome::Unwind);
}

// The argument is the depth of the position that the exception came from: tracebacks show that line, while this instruction's own position
// finds the handler.
HANDLER(Reraise) {
    if (ins.arg) {
        PyObject* unit = sp[-1 - ins.arg];
        if (!PyLong_Check(unit)) {
            PyErr_SetString(PyExc_SystemError, "lasti is not an int");
            return fail(run, sp);
        }
        set_unit(run.frame, (int)PyLong_AsLong(unit));
    }
    raise_again(*--sp);
    return leave(run, sp, Outcome::Unwind);
}

HANDLER(PushExcInfo) {
    PyObject* exception = sp[-1];
    PyObject*& handled = handled_exception(run.thread);
    sp[-1] = handled ? handled : Py_NewRef(Py_None);
    handled = exception;
    return push(sp, Py_NewRef(exception));
}

HANDLER(PopExcept) {
    PyObject*& handled = handled_exception(run.thread);
    PyObject* over = handled;
    handled = *--sp;
    Py_XDECREF(over);
    return sp;
}

// stack: exception, type or tuple of types; the exception stays
HANDLER(CheckExcMatch) {
    if (!may_be_caught(sp[-1])) {
        PyErr_SetString(PyExc_TypeError, "catching classes that do not inherit from BaseException is not allowed");
        return fail(run, sp);
    }
    return finish(run, sp, 1, new_bool(PyErr_GivenExceptionMatches(sp[-2], sp[-1])));
}

// stack: exception group, type; becomes the rest and the match
HANDLER(CheckEgMatch) {
    PyRef both = PyRef::steal(run_native(run.thread, Op::CheckEgMatch, 0, sp - 2, 2, Results::Pair));
    if (!both) return fail(run, sp);
    sp = finish(run, sp, 2, Py_NewRef(PyTuple_GET_ITEM(both.get(), 0)));
    return push(sp, Py_NewRef(PyTuple_GET_ITEM(both.get(), 1)));
}

HANDLER(PrepReraiseStar) { return finish(run, sp, 2, run_native(run.thread, Op::PrepReraiseStar, 0, sp - 2, 2)); }

HANDLER(BeforeWith) { return enter_context(run, sp, INTERNED("__enter__"), INTERNED("__exit__"), "", "__exit__"); }

HANDLER(BeforeAsyncWith) { return enter_context(run, sp, INTERNED("__aenter__"), INTERNED("__aexit__"), "asynchronous ", "__aexit__"); }

// stack: exit method, position, outer exception, exception; calls the method, pushes its answer
HANDLER(WithExceptStart) {
    PyObject* exception = sp[-1];
    PyRef traceback = PyRef::steal(PyException_GetTraceback(exception));
    PyObject* arguments[] = {nullptr, (PyObject*)Py_TYPE(exception), exception, traceback ? traceback.get() : Py_None};
    return finish(run, sp, 0, PyObject_Vectorcall(sp[-4], arguments + 1, 3 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
}

HANDLER(LoadAssertionError) { return push(sp, Py_NewRef(PyExc_AssertionError)); }

}  // namespace framejit
