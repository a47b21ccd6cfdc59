// Calls, functions, class bodies, return.
#include "plugin/interpret/errors.h"
#include "plugin/interpret/run.h"

namespace framejit {

HANDLER(KwNames) {
    run.kwnames = run.constant(ins.arg);
    return sp;
}

// stack: null, callable, arguments... or method, self, arguments...
HANDLER(Precall) {
    PyObject*& first = sp[-ins.arg - 2];
    PyObject*& second = sp[-ins.arg - 1];
    if (first || !Py_IS_TYPE(second, &PyMethod_Type)) return sp;
    PyObject* bound = second;
    first = Py_NewRef(PyMethod_GET_FUNCTION(bound));
    second = Py_NewRef(PyMethod_GET_SELF(bound));
    Py_DECREF(bound);
    return sp;
}

HANDLER(Call) {
    const bool method = sp[-ins.arg - 2] != nullptr;
    const int total = ins.arg + method;
    PyObject* kwnames = std::exchange(run.kwnames, nullptr);
    const auto positional = (size_t)(total - (kwnames ? PyTuple_GET_SIZE(kwnames) : 0));
    PyObject* result = PyObject_Vectorcall(sp[-total - 1], sp - total, positional | PY_VECTORCALL_ARGUMENTS_OFFSET, kwnames);
    sp = finish(run, sp, ins.arg + 2, result);
    return sp ? check_breaker(run, sp) : nullptr;
}

// stack: null, callable, arguments tuple or iterable, keyword dict if the lowest bit is set
HANDLER(CallFunctionEx) {
    const bool keywords = ins.arg & 1;
    PyObject* kwargs = keywords ? sp[-1] : nullptr;
    PyObject* arguments = sp[-1 - keywords];
    PyObject* function = sp[-2 - keywords];
    PyRef tuple;
    if (!PyTuple_CheckExact(arguments)) {
        if (!Py_TYPE(arguments)->tp_iter && !PySequence_Check(arguments)) {
            set_not_iterable_argument(function, arguments);
            return fail(run, sp);
        }
        tuple = PyRef::steal(PySequence_Tuple(arguments));
        if (!tuple) return fail(run, sp);
    }
    PyObject* result = PyObject_Call(function, tuple ? tuple.get() : arguments, kwargs);
    sp = finish(run, sp, 3 + keywords, result);
    return sp ? check_breaker(run, sp) : nullptr;
}

HANDLER(MakeFunction) {
    auto* function = (PyFunctionObject*)PyFunction_New(sp[-1], globals_of(run.frame));
    if (!function) return fail(run, sp);
    sp = pop(sp, 1);
    if (ins.arg & 8) function->func_closure = *--sp;
    if (ins.arg & 4) function->func_annotations = *--sp;
    if (ins.arg & 2) function->func_kwdefaults = *--sp;
    if (ins.arg & 1) function->func_defaults = *--sp;
    return push(sp, (PyObject*)function);
}

HANDLER(LoadBuildClass) {
    PyObject* builder = PyObject_GetItem(builtins_of(run.frame), INTERNED("__build_class__"));
    if (!builder && PyErr_ExceptionMatches(PyExc_KeyError)) PyErr_SetString(PyExc_NameError, "__build_class__ not found");
    return finish(run, sp, 0, builder);
}

HANDLER(ReturnValue) { return leave(run, sp - 1, Outcome::Return, sp[-1]); }

}  // namespace framejit
