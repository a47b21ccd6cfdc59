// Rows of the same function are merged: calls are summed, every list is that of the latest one that had any.
#include "plugin/replay/retired.h"
#include "plugin/replay/program.h"

namespace framejit {
namespace {

bool open = true;          // until the interpreter shuts down
PyObject* rows = nullptr;  // {(name, file, line): row}

// What a method's row is called: its own name, or the class of its object where that inherits the method.
PyRef name_of(const CompiledFunction& f) {
    PyRef name = PyRef::share(f.code->co_qualname);
    if (!f.self) return name;
    PyRef type = PyRef::steal(PyType_GetName(Py_TYPE(f.self)));
    if (!type) return name;
    return PyUnicode_Tailmatch(name.get(), type.get(), 0, PY_SSIZE_T_MAX, -1) == 1 ? name : type;
}

int add_calls(PyObject* into, PyObject* from) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(from, &at, &key, &value)) {
        PyObject* before = PyDict_GetItemWithError(into, key);
        PyRef sum = PyRef::steal(before ? PyNumber_Add(before, value) : nullptr);
        if (!sum || PyDict_SetItem(into, key, sum.get()) < 0) return -1;
    }
    return 0;
}

int merge(PyObject* into, PyObject* row) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(row, &at, &key, &value)) {
        PyObject* before = PyDict_GetItemWithError(into, key);
        if (before && PyDict_Check(value) && add_calls(before, value) < 0) return -1;
        if (PyList_Check(value) && PyList_GET_SIZE(value) && PyDict_SetItem(into, key, value) < 0) return -1;
    }
    return 0;
}

int keep(const FunctionProgram& program) {
    if (!rows && !(rows = PyDict_New())) return -1;
    PyRef row = PyRef::steal(program.report());
    PyRef name = name_of(*program.owner);
    if (!row || PyDict_SetItemString(row.get(), "name", name.get()) < 0 || PyDict_DelItemString(row.get(), "target") < 0) return -1;
    PyRef line = PyRef::steal(PyLong_FromLong(program.owner->code->co_firstlineno));
    PyRef key = PyRef::steal(line ? PyTuple_Pack(3, name.get(), program.owner->code->co_filename, line.get()) : nullptr);
    if (!key) return -1;
    PyObject* before = PyDict_GetItemWithError(rows, key.get());
    if (before) return merge(before, row.get());
    return PyErr_Occurred() ? -1 : PyDict_SetItem(rows, key.get(), row.get());
}

PyObject* close_rows(PyObject*, PyObject*) {
    open = false;
    Py_RETURN_NONE;
}

}  // namespace

void retire(const FunctionProgram& program) {
    if (!open || !program.calls.total) return;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (keep(program) < 0) PyErr_Clear();
    PyErr_Restore(type, value, traceback);
}

int add_retired_rows(PyObject* list) {
    PyRef values = PyRef::steal(rows ? PyDict_Values(rows) : PyList_New(0));
    if (!values) return -1;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values.get()); ++i) {
        PyRef copy = PyRef::steal(PyDict_Copy(PyList_GET_ITEM(values.get(), i)));
        if (!copy || PyList_Append(list, copy.get()) < 0) return -1;
    }
    return 0;
}

void forget_retired() {
    if (rows) PyDict_Clear(rows);
}

int add_retired(PyObject*) {
    static PyMethodDef close = {"_close_retired", close_rows, METH_NOARGS, nullptr};
    PyRef function = PyRef::steal(PyCFunction_New(&close, nullptr));
    PyRef atexit = PyRef::steal(PyImport_ImportModule("atexit"));
    PyRef done = PyRef::steal(function && atexit ? PyObject_CallMethod(atexit.get(), "register", "O", function.get()) : nullptr);
    return done ? 0 : -1;
}

}  // namespace framejit
