// Which comparisons are safe: exact builtin types have a C comparison that looks at nothing else. A static type of an extension that holds
// no references (torch.dtype, torch.device, numpy scalars) has one too; numbers of such types are compared by their bytes, because == takes
// -0.0 for 0.0 and NaN for different from itself.
#include "plugin/guard/value.h"
#include <cstring>

namespace framejit {
namespace {

bool equal_in_c(PyObject* a, PyObject* b) {
    int equal = PyObject_RichCompareBool(a, b, Py_EQ);
    if (equal < 0) PyErr_Clear();
    return equal > 0;
}

bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

bool same_items(PyObject* a, PyObject* b) {
    Py_ssize_t count = PyTuple_GET_SIZE(a);
    if (count != PyTuple_GET_SIZE(b)) return false;
    for (Py_ssize_t i = 0; i < count; ++i)
        if (!same_value(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) return false;
    return true;
}

bool same_slice(PyObject* a, PyObject* b) {
    auto* x = reinterpret_cast<PySliceObject*>(a);
    auto* y = reinterpret_cast<PySliceObject*>(b);
    return same_value(x->start, y->start) && same_value(x->stop, y->stop) && same_value(x->step, y->step);
}

// Every member of `a` has a same value in `b`. Quadratic, but frozensets among guarded values are tiny.
bool same_members(PyObject* a, PyObject* b) {
    if (PySet_GET_SIZE(a) != PySet_GET_SIZE(b)) return false;
    PyRef left = PyRef::steal(PySequence_List(a));
    PyRef right = PyRef::steal(PySequence_List(b));
    if (!left || !right) {
        PyErr_Clear();
        return false;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(left.get()); ++i) {
        bool found = false;
        for (Py_ssize_t j = 0; j < PyList_GET_SIZE(right.get()) && !found; ++j)
            found = same_value(PyList_GET_ITEM(left.get(), i), PyList_GET_ITEM(right.get(), j));
        if (!found) return false;
    }
    return true;
}

bool holds_no_objects(PyTypeObject* type) { return !(type->tp_flags & (Py_TPFLAGS_HEAPTYPE | Py_TPFLAGS_HAVE_GC)); }

bool same_foreign(PyObject* a, PyObject* b, PyTypeObject* type) {
    bool number = type->tp_as_number && type->tp_as_number->nb_float;
    if (!number) return equal_in_c(a, b);
    auto* x = reinterpret_cast<const char*>(a) + sizeof(PyObject);
    auto* y = reinterpret_cast<const char*>(b) + sizeof(PyObject);
    return type->tp_itemsize == 0 && std::memcmp(x, y, size_t(type->tp_basicsize) - sizeof(PyObject)) == 0;
}

}  // namespace

bool same_value(PyObject* a, PyObject* b) {
    if (a == b) return true;
    PyTypeObject* type = Py_TYPE(a);
    if (type == &PySet_Type && PyFrozenSet_CheckExact(b)) return same_members(a, b);  // a set is recorded as a frozen copy
    if (type != Py_TYPE(b)) return false;
    if (PyFloat_Check(a)) return same_bits(PyFloat_AS_DOUBLE(a), PyFloat_AS_DOUBLE(b)) && !(type->tp_flags & Py_TPFLAGS_HEAPTYPE);
    if (type == &PyComplex_Type) {
        Py_complex x = PyComplex_AsCComplex(a);
        Py_complex y = PyComplex_AsCComplex(b);
        return same_bits(x.real, y.real) && same_bits(x.imag, y.imag);
    }
    if (PyTuple_Check(a))  // of a heap type (a named tuple): its instances may carry more state than the items
        return !(type->tp_flags & Py_TPFLAGS_HEAPTYPE) && same_items(a, b);
    if (type == &PySlice_Type) return same_slice(a, b);
    if (type == &PyFrozenSet_Type) return same_members(a, b);
    if (type == &PyLong_Type || type == &PyUnicode_Type || type == &PyBytes_Type || type == &PyRange_Type) return equal_in_c(a, b);
    return holds_no_objects(type) && same_foreign(a, b, type);
}

uint64_t hash_value(PyObject* o) {
    PyTypeObject* type = o ? Py_TYPE(o) : nullptr;
    if (o && (type == &PyLong_Type || type == &PyUnicode_Type || type == &PyBytes_Type || type == &PyFloat_Type)) {
        Py_hash_t hash = PyObject_Hash(o);
        if (hash != -1) return uint64_t(hash);
        PyErr_Clear();
    }
    if (o && PyTuple_Check(o)) {
        uint64_t hash = uint64_t(PyTuple_GET_SIZE(o));
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i) hash = hash * 0x9e3779b97f4a7c15 + hash_value(PyTuple_GET_ITEM(o, i));
        return hash;
    }
    // A value that is compared by what it holds must not be hashed by where it is.
    bool by_content = o && (type == &PyComplex_Type || type == &PySlice_Type || type == &PyFrozenSet_Type || type == &PyRange_Type ||
                            holds_no_objects(type));
    return by_content ? 0 : reinterpret_cast<uintptr_t>(o) >> 4;
}

std::string name_of_type(PyTypeObject* type) {
    const char* dot = std::strrchr(type->tp_name, '.');
    return dot ? dot + 1 : type->tp_name;
}

std::string print_value(PyObject* o) {
    if (!o) return "nothing";
    if (PyType_Check(o)) return "class " + name_of_type(reinterpret_cast<PyTypeObject*>(o));
    if (PyTuple_CheckExact(o)) {
        std::string text = "(";
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o) && text.size() < 50; ++i)
            text += (i ? ", " : "") + print_value(PyTuple_GET_ITEM(o, i));
        return text.size() < 50 ? text + ")" : text + ", ...)";
    }
    PyTypeObject* type = Py_TYPE(o);
    bool plain = o == Py_None || o == Py_Ellipsis || type == &PyBool_Type || type == &PyLong_Type || type == &PyFloat_Type ||
                 type == &PyComplex_Type || type == &PyUnicode_Type || type == &PyBytes_Type || type == &PyRange_Type ||
                 (holds_no_objects(type) && type->tp_repr != PyBaseObject_Type.tp_repr);
    if (!plain) return name_of_type(type) + " object";
    PyRef repr = PyRef::steal(PyObject_Repr(o));
    const char* utf8 = repr ? PyUnicode_AsUTF8(repr.get()) : nullptr;
    std::string text = utf8 ? utf8 : "?";
    PyErr_Clear();
    return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

std::string print_typed(PyObject* o) {
    if (!o || o == Py_None || PyType_Check(o)) return print_value(o);
    std::string value = print_value(o);
    std::string type = name_of_type(Py_TYPE(o));
    return value.rfind(type + " object", 0) == 0 ? value : type + " " + value;
}

}  // namespace framejit
