// Where values come from: sources, shadows, the identity table, and the guards that reading needs.
#include "plugin/interpret/members.h"
#include "plugin/record/kinds.h"
#include "plugin/record/recorder.h"

namespace framejit {

namespace {
uint64_t mix(uint64_t a, uint64_t b, uint64_t c) {
    uint64_t h = a * 0x9E3779B97F4A7C15ull + b;
    h = (h ^ (h >> 29)) * 0xBF58476D1CE4E5B9ull + c;
    return (h ^ (h >> 32)) * 0x94D049BB133111EBull;
}
}  // namespace

bool Recorder::guard(GuardKind kind, int source, PyObject* expected, int64_t n) {
    if (source <= 0 || broken_) return false;
    bool by_object = kind == GuardKind::Same || kind == GuardKind::NotSame;
    if (!guarded_.emplace(mix(uint64_t(kind) + 1, uint64_t(source), by_object ? uint64_t(n) : 0) | 1, 0).second) return false;
    guards.push_back({kind, source, PyRef::share(expected), n});
    return true;
}
void Recorder::guard_tensor(PyObject* t, int source) {
    if (source <= 0 || broken_) return;
    if (!guarded_.emplace(mix(uint64_t(GuardKind::Tensor) + 1, uint64_t(source), 0) | 1, 0).second) return;
    // In the middle of the region an in-place operator may have changed the tensor: what it was at entry is in its row.
    TensorRow* row = tensor_row(t);
    specs.push_back(row ? row->spec : spec_of(t));
    guards.push_back({GuardKind::Tensor, source, PyRef::share((PyObject*)Py_TYPE(t)), int64_t(specs.size()) - 1});
    if (!row) tensors[note_tensor(t, false)].source = source;
}
void Recorder::hole(PyObject* value, PyObject* callee) {
    if (callee)
        note_break(break_opaque_object, value, callee);
    else
        note_break(break_unknown_value, value);
}
void Recorder::make_internal(PyObject* o) {
    if (o && !valued(o) && identity_.emplace(o, Internal).second) keep_.push_back(Py_NewRef(o));
}

// What only a new container holds is as new as the container.
void Recorder::enter_fresh(PyObject* v, int depth) {
    if (depth > 4 || !(PyTuple_CheckExact(v) || PyList_CheckExact(v))) return;
    for (Py_ssize_t i = 0; i < Py_SIZE(v); ++i) {
        PyObject* o = PySequence_Fast_ITEMS(v)[i];
        if (!o || Py_REFCNT(o) != 1 || !(container(o) || PyIter_Check(o)) || identity_.find(o)) continue;
        make_internal(o);
        enter_fresh(o, depth + 1);
    }
}
// A tuple that a builtin iterator hands out. Elements of the containers behind it are in the identity table since its making (contents);
// other tuples in it come from iterators below (enumerate(zip(...))), which may keep them for their next step.
void Recorder::enter_yielded(PyObject* tuple) {
    make_internal(tuple);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i)
        if (PyObject* o = PyTuple_GET_ITEM(tuple, i); o && PyTuple_CheckExact(o) && !identity_.find(o)) enter_yielded(o);
}

