// Iteration, generators, coroutines.
//
// A generator is made by CPython: ReturnGenerator hands its frame over, which moves into the generator object, so the frame has another
// address from its first resume on.
#include "plugin/interpret/errors.h"
#include "plugin/interpret/run.h"

namespace framejit {

HANDLER(GetIter) { return finish(run, sp, 1, PyObject_GetIter(sp[-1])); }

HANDLER(ForIter) {
    PyObject* iterator = sp[-1];
    if (PyObject* item = Py_TYPE(iterator)->tp_iternext(iterator)) return push(sp, item);
    if (PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_StopIteration)) return fail(run, sp);
        PyErr_Clear();
    }
    run.jump(ins);
    return pop(sp, 1);
}

HANDLER(GetYieldFromIter) {
    PyObject* value = sp[-1];
    if (PyCoro_CheckExact(value)) {
        if (run.co->co_flags & (CO_COROUTINE | CO_ITERABLE_COROUTINE)) return sp;
        PyErr_SetString(PyExc_TypeError, "cannot 'yield from' a coroutine object in a non-coroutine generator");
        return fail(run, sp);
    }
    return PyGen_CheckExact(value) ? sp : finish(run, sp, 1, PyObject_GetIter(value));
}

// stack: receiver, value to send
HANDLER(Send) {
    PyObject* result = nullptr;
    const PySendResult status = PyIter_Send(sp[-2], sp[-1], &result);
    if (status == PYGEN_ERROR) return fail(run, sp);
    if (status == PYGEN_NEXT) return finish(run, sp, 1, result);
    run.jump(ins);
    return finish(run, sp, 2, result);
}

HANDLER(YieldValue) {
    suspend_generator(run.frame);
    return leave(run, sp - 1, Outcome::Yield, sp[-1]);
}

HANDLER(ReturnGenerator) { return leave(run, sp, Outcome::HandOver); }

HANDLER(AsyncGenWrap) { return finish(run, sp, 1, run_native(run.thread, Op::AsyncGenWrap, ins.arg, sp - 1, 1)); }
HANDLER(GetAwaitable) { return finish(run, sp, 1, run_native(run.thread, Op::GetAwaitable, ins.arg, sp - 1, 1)); }
HANDLER(GetAiter) { return finish(run, sp, 1, run_native(run.thread, Op::GetAiter, ins.arg, sp - 1, 1)); }

HANDLER(GetAnext) {  // keeps the iterator, pushes the awaitable
    PyRef both = PyRef::steal(run_native(run.thread, Op::GetAnext, ins.arg, sp - 1, 1, Results::Pair));
    return both ? push(sp, Py_NewRef(PyTuple_GET_ITEM(both.get(), 1))) : fail(run, sp);
}

// stack: the asynchronous iterator, the exception that ended it
HANDLER(EndAsyncFor) {
    if (PyErr_GivenExceptionMatches(sp[-1], PyExc_StopAsyncIteration)) return pop(sp, 2);
    raise_again(*--sp);
    return leave(run, sp, Outcome::Unwind);
}

}  // namespace framejit
