// Kinds of Python values as the recorder tells them apart.
#pragma once
#include "plugin/py.h"

namespace framejit {

// int, float, str, bool, None, bytes, Ellipsis, complex, slice: no identity, compared by value. Asked several times per instruction.
inline bool immutable(PyObject* o) {
    if (PyType_HasFeature(Py_TYPE(o), Py_TPFLAGS_HEAPTYPE)) return false;
    PyTypeObject* t = Py_TYPE(o);
    return o == Py_None || t == &PyLong_Type || t == &PyFloat_Type || t == &PyBool_Type || t == &PyUnicode_Type || t == &PyBytes_Type ||
           t == &PyEllipsis_Type || t == &PyComplex_Type || t == &PySlice_Type || t == &PyRange_Type || o == Py_NotImplemented;
}
bool plain_c_value(PyObject*);  // torch.dtype, device, layout, memory_format, Size, numpy scalars: immutable C objects, compared by value
inline bool valued(PyObject* o) { return immutable(o) || plain_c_value(o); }  // no identity: guarded by value where it leaves the slots
bool code_like(PyObject*);  // types, functions, builtins, modules, descriptors: reached in ways that are not followed
inline bool container(PyObject* o) { return PyDict_Check(o) || PyList_Check(o) || PyTuple_Check(o) || PyAnySet_Check(o); }
bool constant_tuple(PyObject*);  // a tuple of constants: as good as a constant itself
// exact int, float or bool: arithmetic on it runs no user code
inline bool number(PyObject* o) { return PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyBool_Check(o); }
bool has_finalizer(PyObject*);      // the last reference going away runs Python: __del__, or a generator that waits in a try or with
bool plain_key(PyObject*);          // a dict key whose hash and comparison run no Python code
bool numpy_function(PyObject*);     // a numpy.ufunc
bool numpy_scalar(PyObject*);       // a number or truth of numpy's: immutable
bool derived_value(PyObject*);      // of a class derived from str, int, float, bytes: a member of an enum
bool opaque_value(PyObject*);       // a C object whose contents cannot be guarded: deque, numpy array or scalar, bytearray
const char* operator_name(int op);  // "add" ... "xor" for CPython's NB_ numbers, in place (13 more) or not
PyObject* dict_of(PyObject*);       // borrowed __dict__, null when there is none (attributes that lie inline get one)

}  // namespace framejit