// The shadow of a value that no slot vouches for.
int Recorder::lookup(PyObject* v, bool report) {
    if (!v || valued(v)) return Internal;
    if (is_tensor(v)) {  // never in the identity table: nobody holds them, so an address proves nothing; their rows have weak references
        if (TensorRow* t = tensor_row(v)) return t->source;
        if (is_wrapped(v)) return Internal;      // a look of functorch's: operators reach the tensor behind it
        if (Py_REFCNT(v) == 1) return Internal;  // made by C++ without an operator; a row appears when an operator uses it
        if (report) hole(v);
        return Unknown;
    }
    if (int* known = identity_.find(v)) return *known;
    if (code_like(v) || plain_c_value(v) || constant_tuple(v)) return Internal;
    if (Py_REFCNT(v) == 1 || Py_IS_TYPE(v, &PyCell_Type) || PyGen_Check(v) || PyMethod_Check(v) || PyExceptionInstance_Check(v)) {
        make_internal(v);
        enter_fresh(v, 0);
        return Internal;
    }
    if (report) hole(v);
    return Unknown;
}
// Is the result of the instruction what a frame below it returned? Slots hand such a value on; a C function that called back does not.
bool Recorder::passes(const Shadow& sh, Op op, PyObject* result) const {
    const bool call = op == Op::Call || op == Op::CallFunctionEx;
    return sh.returned && sh.returned == result && (!call || sh.returned_direct);
}
void Recorder::consumed(Shadow& sh) {
    PyRef value = PyRef::steal(std::exchange(sh.returned, nullptr));
    if (value) use(value.get(), sh.returned_shadow);
}

uint64_t Recorder::location(int source, PyObject* key) {
    Py_hash_t h = key && (PyUnicode_CheckExact(key) || number(key)) ? PyObject_Hash(key) : Py_hash_t(key);
    return mix(77, uint64_t(source), uint64_t(h)) | 1;
}
void Recorder::wrote(int source, PyObject* key, int shadow) {
    *written_.emplace(location(source, key), shadow).first = shadow;
    any_written_ = true;
    constant_written_ |= source > 0 && sources[source].kind == SourceKind::Const;
}
bool Recorder::written(int source, PyObject* key) {
    const int* shadow = any_written_ ? written_.find(location(source, key)) : nullptr;
    if (shadow) written_shadow_ = *shadow;
    return shadow;
}
void Recorder::added(PyObject* d, int source, PyObject* key) {
    if (PyDict_Check(d) && plain_key(key) && !PyDict_GetItemWithError(d, key)) added_[source].push_back(PyRef::share(key));
}

int Recorder::known_source(int source, PyObject* v) {
    if (!v || valued(v)) return source;
    int known;
    if (is_tensor(v)) {
        TensorRow* row = tensor_row(v);
        if (!row) {
            tensors[note_tensor(v, false)].source = source;
            return source;
        }
        known = row->source;
    } else {
        auto [at, fresh] = identity_.emplace(v, source);
        if (fresh) {
            keep_.push_back(Py_NewRef(v));
            return source;
        }
        known = *at;
    }
    if (known > 0 && known != source) guard(GuardKind::Same, source, nullptr, known);  // one object, two paths: it must stay one object
    return known > 0 ? known : source;
}
// The source of a part of a value, entered in the identity table. Parts of internal values are looked up.
int Recorder::child(SourceKind kind, int parent, PyObject* key, PyObject* v, int index) {
    if (parent <= 0) return lookup(v, false);
    return known_source(sources.child(kind, parent, key, index), v);
}

