// What C code says of an object whose class says nothing: `==` and `in` compare its address, hash() and repr() tell it. A guard on its type
// is not enough then. What a class says in Python is a frame of the recording; what it says in C about a value of its own is a break.
#include "plugin/record/kinds.h"
#include "plugin/record/recorder.h"
#include <cstring>

namespace framejit {
namespace {

enum class Says : uint8_t { Python, Address, OwnC };
Says says(PyObject* v, PyObject* name) {
    PyObject* how = _PyType_Lookup(Py_TYPE(v), name);
    if (how == _PyType_Lookup(&PyBaseObject_Type, name)) return Says::Address;
    return how && PyFunction_Check(how) ? Says::Python : Says::OwnC;
}
// Guarded by value or by what it holds, or no Python object's business.
bool known_otherwise(PyObject* v) { return valued(v) || container(v) || is_tensor(v) || code_like(v) || derived_value(v); }

bool by_address(PyObject* v) {
    static PyObject* const eq = PyUnicode_InternFromString("__eq__");
    return PyFunction_Check(v) || (!known_otherwise(v) && says(v, eq) == Says::Address);
}
// Of a bound method its object counts.
PyObject* bound_to(PyObject* v) {
    if (PyMethod_Check(v)) return PyMethod_GET_SELF(v);
    PyObject* self = PyCFunction_Check(v) ? PyCFunction_GET_SELF(v) : nullptr;
    return self && !PyModule_Check(self) && !PyType_Check(self) ? self : nullptr;
}
bool sequence(PyObject* v) { return PyTuple_Check(v) || PyList_Check(v); }

}  // namespace

// a == b: whether they are one object is part of the guards, also of what they hold.
void Recorder::compared(PyObject* a, int sa, PyObject* b, int sb, int depth) {
    PyObject *self_a = bound_to(a), *self_b = bound_to(b);
    if (self_a && self_b) {
        const int of_a = lookup(self_a, false), of_b = lookup(self_b, false);
        if (of_a > 0 && of_b > 0) guard(self_a == self_b ? GuardKind::Same : GuardKind::NotSame, of_a, nullptr, of_b);
        return;
    }
    if (sequence(a) && sequence(b) && depth < 4) {
        for (Py_ssize_t i = 0; i < Py_SIZE(a) && i < Py_SIZE(b); ++i) {
            PyObject *x = PySequence_Fast_ITEMS(a)[i], *y = PySequence_Fast_ITEMS(b)[i];
            compared(x, lookup(x, false), y, lookup(y, false), depth + 1);
        }
        return;
    }
    if (sa <= 0 || sb <= 0 || sa == sb || Py_TYPE(a) != Py_TYPE(b) || !by_address(a)) return;
    guard(a == b ? GuardKind::Same : GuardKind::NotSame, sa, nullptr, sb);
}

// a in b
void Recorder::sought(PyObject* a, int sa, PyObject* b) {
    if (sequence(b))
        for (Py_ssize_t i = 0; i < Py_SIZE(b); ++i) {
            PyObject* x = PySequence_Fast_ITEMS(b)[i];
            compared(a, sa, x, lookup(x, false), 0);
        }
    PyObject* key;
    Py_ssize_t at = 0;
    while (PyDict_Check(b) && PyDict_Next(b, &at, &key, nullptr)) compared(a, sa, key, lookup(key, false), 0);
    Py_hash_t hash;
    at = 0;
    while (PyAnySet_Check(b) && _PySet_NextEntry(b, &at, &key, &hash)) compared(a, sa, key, lookup(key, false), 0);
}

// C code prints or hashes it, and what it holds.
void Recorder::told(PyObject* v, int shadow, const char* method, int depth) {
    if (container(v) && depth < 4) {
        PyObject *key, *value;
        Py_ssize_t at = 0;
        while (PyDict_Check(v) && PyDict_Next(v, &at, &key, &value))
            told(key, lookup(key, false), method, depth + 1), told(value, lookup(value, false), method, depth + 1);
        for (Py_ssize_t i = 0; sequence(v) && i < Py_SIZE(v); ++i)
            told(PySequence_Fast_ITEMS(v)[i], lookup(PySequence_Fast_ITEMS(v)[i], false), method, depth + 1);
        return;
    }
    if (shadow <= 0) return;
    if (PyFunction_Check(v)) return void(guard(GuardKind::Identity, shadow, v));
    if (known_otherwise(v)) return;
    PyRef name = PyRef::steal(PyUnicode_InternFromString(method));
    if (static PyObject* const str = PyUnicode_InternFromString("__str__"); says(v, str) == Says::Python && !strcmp(method, "__repr__"))
        return;
    switch (says(v, name.get())) {
    case Says::Python: return;
    case Says::Address: return void(guard(GuardKind::Identity, shadow, v));
    case Says::OwnC: return note_break(foreign(shadow) ? break_foreign : break_opaque_object, v);
    }
}

// A C function does any of it with its arguments and what they hold.
void Recorder::pinned(PyObject* v, int shadow, int depth) {
    if (container(v) && depth < 4) {
        PyObject *key, *value;
        Py_ssize_t at = 0;
        while (PyDict_Check(v) && PyDict_Next(v, &at, &key, &value)) pinned(key, lookup(key, false), depth + 1);
        for (Py_ssize_t i = 0; sequence(v) && i < Py_SIZE(v); ++i)
            pinned(PySequence_Fast_ITEMS(v)[i], lookup(PySequence_Fast_ITEMS(v)[i], false), depth + 1);
        Py_hash_t hash;
        at = 0;
        while (PyAnySet_Check(v) && _PySet_NextEntry(v, &at, &key, &hash)) pinned(key, lookup(key, false), depth + 1);
        return;
    }
    if (PyObject* self = bound_to(v)) v = self, shadow = lookup(self, false);
    if (shadow > 0 && by_address(v)) guard(GuardKind::Identity, shadow, v);
}

// Every step-th of the values on top of the stack becomes an element of a set, or a key: what it is equal to decides.
void Recorder::hashed(PyObject** sp, const int* s, int count, int step) {
    for (int at = step; at <= count * step; at += step) {
        if (container(sp[-at])) use(sp[-at], s[-at]);
        pinned(sp[-at], s[-at]);
    }
}

// object.__repr__(o), d.__setitem__(o, 1): the slot of a C type, whatever the class says.
void Recorder::address_of_slot(PyObject* self, int shadow, PyObject* slot, PyObject** args, const int* shadows, int total) {
    auto any_of = [&](std::initializer_list<const char*> names) {
        for (const char* name : names)
            if (!PyUnicode_CompareWithASCIIString(slot, name)) return true;
        return false;
    };
    if (any_of({"__eq__", "__ne__", "__contains__", "__setitem__", "__delitem__"})) {
        pinned(self, shadow);
        for (int i = 0; i < total; ++i) pinned(args[i], shadows[i]);
    }
    if (shadow > 0 && !known_otherwise(self) && any_of({"__hash__", "__repr__", "__str__", "__format__"}))
        guard(GuardKind::Identity, shadow, self);
}

}  // namespace framejit
