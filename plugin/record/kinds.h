// Kinds of Python values as the recorder tells them apart.
#pragma once
#include "plugin/py.h"

namespace framejit {

bool immutable(PyObject*);       // int, float, str, bool, None, bytes, Ellipsis, complex, slice: no identity, compared by value
bool plain_c_value(PyObject*);   // torch.dtype, device, layout, memory_format, Size: immutable C objects, compared by value
bool code_like(PyObject*);       // types, functions, builtins, modules, descriptors: reached in ways that are not followed
bool container(PyObject*);       // dict, list, tuple, set
bool constant_tuple(PyObject*);  // a tuple of constants: as good as a constant itself
bool number(PyObject*);          // exact int, float or bool: arithmetic on it runs no user code
bool plain_key(PyObject*);       // a dict key whose hash and comparison run no Python code
bool derived_value(PyObject*);   // of a class derived from str, int, float, bytes: a member of an enum
bool opaque_value(PyObject*);    // a C object whose contents cannot be guarded: deque, numpy array or scalar, bytearray
bool generic_getattribute(PyTypeObject*);
PyObject* dict_of(PyObject*);  // borrowed __dict__, null when there is none (attributes that lie inline get one)

}  // namespace framejit
