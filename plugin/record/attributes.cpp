// Attributes, globals and items: where o.name and o[key] come from, and the guards on the way.
#include "plugin/interpret/members.h"
#include "plugin/record/kinds.h"
#include "plugin/record/recorder.h"
#include <algorithm>

namespace framejit {

int Recorder::class_attribute(PyObject* o, int shadow, PyObject* name) {
    if (shadow > 0) guard(GuardKind::Identity, shadow, o);
    PyObject* meta = _PyType_Lookup(Py_TYPE(o), name);
    if (meta && Py_TYPE(meta)->tp_descr_set) return kOpen;
    PyObject* v = _PyType_Lookup((PyTypeObject*)o, name);
    if (!v) return kOpen;
    int s = type_lookup((PyTypeObject*)o, name, v);
    return Py_TYPE(v)->tp_descr_get ? int(kOpen) : s;
}
// What attribute() said of the same read before: everything is guarded already. Unknown: there was none.
int Recorder::known_attribute(uint64_t key, PyObject* o, PyObject* name) {
    int* source = reads_.find(key);
    PyObject* d = source ? dict_of(o) : nullptr;
    if (!d || written(sources[*source].parent, name) || mutated_.count(sources[*source].parent)) return Unknown;
    if (PyDict_GetItemWithError(d, name)) return *source;
    int* absent = reads_.find(~key | 1);
    return absent ? *absent : int(Unknown);
}
// An attribute that may lie in the object's own dict; absent: what it is otherwise.
int Recorder::dict_attribute(uint64_t key, PyObject* d, int shadow, PyObject* name, int absent) {
    int ds = sources.child(SourceKind::Dict, shadow);
    int source = sources.child(SourceKind::Item, ds, name);
    bool there = PyDict_GetItemWithError(d, name);
    if (written(ds, name)) return there ? kWritten : kOpen;
    if (mutated_.count(ds)) return kOpen;
    if (PyUnicode_CHECK_INTERNED(name)) {  // the source keeps the name alive
        reads_.emplace(key, source);
        if (!there) reads_.emplace(~key | 1, absent);
    }
    if (there) return source;
    guard(GuardKind::Missing, source);
    return absent;
}
// What a __getattr__ finds that only looks into dicts of the object (members.h); the interpreter answers it in the same way.
int Recorder::member_attribute(PyObject* o, int shadow, PyObject* name) {
    const std::vector<PyRef>* dicts = member_dicts(o, name);
    if (!dicts) return kOpen;
    static PyObject* getattr = PyUnicode_InternFromString("__getattr__");
    type_lookup(Py_TYPE(o), getattr, _PyType_Lookup(Py_TYPE(o), getattr));
    int own = sources.child(SourceKind::Dict, shadow);
    for (const PyRef& key : *dicts) {
        if (written(own, key.get())) return kOpen;
        int place = sources.child(SourceKind::Item, own, key.get());
        PyObject* members = PyDict_GetItemWithError(dict_of(o), key.get());
        if (!members) {
            guard(GuardKind::Missing, place);
            continue;
        }
        if (!PyDict_CheckExact(members)) return kOpen;
        place = known_source(place, members);
        use_type(members, place);
        bool there = PyDict_GetItemWithError(members, name), changed = written(place, name);
        if (there) return changed ? int(kWritten) : sources.child(SourceKind::Item, place, name);
        if (!changed) guard(GuardKind::Missing, sources.child(SourceKind::Item, place, name));
    }
    return kOpen;
}
// What the guard on a tensor or the operators say needs no source; what Python keeps on it, and what autograd notes, does.
int Recorder::tensor_attribute(PyObject* o, int shadow, PyObject* name, PyObject* in_type) {
    if (shadow <= 0) return kOpen;
    guard_tensor(o, shadow);
    if (in_type && Py_TYPE(in_type)->tp_descr_set) {
        const bool counts = !PyUnicode_CompareWithASCIIString(name, "_version");
        if (counts && std::any_of(ops.begin(), ops.end(), [](const OpRow& op) { return op.schema->mutates; }))
            note_break(break_metadata, o);
        for (const char* noted : {"grad", "_grad", "grad_fn", "is_leaf", "_version", "output_nr", "retains_grad", "name"})
            if (!PyUnicode_CompareWithASCIIString(name, noted))
                return Py_IS_TYPE(in_type, &PyGetSetDescr_Type) ? sources.child(SourceKind::Attr, shadow, name) : int(kOpen);
        return kOpen;
    }
    PyObject* d = dict_of(o);
    if (!d || (in_type && Py_TYPE(in_type)->tp_descr_get && !PyDict_GetItemWithError(d, name))) return kOpen;
    int source = sources.child(SourceKind::Item, sources.child(SourceKind::Dict, shadow), name);
    if (PyDict_GetItemWithError(d, name)) return source;
    guard(GuardKind::Missing, source);
    return kOpen;
}
// A property, slot or C getter: decided by the class.
int Recorder::described(PyObject* o, int shadow, PyObject* name, PyObject* in_type) {
    if (Py_IS_TYPE(in_type, &PyProperty_Type) || PyFunction_Check(in_type) || (Py_TYPE(in_type)->tp_flags & Py_TPFLAGS_HEAPTYPE))
        return kOpen;
    if (written(shadow, name)) return kWritten;
    int source = sources.child(SourceKind::Attr, shadow, name);
    if (!Py_IS_TYPE(in_type, &PyMemberDescr_Type)) return source;
    PyRef value = PyRef::steal(_PyObject_GenericGetAttrWithDict(o, name, nullptr, 1));
    if (value) return source;
    guard(GuardKind::Missing, source);  // an empty slot
    return kOpen;
}
// Who answers for attributes: a class may get a __getattribute__ later. generic: it was asked for by name, object's own.
PyObject* Recorder::guard_getattribute(PyTypeObject* type, bool generic) {
    static PyObject* const name = PyUnicode_InternFromString("__getattribute__");
    PyObject* how = generic ? nullptr : _PyType_Lookup(type, name);
    if (how && (type->tp_flags & Py_TPFLAGS_HEAPTYPE)) type_lookup(type, name, how);
    return how;
}
// The shadow of o.name; kOpen when only the result can tell.
int Recorder::attribute(PyObject* o, int shadow, PyObject* name, bool generic) {
    static PyObject* dunder_dict = PyUnicode_InternFromString("__dict__");
    if (PyType_Check(o)) return class_attribute(o, shadow, name);
    const uint64_t key = mix(uint64_t(shadow), uint64_t(name), uint64_t(Py_TYPE(o)) + generic) | 1;
    if (int known = shadow > 0 ? known_attribute(key, o, name) : int(Unknown); known != Unknown)
        return known == kOpen ? member_attribute(o, shadow, name) : known;
    if (!generic && !PyModule_Check(o) && !generic_getattribute(Py_TYPE(o))) {
        use_type(o, shadow);  // a __getattribute__ in Python decides, and is recorded
        PyObject* how = guard_getattribute(Py_TYPE(o), generic);
        if (shadow > 0 && how && !PyFunction_Check(how))
            code_like(o) ? void(guard(GuardKind::Identity, shadow, o))
                         : note_break(break_opaque_object, o);  // list[int]; threading.local, weakref.proxy
        return kOpen;
    }
    PyObject* in_type = _PyType_Lookup(Py_TYPE(o), name);
    guard_getattribute(Py_TYPE(o), generic);
    if (shadow == Internal && code_like(o) && !identity_.find(o)) shadow = sources.constant(o);  // reached through a class or a C slot
    if (shadow == Unknown) {
        hole(o);
        return kOpen;
    }
    bool heap = Py_TYPE(o)->tp_flags & Py_TPFLAGS_HEAPTYPE;
    int in_class = heap ? type_lookup(Py_TYPE(o), name, in_type) : int(Internal);
    if (is_tensor(o)) return tensor_attribute(o, shadow, name, in_type);
    if (shadow == Internal) {
        if (name == dunder_dict) {
            PyRef made = PyRef::steal(PyObject_GenericGetDict(o, nullptr));  // a function has none until it is asked for
            if (!made) PyErr_Clear();
            make_internal(dict_of(o));
        }
        if (in_type && !Py_TYPE(in_type)->tp_descr_get && in_class > 0 && !valued(in_type)) {
            PyObject* d = dict_of(o);
            if (!d || !PyDict_GetItemWithError(d, name)) return in_class;  // a class attribute read through a new object
        }
        const bool in_c = in_type && (Py_IS_TYPE(in_type, &PyGetSetDescr_Type) || Py_IS_TYPE(in_type, &PyMemberDescr_Type));
        return in_c ? int(kInside) : int(kOpen);
    }
    use_type(o, shadow);
    if (name == dunder_dict) {
        int source = sources.child(SourceKind::Dict, shadow);
        PyRef made = PyRef::steal(PyObject_GenericGetDict(o, nullptr));  // a function gets one by being asked
        if (made || dict_of(o)) return source;
        PyErr_Clear();
        guard(GuardKind::Missing, source);
        return kOpen;
    }
    if (in_type && Py_TYPE(in_type)->tp_descr_set) return described(o, shadow, name, in_type);
    bool value_of_class = in_type && !Py_TYPE(in_type)->tp_descr_get && in_class > 0;
    int absent = value_of_class ? in_class : int(kOpen);  // otherwise a method, or __getattr__
    PyObject* d = dict_of(o);
    if (!d && dict_slot(o)) guard(GuardKind::Missing, sources.child(SourceKind::Item, sources.child(SourceKind::Dict, shadow), name));
    int source = d ? dict_attribute(key, d, shadow, name, absent) : absent;
    return source == kOpen && !in_type ? member_attribute(o, shadow, name) : source;
}
// The shadow of a global name; kOpen when it is nowhere.
int Recorder::global(PyObject* globals, PyObject* builtins, PyObject* name) {
    const uint64_t key = mix(uint64_t(globals), uint64_t(name), 2) | 1;
    if (int* known = constant_written_ ? nullptr : reads_.find(key)) return *known;  // names in code are interned
    int g = sources.constant(globals);
    if (written(g, name)) return kWritten;
    int source = sources.child(SourceKind::Item, g, name);
    if (!PyDict_GetItemWithError(globals, name)) {
        guard(GuardKind::Missing, source);
        if (!PyDict_Check(builtins)) return kOpen;
        source = sources.child(SourceKind::Item, sources.constant(builtins), name);
    }
    reads_.emplace(key, source);
    return source;
}
bool Recorder::in_python(PyObject* o, const char* method) {
    if (!(Py_TYPE(o)->tp_flags & Py_TPFLAGS_HEAPTYPE)) return false;
    PyRef name = PyRef::steal(PyUnicode_InternFromString(method));
    PyObject* found = _PyType_Lookup(Py_TYPE(o), name.get());
    type_lookup(Py_TYPE(o), name.get(), found);
    return found && PyFunction_Check(found);
}
int Recorder::item(PyObject* o, int shadow, PyObject* key, int key_shadow) {
    if (is_tensor(o)) {
        use(o, shadow);
        use(key, key_shadow);
        return kOpen;
    }
    use(key, key_shadow);
    if (shadow == Unknown) {
        hole(o);
        return kOpen;
    }
    if (shadow == Internal) return kOpen;
    use_type(o, shadow);
    if (in_python(o, "__getitem__")) return kOpen;
    if (PyDict_Check(o)) {
        if (!plain_key(key)) {
            hole(key);
            return kOpen;
        }
        if (written(shadow, key)) return kWritten;
        if (mutated_.count(shadow)) return kOpen;  // what it held is guarded, and what went in
        PyObject* v = PyDict_GetItemWithError(o, key);
        int s = sources.child(SourceKind::Item, shadow, key);
        if (v) return s;
        guard(GuardKind::Missing, s);
        return kOpen;  // KeyError, or __missing__ in Python
    }
    if ((PyList_Check(o) || PyTuple_Check(o)) && PyLong_CheckExact(key)) {
        length(o, shadow);
        Py_ssize_t i = PyLong_AsSsize_t(key), n = Py_SIZE(o);
        if (i == -1 && PyErr_Occurred()) PyErr_Clear();
        if (i < 0) i += n;
        if (i < 0 || i >= n) return kOpen;
        auto grown = grown_.find(shadow);
        PyRef position = PyRef::steal(PyLong_FromSsize_t(i));
        if (!mutated_.count(shadow) && written(shadow, position.get())) return kWritten;
        if (mutated_.count(shadow) || (grown != grown_.end() && i >= grown->second)) {
            read_stored(shadow);
            return kOpen;
        }
        return sources.child(SourceKind::Item, shadow, nullptr, int(i));
    }
    if (container(o))
        contents(o, shadow);  // slices
    else
        use(o, shadow);  // str, bytes, range: a part follows from the whole
    return kOpen;
}

}  // namespace framejit
