// Methods of builtin types called by name (l.__iadd__, super().__setitem__), and callables that C code gets and may call.
#include "plugin/record/call_policy.h"
#include "plugin/record/kinds.h"
#include "plugin/record/recorder.h"
#include <cstring>

namespace framejit {

// super().__setitem__(key, value): the builtin base's own, whatever the class overrides.
void Recorder::base_setitem(PyObject* self, int shadow, PyObject** key_value, const int* shadows) {
    PyTypeObject* base = Py_TYPE(self);
    while (base->tp_base && (base->tp_flags & Py_TPFLAGS_HEAPTYPE)) base = base->tp_base;
    PyRef descr = PyRef::steal(PyObject_GetAttrString((PyObject*)base, "__setitem__"));
    if (!descr || !container(self)) {
        PyErr_Clear();
        return note_break(break_opaque_object, self);
    }
    use_type(self, shadow);
    use(key_value[0], shadows[0]);
    adding(self, shadow, key_value[0]);
    stored(shadow, key_value[1], shadows[1]);
    PyObject* args[3] = {self, key_value[0], key_value[1]};
    int all[3] = {shadow, shadows[0], shadows[1]};
    call_event(descr.get(), Internal, args, all, 3, nullptr);
    wrote(shadow, key_value[0], valued(key_value[1]) ? shadows[1] : int(Internal));
}

// Operators of tensors are methods of a Python class, which programs replace. op: CPython's NB_ numbers.
void Recorder::guard_operator(PyObject* tensor, int op, bool reflected) {
    static const std::vector<PyObject*> names = [] {
        std::vector<PyObject*> all;
        for (const char* prefix : {"__", "__i", "__r"})
            for (int k = 0; k < 13; ++k) all.push_back(PyUnicode_InternFromString((prefix + std::string(operator_name(k)) + "__").c_str()));
        return all;
    }();
    PyTypeObject* type = Py_TYPE(tensor);
    auto look = [&](PyObject* name) { type_lookup(type, name, _PyType_Lookup(type, name)); };
    look(names[size_t(op % 13 + (reflected ? 26 : 0))]);
    if (op >= 13 && !reflected) look(names[size_t(op)]);
}
static bool changes_self(PyObject* slot) {
    for (const char* name : {"__iadd__", "__imul__", "__iand__", "__ior__", "__isub__", "__ixor__", "__delitem__", "__init__"})
        if (!PyUnicode_CompareWithASCIIString(slot, name)) return true;
    return false;
}
// l.__iadd__(x), dict.__delitem__(d, k) on a container from outside: the builtin base's own, whatever the class overrides.
void Recorder::slot_event(PyObject* self, int shadow, PyObject* name, PyObject** args, const int* shadows, int total, PyObject* kw) {
    PyTypeObject* base = Py_TYPE(self);
    while (base->tp_base && (base->tp_flags & Py_TPFLAGS_HEAPTYPE)) base = base->tp_base;
    PyObject* slot = _PyType_Lookup(base, name);
    if (!slot || !container(self)) return note_break(break_opaque_object, self);
    mutating(self, shadow, false);
    std::vector<PyObject*> all = {self};
    std::vector<int> from = {shadow};
    for (int i = 0; i < total; ++i) {
        if (!is_tensor(args[i])) use(args[i], shadows[i]);
        all.push_back(args[i]);
        from.push_back(shadows[i]);
    }
    call_event(slot, Internal, all.data(), from.data(), total + 1, kw);
}
// C code gets a callable and may call it: what is written in Python becomes frames, what is written in C must do nothing to the outside.
void Recorder::handed_to_c(PyObject* v) {
    if (valued(v) || container(v) || is_tensor(v)) return;  // most arguments
    if (Py_IS_TYPE(v, &_PyMethodWrapper_Type)) {
        const BoundSlot slot = bound_slot(v);
        if (!slot.self || is_tensor(slot.self)) return;
        int s = lookup(slot.self, false);
        const bool sets = changes_self(slot.name) || !PyUnicode_CompareWithASCIIString(slot.name, "__setitem__");
        if (sets && s > 0) return note_break(break_unknown_call, slot.self, v);
        return use(slot.self, s);
    }
    const char* type = Py_TYPE(v)->tp_name;
    if (!strcmp(type, "functools.partial")) {
        PyRef function = PyRef::steal(PyObject_GetAttrString(v, "func")), args = PyRef::steal(PyObject_GetAttrString(v, "args"));
        if (!function || !args) return PyErr_Clear();
        handed_to_c(function.get());
        return use(args.get(), Internal);
    }
    if (is_lru_cache(v) && lookup(v, false) > 0) return note_break(break_unknown_call, nullptr, v);  // what it keeps has no source there
    if (!strcmp(type, "operator.attrgetter") || !strcmp(type, "operator.methodcaller")) return note_break(break_opaque_object, v);
    if (!PyCFunction_Check(v) && !Py_IS_TYPE(v, &PyMethodDescr_Type) && !Py_IS_TYPE(v, &PyWrapperDescr_Type)) return;
    PyObject* method = unbound(v);
    const CallRow& row = row_of(method ? method : v);
    bool harmless = framejit::harmless(row.policy);
    if (Py_IS_TYPE(v, &PyWrapperDescr_Type))
        harmless = !changes_self(PyDescr_NAME(v)) && PyUnicode_CompareWithASCIIString(PyDescr_NAME(v), "__setitem__");
    const bool changes = row.policy == Policy::MUTATE || row.policy == Policy::STORES || row.name == "list.append";
    if (method && changes && lookup(PyCFunction_GET_SELF(v), false) == Internal) harmless = true;  // map(made_here.append, ...)
    if (assumed_pure(v)) harmless = true;
    if (!harmless) return note_break(break_unknown_call, nullptr, v);
    if (method) use(PyCFunction_GET_SELF(v), lookup(PyCFunction_GET_SELF(v), false));
}

// super().__getattribute__(name), object.__setattr__(o, name, v): slots of C types called by name. kOpen - 100: not one of them.
int Recorder::slot_wrapper(PyObject* fn, PyObject** args, const int* shadows, int total, PyObject* kw) {
    constexpr int kOther = kOpen - 100;
    bool bound = Py_IS_TYPE(fn, &_PyMethodWrapper_Type);
    if (!bound && !Py_IS_TYPE(fn, &PyWrapperDescr_Type)) return kOther;
    const BoundSlot slot = bound ? bound_slot(fn) : BoundSlot{PyDescr_NAME(fn), total ? args[0] : nullptr};
    if (!slot.name || !slot.self) return kOther;
    PyRef self = PyRef::share(slot.self);
    int first = bound ? 0 : 1, rest = total - first;
    int self_shadow = bound ? lookup(self.get(), true) : shadows[0];
    auto is = [&](const char* n) { return !PyUnicode_CompareWithASCIIString(slot.name, n); };
    if (rest == 1 && is("__getattribute__") && PyUnicode_Check(args[first]))
        return attribute(self.get(), self_shadow, interned(args[first]).get(), true);
    const bool tensor = is_tensor(self.get());  // dispatch sees what is done to it
    if (rest == 2 && is("__setattr__") && PyUnicode_Check(args[first])) {
        use(args[first], shadows[first]);
        if (self_shadow > 0)
            set_attribute(self.get(), self_shadow, interned(args[first]).get(), args[first + 1], shadows[first + 1]);
        else if (valued(args[first + 1]))
            use_value(args[first + 1], shadows[first + 1]);
        return Internal;
    }
    if (rest == 1 && is("__delattr__") && self_shadow > 0) {
        event(EventKind::DelAttr, self.get(), self_shadow, interned(args[first]).get(), Internal, nullptr, Internal);
        return Internal;
    }
    if (rest == 2 && is("__setitem__") && self_shadow > 0 && !tensor) {
        base_setitem(self.get(), self_shadow, args + first, shadows + first);
        return Internal;
    }
    if (self_shadow > 0 && !tensor && changes_self(slot.name)) {
        slot_event(self.get(), self_shadow, slot.name, args + first, shadows + first, rest, kw);
        return kOpen;
    }
    if ((is("__set__") || is("__delete__")) && rest > 0 && shadows[first] > 0) {
        note_break(break_opaque_object, args[first], fn);  // a slot written by its descriptor
        return Internal;
    }
    if (rest == 1 && is("__getitem__") && !tensor) return item(self.get(), self_shadow, args[first], shadows[first]);
    if (is("__call__") && PyType_Check(self.get())) constructing_ = self.get();
    for (int i = 0; i < total; ++i) use(args[i], shadows[i]);
    address_of_slot(self.get(), self_shadow, slot.name, args, shadows, total);
    return kOpen;
}

}  // namespace framejit
