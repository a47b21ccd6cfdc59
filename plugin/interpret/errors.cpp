#include "plugin/interpret/errors.h"

#include "plugin/frame/running.h"

namespace framejit {
namespace {

void format_name(PyObject* type, const char* format, PyObject* name) {
    if (const char* text = PyUnicode_AsUTF8(name)) PyErr_Format(type, format, text);
}

void add_name_attribute(PyObject* name) {  // the "did you mean" of tracebacks reads it
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (value && PyErr_GivenExceptionMatches(value, PyExc_NameError) && !((PyNameErrorObject*)value)->name)
        PyObject_SetAttrString(value, "name", name);
    PyErr_Restore(type, value, traceback);
}

}  // namespace

void set_name_error(PyObject* name) {
    format_name(PyExc_NameError, "name '%.200s' is not defined", name);
    add_name_attribute(name);
}

void set_unbound_local(PyObject* name) {
    format_name(PyExc_UnboundLocalError, "cannot access local variable '%s' where it is not associated with a value", name);
}

void set_unbound_free_variable(PyObject* name) {
    format_name(PyExc_NameError, "cannot access free variable '%s' where it is not associated with a value in enclosing scope", name);
    add_name_attribute(name);
}

void set_not_iterable_argument(PyObject* function, PyObject* arguments) {
    PyRef text = PyRef::steal(_PyObject_FunctionStr(function));
    if (text) PyErr_Format(PyExc_TypeError, "%U argument after * must be an iterable, not %.200s", text.get(), Py_TYPE(arguments)->tp_name);
}

void explain_mapping_argument(PyObject* function, PyObject* mapping) {
    if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        PyRef text = PyRef::steal(_PyObject_FunctionStr(function));
        if (text)
            PyErr_Format(PyExc_TypeError, "%U argument after ** must be a mapping, not %.200s", text.get(), Py_TYPE(mapping)->tp_name);
        return;
    }
    if (!PyErr_ExceptionMatches(PyExc_KeyError)) return;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    // Merging two packs leaves a bare tuple of the key here. A KeyError instance came from the user's own mapping, or was made because
    // another exception is being handled; CPython 3.11 shows both as they are.
    PyRef text;
    if (value && PyTuple_Check(value) && PyTuple_GET_SIZE(value) == 1) text = PyRef::steal(_PyObject_FunctionStr(function));
    if (!text) {
        PyErr_Restore(type, value, traceback);
        return;
    }
    PyErr_Format(PyExc_TypeError, "%U got multiple values for keyword argument '%S'", text.get(), PyTuple_GET_ITEM(value, 0));
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
}

void raise_again(PyObject* exception) {
    PyErr_Restore(Py_NewRef((PyObject*)Py_TYPE(exception)), exception, PyException_GetTraceback(exception));
}

}  // namespace framejit
