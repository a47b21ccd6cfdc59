// What each kind of row demands (`holds_`) and how it says so (`expects_`). A row on a source that resolves to nothing fails, except
// Missing.
#include "plugin/guard/row.h"
#include "plugin/guard/value.h"

namespace framejit::guards {
namespace {

struct Looking {
    const Row& row;
    PyObject* value;
    PyObject* other;
    Specs specs;
};

// Length of what has one without asking Python; -1 otherwise.
int64_t length_of(PyObject* o) {
    if (PyList_Check(o) || PyTuple_Check(o) || PyBytes_Check(o)) return Py_SIZE(o);
    if (PyDict_Check(o)) return PyDict_GET_SIZE(o);
    if (PyAnySet_Check(o)) return PySet_GET_SIZE(o);
    return PyUnicode_Check(o) ? PyUnicode_GET_LENGTH(o) : -1;
}

bool same_key(PyObject* a, PyObject* b) { return a == b || same_value(a, b); }

// An OrderedDict keeps its order apart from the dict below it; its iterator is C and knows.
bool same_ordered_keys(PyObject* dict, PyObject* expected) {
    PyRef keys = PyRef::steal(PyODict_Type.tp_iter(dict));
    Py_ssize_t at = 0;
    bool same = bool(keys);
    while (same) {
        PyRef key = PyRef::steal(PyIter_Next(keys.get()));
        if (!key) break;
        same = at < PyTuple_GET_SIZE(expected) && same_key(key.get(), PyTuple_GET_ITEM(expected, at));
        ++at;
    }
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return false;
    }
    return same && at == PyTuple_GET_SIZE(expected);
}

bool holds_Type(const Looking& l) { return reinterpret_cast<PyObject*>(Py_TYPE(l.value)) == l.row.expected; }
bool holds_Identity(const Looking& l) { return l.value == l.row.expected && l.row.alive(); }
bool holds_Value(const Looking& l) { return same_value(l.value, l.row.expected); }
bool holds_Tensor(const Looking& l) { return matches(l.value, l.specs[size_t(l.row.n)]); }
bool holds_Length(const Looking& l) { return length_of(l.value) == l.row.n; }

bool holds_Keys(const Looking& l) {
    if (!PyDict_Check(l.value) || PyDict_GET_SIZE(l.value) != PyTuple_GET_SIZE(l.row.expected)) return false;
    if (PyODict_Check(l.value)) return same_ordered_keys(l.value, l.row.expected);
    PyObject* key;
    PyObject* value;
    Py_ssize_t position = 0;
    for (Py_ssize_t i = 0; PyDict_Next(l.value, &position, &key, &value); ++i)
        if (!same_key(key, PyTuple_GET_ITEM(l.row.expected, i))) return false;
    return true;
}

// Reached only with a value. An empty __dict__ is as good as none: reading the source made it (n: the source is a Dict).
bool holds_Missing(const Looking& l) { return l.row.n && PyDict_CheckExact(l.value) && PyDict_GET_SIZE(l.value) == 0; }

bool holds_Function(const Looking& l) {
    if (!PyFunction_Check(l.value)) return false;
    auto fields = function_fields(l.value);
    for (size_t i = 0; i < fields.size(); ++i)
        if (*fields[i] != l.row.parts[i].get()) return false;
    return true;
}

bool holds_Bound(const Looking& l) {
    return PyCFunction_Check(l.value) &&
           reinterpret_cast<PyCFunctionObject*>(l.value)->m_ml == reinterpret_cast<PyMethodDescrObject*>(l.row.expected)->d_method;
}

bool holds_Present(const Looking&) { return true; }  // reached only with a value
bool holds_Same(const Looking& l) { return l.value == l.other; }
bool holds_NotSame(const Looking& l) { return l.value != l.other; }

// -1: not both tensors
int shared_storage(PyObject* a, PyObject* b) {
    if (!b || !is_tensor(a) || !is_tensor(b)) return -1;
    void* storage = view_of(a).storage;
    return storage && storage == view_of(b).storage;
}
bool holds_Disjoint(const Looking& l) { return shared_storage(l.value, l.other) == 0; }
bool holds_SharedStorage(const Looking& l) { return shared_storage(l.value, l.other) == 1; }

std::string expects_Type(const Looking& l) { return "type " + name_of_type(reinterpret_cast<PyTypeObject*>(l.row.expected)); }
std::string expects_Identity(const Looking& l) {
    return "the same " + (l.row.alive() ? print_value(l.row.expected) : std::string("object, which is gone"));
}
std::string expects_Value(const Looking& l) { return print_typed(l.row.expected); }
std::string expects_Tensor(const Looking& l) { return describe(l.specs[size_t(l.row.n)]); }
std::string expects_Length(const Looking& l) { return "length " + std::to_string(l.row.n); }
std::string expects_Keys(const Looking& l) { return "keys " + print_value(l.row.expected); }
std::string expects_Missing(const Looking&) { return "nothing"; }
std::string expects_Present(const Looking&) { return "something"; }
std::string expects_Function(const Looking& l) {
    return "function " + print_value(reinterpret_cast<PyFunctionObject*>(l.row.expected)->func_qualname);
}
std::string expects_Bound(const Looking& l) { return "bound " + print_value(l.row.expected); }
std::string expects_Same(const Looking&) { return "the same object as "; }
std::string expects_NotSame(const Looking&) { return "another object than "; }
std::string expects_Disjoint(const Looking&) { return "no storage shared with "; }
std::string expects_SharedStorage(const Looking&) { return "storage shared with "; }

struct GuardRow {
    const char* name;
    Arming arming;
    bool (*holds)(const Looking&);
    std::string (*expects)(const Looking&);
};
constexpr GuardRow kGuards[] = {
#define GUARD(name, arming, meaning) {#name, Arming::arming, holds_##name, expects_##name},
#include "plugin/guard/guard.def"
#undef GUARD
};

const GuardRow& row_of(GuardKind kind) { return kGuards[int(kind)]; }

std::string got(const Looking& l) {
    PyObject* v = l.value;
    if (!v) return "nothing";
    switch (l.row.kind) {
    case GuardKind::Tensor: return difference(v, l.specs[size_t(l.row.n)]);
    case GuardKind::Type: return "type " + name_of_type(Py_TYPE(v));
    case GuardKind::Length: return length_of(v) < 0 ? print_value(v) : "length " + std::to_string(length_of(v));
    case GuardKind::Identity: return l.row.alive() && Py_TYPE(v) == Py_TYPE(l.row.expected) ? "another " + print_value(v) : print_value(v);
    case GuardKind::Value: return Py_TYPE(v) == Py_TYPE(l.row.expected) ? print_value(v) : print_typed(v);
    case GuardKind::Keys:
        if (PyDict_Check(v)) {
            PyRef list = PyRef::steal(PyDict_Keys(v));
            PyRef keys = PyRef::steal(list ? PyList_AsTuple(list.get()) : nullptr);
            PyErr_Clear();
            return "keys " + print_value(keys.get());
        }
        return print_value(v);
    case GuardKind::Function: return PyFunction_Check(v) ? "a changed function" : print_value(v);
    case GuardKind::Same: return "two objects";
    case GuardKind::NotSame: return "one object";
    case GuardKind::Disjoint:
    case GuardKind::SharedStorage: return shared_storage(v, l.other) < 0 ? print_value(v) : "another aliasing";
    default: return print_value(v);
    }
}

// Held weakly, so that a compiled function does not keep models alive; what lives as long as the program is cheaper to hold.
bool hold_weakly(PyObject* o) {
    bool lasting = PyType_Check(o) || PyFunction_Check(o) || PyCFunction_Check(o) || PyModule_Check(o) || PyCode_Check(o);
    return !lasting && PyType_SUPPORTS_WEAKREFS(Py_TYPE(o));
}

}  // namespace

