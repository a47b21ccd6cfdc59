// How each kind of source is read. A parent of the wrong type is no error: it has no such value, and the row that needs it fails.
#include "plugin/guard/read.h"
#include "plugin/frame/frame.h"
#include <cstring>

namespace framejit::guards {
namespace {

struct Reading {
    const GuardSource& source;
    Py_hash_t hash;
    PyObject* parent;
    PyObject* other;
    std::vector<PyRef>& made;
};

// By hash and identity first: keys that compare in Python (a Parameter in an optimizer's state) are found without asking them.
PyObject* find(PyObject* dict, PyObject* key, Py_hash_t hash) {
    PyObject* value = _PyDict_GetItem_KnownHash(dict, key, hash);
    if (!value && PyErr_Occurred()) PyErr_Clear();
    return value;
}

PyObject* read_None(const Reading&) { return nullptr; }
PyObject* read_Slot(const Reading&) { return nullptr; }
PyObject* read_Const(const Reading& r) { return r.source.key.get(); }

// An object whose attributes still lie inline gets its dict now. That allocates, and a collection might run finalizers in the middle of a
// check.
PyObject* read_Dict(const Reading& r) {
    PyObject** slot = dict_slot(r.parent);
    if (!slot) return nullptr;
    if (*slot) return *slot;
    int collecting = PyGC_Disable();
    PyRef dict = PyRef::steal(PyObject_GenericGetDict(r.parent, nullptr));
    if (collecting) PyGC_Enable();
    if (!dict) PyErr_Clear();
    slot = dict_slot(r.parent);
    return slot ? *slot : nullptr;
}

PyObject* read_Item(const Reading& r) {
    if (PyObject* key = r.source.key.get()) return PyDict_Check(r.parent) ? find(r.parent, key, r.hash) : nullptr;
    Py_ssize_t index = r.source.index;
    if (PyTuple_Check(r.parent)) return index < PyTuple_GET_SIZE(r.parent) ? PyTuple_GET_ITEM(r.parent, index) : nullptr;
    if (PyList_Check(r.parent)) return index < PyList_GET_SIZE(r.parent) ? PyList_GET_ITEM(r.parent, index) : nullptr;
    return nullptr;
}

PyObject* read_Attr(const Reading& r) {
    PyTypeObject* type = Py_TYPE(r.parent);
    PyObject* descriptor = _PyType_Lookup(type, r.source.key.get());
    if (!descriptor) return nullptr;
    const bool in_c = Py_TYPE(descriptor) == &PyMemberDescr_Type || Py_TYPE(descriptor) == &PyGetSetDescr_Type ||
                      !std::strcmp(Py_TYPE(descriptor)->tp_name, "_collections._tuplegetter");  // a field of a named tuple
    if (!in_c) return nullptr;
    PyObject* value = Py_TYPE(descriptor)->tp_descr_get(descriptor, r.parent, reinterpret_cast<PyObject*>(type));
    if (value)
        r.made.push_back(PyRef::steal(value));
    else
        PyErr_Clear();
    return value;
}

PyObject* read_TypeOf(const Reading& r) { return reinterpret_cast<PyObject*>(Py_TYPE(r.parent)); }

PyObject* read_TypeLookup(const Reading& r) {
    auto* type = PyType_Check(r.parent) ? reinterpret_cast<PyTypeObject*>(r.parent) : Py_TYPE(r.parent);
    return _PyType_Lookup(type, r.source.key.get());
}

PyObject* read_CellValue(const Reading& r) { return PyCell_Check(r.parent) ? PyCell_GET(r.parent) : nullptr; }

PyObject* tuple_item(PyObject* tuple, int index) {
    return tuple && PyTuple_Check(tuple) && index < PyTuple_GET_SIZE(tuple) ? PyTuple_GET_ITEM(tuple, index) : nullptr;
}

PyObject* read_ClosureCell(const Reading& r) {
    return PyFunction_Check(r.parent) ? tuple_item(PyFunction_GET_CLOSURE(r.parent), r.source.index) : nullptr;
}

PyObject* read_Default(const Reading& r) {
    return PyFunction_Check(r.parent) ? tuple_item(PyFunction_GET_DEFAULTS(r.parent), r.source.index) : nullptr;
}

PyObject* read_KwDefault(const Reading& r) {
    PyObject* defaults = PyFunction_Check(r.parent) ? PyFunction_GET_KW_DEFAULTS(r.parent) : nullptr;
    return defaults && PyDict_Check(defaults) ? find(defaults, r.source.key.get(), r.hash) : nullptr;
}

PyObject* read_MethodSelf(const Reading& r) {
    if (PyMethod_Check(r.parent)) return PyMethod_GET_SELF(r.parent);
    return PyCFunction_Check(r.parent) ? PyCFunction_GET_SELF(r.parent) : nullptr;
}

PyObject* read_MethodFunc(const Reading& r) { return PyMethod_Check(r.parent) ? PyMethod_GET_FUNCTION(r.parent) : nullptr; }

// ---- arithmetic on exact numbers: runs no user code; an error (division by zero) is "no value" ----
PyObject* keep(const Reading& r, PyObject* value) {
    if (value)
        r.made.push_back(PyRef::steal(value));
    else
        PyErr_Clear();
    return value;
}
bool number(PyObject* o) { return o && (PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyBool_Check(o)); }

PyObject* read_Len(const Reading& r) {
    PyObject* o = r.parent;
    bool exact = PyList_CheckExact(o) || PyTuple_CheckExact(o) || PyDict_CheckExact(o) || PyAnySet_CheckExact(o) ||
                 PyUnicode_CheckExact(o) || PyODict_CheckExact(o);
    return exact ? keep(r, PyLong_FromSsize_t(PyObject_Length(o))) : nullptr;
}
PyObject* power(PyObject* a, PyObject* b) { return PyNumber_Power(a, b, Py_None); }
using Arithmetic = PyObject* (*)(PyObject*, PyObject*);
constexpr Arithmetic kBinary[] = {  // the order of CPython's NB_ numbers; the in-place forms follow in the same order
    PyNumber_Add, PyNumber_And, PyNumber_FloorDivide, PyNumber_Lshift,   PyNumber_MatrixMultiply, PyNumber_Multiply, PyNumber_Remainder,
    PyNumber_Or,  power,        PyNumber_Rshift,      PyNumber_Subtract, PyNumber_TrueDivide,     PyNumber_Xor};
PyObject* read_Binary(const Reading& r) {
    if (!number(r.parent) || !number(r.other)) return nullptr;
    return keep(r, kBinary[r.source.index % 13](r.parent, r.other));
}
PyObject* read_Compare(const Reading& r) {
    if (!number(r.parent) || !number(r.other)) return nullptr;
    return keep(r, PyObject_RichCompare(r.parent, r.other, r.source.index));
}
PyObject* read_Unary(const Reading& r) {
    if (!number(r.parent)) return nullptr;
    switch (r.source.index) {
    case 0: return keep(r, PyNumber_Negative(r.parent));
    case 1: return keep(r, PyNumber_Positive(r.parent));
    case 2: return keep(r, PyNumber_Invert(r.parent));
    case 3: return PyObject_IsTrue(r.parent) ? Py_False : Py_True;
    case 4: return PyObject_IsTrue(r.parent) ? Py_True : Py_False;
    case 5: return keep(r, PyNumber_Long(r.parent));
    case 6: return keep(r, PyNumber_Float(r.parent));
    default: return keep(r, PyNumber_Absolute(r.parent));
    }
}
PyObject* read_Proxied(const Reading& r) { return proxied_mapping(r.parent); }
PyObject* read_Referent(const Reading& r) {
    PyObject* o = PyWeakref_Check(r.parent) ? PyWeakref_GET_OBJECT(r.parent) : Py_None;
    return o == Py_None ? nullptr : o;
}
PyObject* read_Cached(const Reading& r) { return lru_cached(r.parent, r.source.key.get(), r.hash); }
PyObject* read_Answer(const Reading& r) { return PyCFunction_CheckExact(r.parent) ? keep(r, PyObject_CallNoArgs(r.parent)) : nullptr; }
PyObject* read_ContextVar(const Reading& r) {
    PyObject* value = nullptr;
    if (!PyContextVar_CheckExact(r.parent) || PyContextVar_Get(r.parent, nullptr, &value) < 0) PyErr_Clear();
    return value ? keep(r, value) : nullptr;
}

struct SourceRow {
    const char* name;
    Place place;
    PyObject* (*read)(const Reading&);
};
constexpr SourceRow kSources[] = {
#define SOURCE(name, place, meaning) {#name, Place::place, read_##name},
#include "plugin/guard/source.def"
#undef SOURCE
};

}  // namespace

Place place_of(SourceKind kind) { return kSources[int(kind)].place; }

PyObject* read_source(const GuardSource& source, Py_hash_t hash, PyObject* parent, PyObject* other, std::vector<PyRef>& made) {
    if (!parent && source.kind != SourceKind::Const) return nullptr;
    return kSources[int(source.kind)].read({source, hash, parent, other, made});
}

}  // namespace framejit::guards

namespace framejit {

const char* name_of(SourceKind kind) { return guards::kSources[int(kind)].name; }

}  // namespace framejit
