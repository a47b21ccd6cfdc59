#include "plugin/record/kinds.h"
#include "plugin/frame/frame.h"
#include "plugin/torch/tensor.h"
#include <cstring>

namespace framejit {

bool numpy_scalar(PyObject* o) {
    const char* n = Py_TYPE(o)->tp_name;
    if (n[0] != 'n' || strncmp(n, "numpy.", 6) != 0) return false;
    for (const char* start : {"bool", "int", "uint", "float", "complex"})
        if (!strncmp(n + 6, start, strlen(start))) return true;
    return false;
}
bool plain_c_value(PyObject* o) {
    if (Py_TYPE(o)->tp_flags & Py_TPFLAGS_HEAPTYPE) return false;
    const char* n = Py_TYPE(o)->tp_name;
    if (n[0] != 't' || strncmp(n, "torch.", 6) != 0) return numpy_scalar(o);
    for (const char* k : {"dtype", "device", "layout", "memory_format", "Size", "finfo", "iinfo"})
        if (!strcmp(n + 6, k)) return true;
    return false;
}
// Overloads and packets live for ever and are made on first use, by torch's own Python.
static bool torch_operator(PyObject* o) {
    const char* n = Py_TYPE(o)->tp_name;
    return n[0] == 'O' ? !strcmp(n, "OpOverload") || !strcmp(n, "OpOverloadPacket")
                       : n[0] == '_' && (!strcmp(n, "_OpNamespace") || !strcmp(n, "_Ops"));
}
static bool pattern(PyObject* o) { return Py_TYPE(o)->tp_name[0] == 'r' && !strcmp(Py_TYPE(o)->tp_name, "re.Pattern"); }
bool numpy_function(PyObject* o) { return Py_TYPE(o)->tp_name[0] == 'n' && !strcmp(Py_TYPE(o)->tp_name, "numpy.ufunc"); }
// operator.itemgetter and its kind: immutable.
static bool getter(PyObject* o, const char* name) {
    const char* n = Py_TYPE(o)->tp_name;
    return n[0] == 'o' && !strncmp(n, "operator.", 9) && !strcmp(n + 9, name);
}
// list[int], int | None: what annotations are made of.
static bool type_expression(PyObject* o) {
    return Py_IS_TYPE(o, &Py_GenericAliasType) || (Py_TYPE(o)->tp_name[0] == 't' && !strcmp(Py_TYPE(o)->tp_name, "types.UnionType"));
}
bool code_like(PyObject* o) {
    return PyType_Check(o) || PyFunction_Check(o) || PyCFunction_Check(o) || PyModule_Check(o) || PyCode_Check(o) ||
           Py_IS_TYPE(o, &PyMethodDescr_Type) || Py_IS_TYPE(o, &PyWrapperDescr_Type) || Py_IS_TYPE(o, &PyGetSetDescr_Type) ||
           Py_IS_TYPE(o, &PyProperty_Type) || Py_IS_TYPE(o, &PyClassMethodDescr_Type) || Py_IS_TYPE(o, &PyMemberDescr_Type) ||
           Py_IS_TYPE(o, &PyStaticMethod_Type) || Py_IS_TYPE(o, &PyClassMethod_Type) || torch_operator(o) || numpy_function(o) ||
           pattern(o) || getter(o, "itemgetter") || getter(o, "attrgetter") || type_expression(o);
}

const char* operator_name(int op) {
    static constexpr const char* kNames[] = {"add", "and", "floordiv", "lshift", "matmul",  "mul", "mod",
                                             "or",  "pow", "rshift",   "sub",    "truediv", "xor"};
    return kNames[op % 13];
}
bool has_finalizer(PyObject* o) {
    if (PyGen_CheckExact(o)) {
        auto* generator = reinterpret_cast<PyGenObject*>(o);
        return has_handlers(generator->gi_code);
    }
    PyTypeObject* t = Py_TYPE(o);
    if (!(t->tp_flags & Py_TPFLAGS_HEAPTYPE) || !t->tp_finalize) return false;
    static PyObject* const del = PyUnicode_InternFromString("__del__");
    PyObject* found = _PyType_Lookup(t, del);
    return found && !Py_IS_TYPE(found, &PyWrapperDescr_Type);
}
bool plain_key(PyObject* k) {
    return PyUnicode_CheckExact(k) || PyLong_CheckExact(k) || PyBool_Check(k) || PyFloat_CheckExact(k) || k == Py_None ||
           PyBytes_CheckExact(k) || PyType_Check(k) || PyFunction_Check(k);
}
bool derived_value(PyObject* o) {
    return !immutable(o) && (PyUnicode_Check(o) || PyLong_Check(o) || PyFloat_Check(o) || PyBytes_Check(o)) &&
           strncmp(Py_TYPE(o)->tp_name, "numpy.", 6);
}
// A C object whose contents nothing here can guard: it has a length or a value that only its own C code knows, by which it compares.
bool opaque_value(PyObject* o) {
    if (container(o) || immutable(o) || plain_c_value(o) || proxied_mapping(o)) return false;
    PyTypeObject* t = Py_TYPE(o);
    if (!strncmp(t->tp_name, "numpy.", 6)) return !numpy_function(o);
    if (derived_value(o)) return false;
    const bool native = !(t->tp_flags & Py_TPFLAGS_HEAPTYPE);
    const bool known = PyWeakref_Check(o) || Py_IS_TYPE(o, &_PyMethodWrapper_Type) || PyCell_Check(o);
    if (native && !known && !code_like(o) && !PyMethod_Check(o) && t->tp_richcompare != PyBaseObject_Type.tp_richcompare) return true;
    if (PyExceptionInstance_Check(o) || getter(o, "methodcaller")) return true;
    static PyObject* const length = PyUnicode_InternFromString("__len__");
    PyObject* found = _PyType_Lookup(t, length);
    return found && Py_IS_TYPE(found, &PyWrapperDescr_Type);
}

PyObject* dict_of(PyObject* o) {
    if (PyModule_Check(o)) return PyModule_GetDict(o);
    PyObject** p = dict_slot(o);
    if (!p) return nullptr;
    if (*p || !(Py_TYPE(o)->tp_flags & Py_TPFLAGS_MANAGED_DICT)) return *p;
    PyRef made = PyRef::steal(PyObject_GenericGetDict(o, nullptr));  // its attributes lie inline; the guards look them up in a dict
    if (!made) PyErr_Clear();
    p = dict_slot(o);
    return p ? *p : nullptr;
}
bool constant_tuple(PyObject* o) {
    if (!PyTuple_CheckExact(o) && !PyFrozenSet_CheckExact(o)) return false;
    if (PyFrozenSet_CheckExact(o)) return PySet_GET_SIZE(o) == 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i) {
        PyObject* x = PyTuple_GET_ITEM(o, i);
        if (!x || !(immutable(x) || code_like(x) || plain_c_value(x) || constant_tuple(x))) return false;
    }
    return true;
}

}  // namespace framejit