void Recorder::use_type(PyObject* v, int shadow) {
    if (shadow <= 0) return;
    if (is_tensor(v))
        guard_tensor(v, shadow);
    else if (v == Py_None || v == Py_Ellipsis || v == Py_NotImplemented)
        guard(GuardKind::Value, shadow, v);
    else
        guard(GuardKind::Type, shadow, (PyObject*)Py_TYPE(v));
}
void Recorder::guard_function(PyObject* fn, int shadow) {
    if (shadow > 0) guard(GuardKind::Function, shadow, fn);
}
void Recorder::length(PyObject* v, int shadow) {
    if (shadow <= 0) return;
    guard(GuardKind::Type, shadow, (PyObject*)Py_TYPE(v));
    auto grown = grown_.find(shadow);
    Py_ssize_t n = grown != grown_.end() ? grown->second : PyObject_Length(v);
    if (n < 0)
        PyErr_Clear();
    else
        guard(GuardKind::Length, shadow, nullptr, n);
}
void Recorder::keys(PyObject* d, int shadow) {
    PyObject *k, *x;
    Py_ssize_t pos = 0;
    while (PyDict_Next(d, &pos, &k, &x))
        if (!plain_key(k)) return hole(k);
    auto more = added_.find(shadow);
    auto is_new = [&](PyObject* key) {
        if (more == added_.end()) return false;
        for (auto& r : more->second)
            if (PyObject_RichCompareBool(r.get(), key, Py_EQ) == 1) return true;
        return false;
    };
    PyRef names = PyRef::steal(PyList_New(0));
    pos = 0;
    while (PyDict_Next(d, &pos, &k, &x))
        if (!is_new(k)) PyList_Append(names.get(), k);
    PyRef all = PyRef::steal(PyList_AsTuple(names.get()));
    guard(GuardKind::Keys, shadow, all.get());
}
// An immutable value from outside went into a container from outside. Its value matters only if the container is read in this region.
void Recorder::stored(int into, PyObject* v, int shadow) {
    if (into > 0 && v && shadow > 0 && valued(v)) stored_[into].emplace_back(PyRef::share(v), shadow);
}
void Recorder::read_stored(int container) {
    if (stored_.empty()) return;
    auto it = stored_.find(container);
    if (it == stored_.end()) return;
    for (auto& [value, shadow] : std::exchange(it->second, {})) use_value(value.get(), shadow);
}
// C code or a loop may look at all of it: guard what it holds and enter the elements, so that identity finds them whatever the code does.
void Recorder::contents(PyObject* v, int shadow) {
    if (shadow > 0) read_stored(shadow);
    if (shadow <= 0 || mutated_.count(shadow)) return;
    guard(GuardKind::Type, shadow, (PyObject*)Py_TYPE(v));
    if (PyDict_Check(v)) {
        keys(v, shadow);
        PyObject *k, *x;
        Py_ssize_t pos = 0;
        while (PyDict_Next(v, &pos, &k, &x))
            if (!written(shadow, k)) {
                int s = child(SourceKind::Item, shadow, k, x);
                if (valued(x)) use_value(x, s);
            }
        return;
    }
    if (PyList_Check(v) || PyTuple_Check(v)) {
        length(v, shadow);
        auto grown = grown_.find(shadow);
        Py_ssize_t n = grown != grown_.end() ? grown->second : Py_SIZE(v);
        for (Py_ssize_t i = 0; i < n && i < Py_SIZE(v); ++i) {
            PyObject* x = PySequence_Fast_ITEMS(v)[i];
            int s = child(SourceKind::Item, shadow, nullptr, x, int(i));
            if (valued(x)) use_value(x, s);
        }
        return;
    }
    if (PyAnySet_Check(v)) {  // order and elements matter to whoever iterates: compare with a frozen copy
        PyRef copy = PyRef::steal(PyFrozenSet_New(v));
        PyObject *it = PyObject_GetIter(v), *x;
        while (it && (x = PyIter_Next(it))) {
            if (!plain_key(x)) hole(x);
            Py_DECREF(x);
        }
        Py_XDECREF(it);
        if (PyErr_Occurred()) PyErr_Clear();
        guard(GuardKind::Value, shadow, copy.get());
    }
}
// C code looks at all of a container, however deep: what a new one holds may come from outside.
void Recorder::inside(PyObject* v, int depth) {
    if (depth > 20) return fail("containers are nested too deep");
    auto element = [&](PyObject* x) {
        if (!x || valued(x) || broken_) return;
        int s = is_tensor(x) ? Internal : lookup(x, false);
        if (s > 0 && container(x)) {
            if (seen_inside_.emplace(mix(3, uint64_t(s), 0) | 1, 0).second || mutated_.count(s)) contents(x, s), inside(x, depth + 1);
        } else if (s > 0)
            use(x, s);
        else if (container(x) && Py_REFCNT(x) > 0)
            inside(x, depth + 1);
    };
    if (PyDict_Check(v)) {
        PyObject *k, *x;
        Py_ssize_t pos = 0;
        while (PyDict_Next(v, &pos, &k, &x)) element(k), element(x);
    } else if (PyList_Check(v) || PyTuple_Check(v)) {
        for (Py_ssize_t i = 0; i < Py_SIZE(v); ++i) element(PySequence_Fast_ITEMS(v)[i]);
    }
}
// Python or C looks at the value.
void Recorder::use(PyObject* v, int shadow) {
    if (!v) return;
    if (shadow == Internal) {
        if (container(v)) inside(v, 0);
        return;
    }
    if (shadow == Unknown) return hole(v);
    if (is_tensor(v))
        guard_tensor(v, shadow);
    else if (valued(v))
        guard(GuardKind::Value, shadow, v);
    else if (container(v)) {
        contents(v, shadow);
        inside(v, 0);
    } else if (PyFunction_Check(v)) {
        guard_function(v, shadow);
        known_source(shadow, v);
    } else if (PyMethod_Check(v)) {
        use_type(v, shadow);
        call_target(v, shadow);
        PyObject* function = PyMethod_GET_FUNCTION(v);
        use(function, known_source(sources.child(SourceKind::MethodFunc, shadow), function));
    } else if (code_like(v) || derived_value(v))
        guard(GuardKind::Identity, shadow, v);
    else if (opaque_value(v))
        note_break(foreign(shadow) ? break_foreign : break_opaque_object, v);
    else {
        guard(GuardKind::Type, shadow, (PyObject*)Py_TYPE(v));
        if (PyObject* mapping = proxied_mapping(v))
            if (int s = known_source(sources.child(SourceKind::Proxied, shadow), mapping); container(mapping)) contents(mapping, s);
    }
}

