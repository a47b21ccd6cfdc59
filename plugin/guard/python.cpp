// _GuardSet(sources, guards, names, wanted=())
//   sources: tuples (kind, parent, key, index), numbered from 1; parent 0: none; key of arithmetic: the number of the other operand, or 0
//   guards:  tuples (kind, source, expected, n); for Tensor, expected is an example tensor
//   names:   names of the slots
// check(slots) -> bool, values() -> tuple, explain(slots) -> (guard, source, expected, got) or None, dead(), disarm(), release(), counts(),
// path(source), time(slots, n) -> nanoseconds per check. slots: a tuple; the object NULL (an attribute of the type) stands for an empty
// slot.
#include "plugin/guard/python.h"
#include "plugin/guard/guard.h"
#include <chrono>
#include <cstring>
#include <stdexcept>

namespace framejit {
namespace {

struct PyGuardSet {
    PyObject_HEAD GuardSet* set;
    Sources* sources;
    std::vector<int>* numbers;  // the caller's numbers -> ours, which are interned
    PyObject* names;
};

PyObject* null_marker;  // _GuardSet.NULL

template <class Kind> bool kind_of(const char* name, int count, Kind* out) {
    for (int i = 0; i < count; ++i)
        if (!std::strcmp(name_of(Kind(i)), name)) {
            *out = Kind(i);
            return true;
        }
    PyErr_Format(PyExc_ValueError, "no kind %s", name);
    return false;
}

constexpr int kSourceKinds = 0
#define SOURCE(name, place, meaning) +1
#include "plugin/guard/source.def"
#undef SOURCE
    ;
constexpr int kGuardKinds = 0
#define GUARD(name, arming, meaning) +1
#include "plugin/guard/guard.def"
#undef GUARD
    ;

bool parse_sources(PyObject* rows, Sources& out, std::vector<int>& numbers) {
    numbers.push_back(0);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(rows); ++i) {
        const char* name;
        int parent, index;
        PyObject* key;
        SourceKind kind;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(rows, i), "siOi", &name, &parent, &key, &index) || !kind_of(name, kSourceKinds, &kind))
            return false;
        if (kind == SourceKind::Slot)
            numbers.push_back(out.slot(index));
        else if (kind == SourceKind::Const)
            numbers.push_back(out.constant(key));
        else if (kind == SourceKind::Binary || kind == SourceKind::Compare || kind == SourceKind::Unary)
            numbers.push_back(out.combine(kind, numbers.at(size_t(parent)), numbers.at(PyLong_AsSize_t(key)), index));
        else
            numbers.push_back(out.child(kind, numbers.at(size_t(parent)), key == null_marker ? nullptr : key, index));
    }
    return true;
}

bool parse_guards(PyObject* rows, const std::vector<int>& numbers, std::vector<Guard>& guards, std::vector<TensorSpec>& specs) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(rows); ++i) {
        const char* name;
        int source;
        long long n;
        PyObject* expected;
        Guard guard;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(rows, i), "siOL", &name, &source, &expected, &n) || !kind_of(name, kGuardKinds, &guard.kind))
            return false;
        guard.source = numbers.at(size_t(source));
        guard.expected = PyRef::share(expected);
        guard.n = n;
        if (guard.kind == GuardKind::Same || guard.kind == GuardKind::NotSame || guard.kind == GuardKind::Disjoint ||
            guard.kind == GuardKind::SharedStorage)
            guard.n = numbers.at(size_t(n));
        if (guard.kind == GuardKind::Tensor) {
            guard.n = int64_t(specs.size());
            specs.push_back(spec_of(expected));
            guard.expected = PyRef::share(reinterpret_cast<PyObject*>(Py_TYPE(expected)));
        }
        guards.push_back(std::move(guard));
    }
    return true;
}

PyObject* build(PyTypeObject* type, PyObject* args) {
    PyObject *source_rows, *guard_rows, *names, *wanted_rows = nullptr;
    if (!PyArg_ParseTuple(args, "O!O!O|O!", &PyTuple_Type, &source_rows, &PyTuple_Type, &guard_rows, &names, &PyTuple_Type, &wanted_rows))
        return nullptr;
    if (init_torch() < 0) return nullptr;
    Sources sources;
    std::vector<int> numbers, wanted;
    std::vector<Guard> guards;
    std::vector<TensorSpec> specs;
    if (!parse_sources(source_rows, sources, numbers) || !parse_guards(guard_rows, numbers, guards, specs)) return nullptr;
    for (Py_ssize_t i = 0; wanted_rows && i < PyTuple_GET_SIZE(wanted_rows); ++i)
        wanted.push_back(numbers.at(size_t(PyLong_AsLong(PyTuple_GET_ITEM(wanted_rows, i)))));
    auto* self = reinterpret_cast<PyGuardSet*>(type->tp_alloc(type, 0));
    if (!self) return nullptr;
    self->numbers = new std::vector<int>(numbers);
    self->names = Py_NewRef(names);
    self->set = new GuardSet(sources, std::move(guards), std::move(specs), std::move(wanted), PyRef::share(names));
    self->sources = new Sources(std::move(sources));
    return reinterpret_cast<PyObject*>(self);
}