Arming arming_of(GuardKind kind) { return row_of(kind).arming; }

std::array<PyObject**, 3> function_fields(PyObject* function) {
    auto* f = reinterpret_cast<PyFunctionObject*>(function);
    return {&f->func_code, &f->func_defaults, &f->func_kwdefaults};  // what is read from the closure has guards of its own
}

Row make_row(const Guard& guard) {
    Row row{guard.kind, guard.source};
    row.n = guard.n;
    row.expected = guard.expected.get();
    row.held = guard.expected;
    if (arming_of(guard.kind) == Arming::Pair) row.other = int(guard.n);
    if (guard.kind == GuardKind::Identity && hold_weakly(row.expected)) {
        if (PyObject* reference = PyWeakref_NewRef(row.expected, nullptr)) {
            row.held = PyRef::steal(reference);
            row.weak = true;
        }
        PyErr_Clear();
    }
    if (guard.kind == GuardKind::Function && PyFunction_Check(row.expected)) {
        auto fields = function_fields(row.expected);
        for (size_t i = 0; i < fields.size(); ++i) row.parts[i] = PyRef::share(*fields[i]);
    }
    return row;
}

bool holds(const Row& row, PyObject* value, PyObject* other, Specs specs) {
    if (!value) return row.kind == GuardKind::Missing;
    return row_of(row.kind).holds({row, value, other, specs});
}

Failure failure(const Row& row, PyObject* value, PyObject* other, Specs specs, std::string source, const std::string& other_source) {
    Looking looking{row, value, other, specs};
    std::string expected = row_of(row.kind).expects(looking);
    if (arming_of(row.kind) == Arming::Pair) expected += other_source;
    return {name_of(row.kind), std::move(source), std::move(expected), got(looking)};
}

}  // namespace framejit::guards

namespace framejit {

const char* name_of(GuardKind kind) { return guards::row_of(kind).name; }

}  // namespace framejit