// A class may change too: what a look-up in it found (or not) is guarded once per (class, name).
int Recorder::type_lookup(PyTypeObject* t, PyObject* name, PyObject* found) {
    const uint64_t key = mix(uint64_t(t), uint64_t(name), 1) | 1;
    if (int* known = reads_.find(key)) return *known;
    int s = guard_look_up(t, name, found);
    if (PyUnicode_CHECK_INTERNED(name)) reads_.emplace(key, s);  // the source keeps the name alive
    return s;
}
int Recorder::guard_look_up(PyTypeObject* t, PyObject* name, PyObject* found) {
    int s = sources.child(SourceKind::TypeLookup, sources.constant((PyObject*)t), name);
    if (!(t->tp_flags & Py_TPFLAGS_HEAPTYPE)) return s;  // builtin classes do not change
    if (!found)
        guard(GuardKind::Missing, s);
    else if (PyFunction_Check(found)) {
        guard_function(found, s);
        if (PyFunction_GET_CLOSURE(found)) known_source(s, found);  // its cells are read through it
    } else if (valued(found))
        guard(GuardKind::Value, s, found);
    else {
        guard(GuardKind::Identity, s, found);
        if (!code_like(found) && !plain_c_value(found)) return known_source(s, found);  // a descriptor or value written in Python
    }
    return s;
}
// A special method that a C slot has found in the class of its first argument: under which name does not matter to it, but to a guard.
void Recorder::guard_special(PyObject* self, PyObject* function) {
    PyTypeObject* type = Py_TYPE(self);
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE) || !reads_.emplace(mix(uint64_t(type), uint64_t(function), 4) | 1, 0).second) return;
    PyObject* name = ((PyFunctionObject*)function)->func_name;
    if (_PyType_Lookup(type, name) == function) {
        type_lookup(type, name, function);
        return;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
        PyObject *dict = ((PyTypeObject*)PyTuple_GET_ITEM(type->tp_mro, i))->tp_dict, *key, *value;
        Py_ssize_t at = 0;
        while (dict && PyDict_Next(dict, &at, &key, &value))
            if (value == function && _PyType_Lookup(type, key) == function) {
                type_lookup(type, key, function);
                return;
            }
    }
}
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
// The shadow of o.name; kOpen when only the result can tell.
int Recorder::attribute(PyObject* o, int shadow, PyObject* name, bool generic) {
    static PyObject* dunder_dict = PyUnicode_InternFromString("__dict__");
    if (PyType_Check(o)) return class_attribute(o, shadow, name);
    const uint64_t key = mix(uint64_t(shadow), uint64_t(name), uint64_t(Py_TYPE(o)) + generic) | 1;
    if (int known = shadow > 0 ? known_attribute(key, o, name) : int(Unknown); known != Unknown)
        return known == kOpen ? member_attribute(o, shadow, name) : known;
    if (!generic && !PyModule_Check(o) && !generic_getattribute(Py_TYPE(o))) {
        use_type(o, shadow);  // a __getattribute__ in Python decides, and is recorded
        static PyObject* getattribute = PyUnicode_InternFromString("__getattribute__");
        if (PyObject* how = _PyType_Lookup(Py_TYPE(o), getattribute); shadow > 0 && how && !PyFunction_Check(how))
            code_like(o) ? void(guard(GuardKind::Identity, shadow, o))
                         : note_break(break_opaque_object, o);  // list[int]; threading.local, weakref.proxy
        type_lookup(Py_TYPE(o), getattribute, _PyType_Lookup(Py_TYPE(o), getattribute));
        return kOpen;
    }
    PyObject* in_type = _PyType_Lookup(Py_TYPE(o), name);
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
    if (container(o)) contents(o, shadow);  // slices
    if (opaque_value(o)) note_break(foreign(shadow) ? break_foreign : break_opaque_object, o);
    return kOpen;
}