PyObject* guard_new(PyTypeObject* type, PyObject* args, PyObject*) {
    try {
        return build(type, args);
    } catch (const std::out_of_range&) {
        PyErr_SetString(PyExc_IndexError, "a row names a source that does not exist");
        return nullptr;
    }
}

PyGuardSet* cast(PyObject* o) { return reinterpret_cast<PyGuardSet*>(o); }

std::vector<PyObject*> slots_of(PyObject* tuple) {
    std::vector<PyObject*> slots;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
        PyObject* o = PyTuple_GET_ITEM(tuple, i);
        slots.push_back(o == null_marker ? nullptr : o);
    }
    return slots;
}

PyObject* guard_check(PyObject* self, PyObject* slots) { return PyBool_FromLong(cast(self)->set->check(slots_of(slots).data())); }

PyObject* guard_values(PyObject* self, PyObject*) {
    GuardSet& set = *cast(self)->set;
    PyObject* const* values = set.values();
    PyObject* list = PyList_New(0);
    for (size_t i = 0; list && i < set.wanted(); ++i) PyList_Append(list, values[i] ? values[i] : null_marker);
    return list;
}

PyObject* guard_explain(PyObject* self, PyObject* slots) {
    Failure f = cast(self)->set->explain(slots_of(slots).data());
    if (f.guard.empty()) Py_RETURN_NONE;
    auto text = [](const std::string& s) { return PyUnicode_DecodeUTF8(s.data(), Py_ssize_t(s.size()), "replace"); };
    return Py_BuildValue("(NNNN)", text(f.guard), text(f.source), text(f.expected), text(f.got));
}

PyObject* guard_dead(PyObject* self, PyObject*) { return PyBool_FromLong(cast(self)->set->dead()); }

PyObject* guard_disarm(PyObject* self, PyObject*) {
    cast(self)->set->disarm();
    Py_RETURN_NONE;
}

PyObject* guard_release(PyObject* self, PyObject*) {
    cast(self)->set->release();
    Py_RETURN_NONE;
}

PyObject* guard_counts(PyObject* self, PyObject*) {
    GuardSetCounts counts = cast(self)->set->counts();
    return Py_BuildValue("{sKsK}", "evaluations", counts.evaluations, "repairs", counts.repairs);
}

PyObject* guard_path(PyObject* self, PyObject* source) {
    size_t number = PyLong_AsSize_t(source);
    if (number >= cast(self)->numbers->size()) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_IndexError, "no such source");
        return nullptr;
    }
    std::string path = cast(self)->sources->path((*cast(self)->numbers)[number], cast(self)->names);
    return PyUnicode_FromStringAndSize(path.data(), Py_ssize_t(path.size()));
}

PyObject* guard_time(PyObject* self, PyObject* args) {
    PyObject* slots;
    int n;
    if (!PyArg_ParseTuple(args, "Oi", &slots, &n)) return nullptr;
    std::vector<PyObject*> list = slots_of(slots);
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < n; ++i) cast(self)->set->check(list.data());
    return PyFloat_FromDouble(std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / n);
}

int guard_traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(cast(self)->names);
    return cast(self)->set ? cast(self)->set->traverse(visit, arg) : 0;
}

void guard_dealloc(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    delete cast(self)->set;
    delete cast(self)->sources;
    delete cast(self)->numbers;
    Py_XDECREF(cast(self)->names);
    type->tp_free(self);
    Py_DECREF(type);
}

PyMethodDef methods[] = {
    {"check", guard_check, METH_O, nullptr},
    {"values", guard_values, METH_NOARGS, nullptr},
    {"explain", guard_explain, METH_O, nullptr},
    {"dead", guard_dead, METH_NOARGS, nullptr},
    {"disarm", guard_disarm, METH_NOARGS, nullptr},
    {"counts", guard_counts, METH_NOARGS, nullptr},
    {"path", guard_path, METH_O, nullptr},
    {"time", guard_time, METH_VARARGS, nullptr},
    {"release", guard_release, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(guard_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(guard_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(guard_traverse)},
    {Py_tp_methods, methods},
    {0, nullptr},
};
PyType_Spec spec = {"framejit._C._GuardSet", sizeof(PyGuardSet), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};

}  // namespace

int add_guard(PyObject* module) {
    PyRef type = PyRef::steal(PyType_FromSpec(&spec));
    if (!type || !(null_marker = PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type)))) return -1;
    if (PyObject_SetAttrString(type.get(), "NULL", null_marker) < 0) return -1;
    return PyModule_AddObjectRef(module, "_GuardSet", type.get());
}

}  // namespace framejit