// An int, float or bool that follows from others by arithmetic stays symbolic: what is guarded is what Python decides with it.
int Recorder::arithmetic(SourceKind kind, int op, PyObject* a, int sa, PyObject* b, int sb) {
    if (sa <= 0 && sb <= 0) return kOpen;
    if (!number(a) || (b && !number(b))) return kOpen;
    if (sa == Unknown || sb == Unknown) return kOpen;
    if (sa > 0) use_type(a, sa);
    if (b && sb > 0) use_type(b, sb);
    int left = sa > 0 ? sa : sources.constant(a);
    int right = !b ? 0 : sb > 0 ? sb : sources.constant(b);
    return sources.combine(kind, left, right, op);
}

bool Recorder::foreign(int source) const {
    while (source > 0 && sources[source].kind != SourceKind::Slot && sources[source].kind != SourceKind::Const)
        source = sources[source].parent;
    return entry_unit > 0 && source > 0 && sources[source].kind == SourceKind::Slot;
}
int Recorder::call_target(PyObject* method, int shadow) {
    PyObject* self = PyMethod_GET_SELF(method);
    return shadow > 0 ? known_source(sources.child(SourceKind::MethodSelf, shadow), self) : lookup(self, true);
}
bool Recorder::defer_scalar(PyObject* v, int shadow) {
    if (shadow <= 0 || !(PyFloat_CheckExact(v) || PyLong_CheckExact(v)) || PyBool_Check(v)) return false;
    use_type(v, shadow);
    scalar_ = PyRef::share(v);
    scalar_shadow_ = shadow;
    return true;
}
void Recorder::settle_scalar() {  // no operator took it
    if (!scalar_) return;
    guard(GuardKind::Value, scalar_shadow_, scalar_.get());
    scalar_ = {};
}

// A container from outside is about to change. Afterwards its entry contents cannot be read any more, so what may matter is guarded now.
// append_only: nothing needs to be known but the length.
bool Recorder::mutating(PyObject* target, int shadow, bool append_only) {
    if (shadow <= 0) return false;
    use_type(target, shadow);
    if (append_only && PyList_Check(target)) {
        if (!mutated_.count(shadow)) grown_.emplace(shadow, Py_SIZE(target));
        return true;
    }
    if (!mutated_.count(shadow)) contents(target, shadow);
    mutated_.insert(shadow);
    return true;
}

}  // namespace framejit
