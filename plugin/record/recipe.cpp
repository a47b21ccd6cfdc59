// Recipes: how the objects that a region made and that outlive it are built again. Everything is found from the values themselves: a value
// from outside is its source, a tensor its row, an immutable object itself, and a new object is its type and its parts. An object that can
// be neither referred to nor rebuilt (a live generator, an open file) fails the region, which then stays eager.
// Instance parts: [n base items..., slot values...]; the base items are (key, value) pairs of a dict subclass or elements of a list or
// tuple subclass; `dict` is its __dict__.
#include "plugin/record/kinds.h"
#include "plugin/record/recorder.h"
#include "plugin/torch/internals.h"
#include <cstring>

namespace framejit {

int Recorder::add_recipe(PyObject* value, Recipe r) {
    recipes.rows.push_back(std::move(r));
    int i = int(recipes.rows.size()) - 1;
    if (value) {
        recipes.memo[value] = i;
        recipes.held.push_back(PyRef::share(value));
    }
    return i;
}
int Recorder::recipe_of(PyObject* v, int shadow) {
    Recipe r;
    if (!v) return add_recipe(nullptr, std::move(r));
    if (shadow > 0) {
        r.kind = Recipe::Src;
        r.id = shadow;
        return add_recipe(nullptr, std::move(r));
    }
    return build(v);
}
int Recorder::recipe_of(const Operand& o) {
    Recipe r;
    switch (o.kind) {
    case Operand::None: return add_recipe(nullptr, std::move(r));
    case Operand::Src:
        r.kind = Recipe::Src;
        r.id = o.id;
        return add_recipe(nullptr, std::move(r));
    case Operand::Row:
        r.kind = Recipe::Tensor;
        r.id = o.id;
        return add_recipe(nullptr, std::move(r));
    default: return build(o.object.get());
    }
}

// A tuple of constants may still hold a function that came from outside: on another call it may be another one.
bool Recorder::holds_source(PyObject* tuple) {
    if (int* known = identity_.find(tuple)) return *known != Internal || PyTuple_Check(tuple);
    if (!PyTuple_Check(tuple)) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i)
        if (holds_source(PyTuple_GET_ITEM(tuple, i))) return true;
    return false;
}
int Recorder::build(PyObject* v) {
    if (!v) return add_recipe(nullptr, {});
    Recipe r;
    r.kind = Recipe::Const;
    r.object = PyRef::share(v);
    if (immutable(v)) {
        if (PySlice_Check(v) && Py_REFCNT(v) < 1000) {
            auto* s = (PySliceObject*)v;
            for (PyObject* part : {s->start, s->stop, s->step})
                if (!immutable(part)) fail("a slice of tensors outlives the region");
        }
        return add_recipe(nullptr, std::move(r));
    }
    if (auto it = recipes.memo.find(v); it != recipes.memo.end()) return it->second;
    for (const Event& e : events)
        if (e.result.get() == v) {
            r.kind = Recipe::EventResult;
            return add_recipe(v, std::move(r));
        }
    if (is_tensor(v)) {
        if (is_inference(v) != inference_) fail("a tensor of another inference mode outlives the region");
        int row = tensor_number(v);
        if (row < 0) row = note_tensor(v, false);
        if (tensors[row].source > 0) return recipe_of(v, tensors[row].source);
        r.kind = Recipe::Tensor;
        r.id = row;
        r.object = {};
        return add_recipe(nullptr, std::move(r));
    }
    if (int* known = identity_.find(v)) {
        if (*known > 0) return recipe_of(v, *known);
        if (*known == Unknown) fail(std::string("an object of unknown origin outlives the region: ") + Py_TYPE(v)->tp_name);
    } else if (plain_c_value(v))
        return add_recipe(v, std::move(r));
    if (constant_tuple(v) && !holds_source(v)) return add_recipe(v, std::move(r));
    if (PyFunction_Check(v)) return identity_.find(v) ? build_function(v) : add_recipe(v, std::move(r));
    if (PyCFunction_Check(v)) {
        PyObject* self = PyCFunction_GET_SELF(v);
        if (!self || PyModule_Check(self) || PyType_Check(self)) return add_recipe(v, std::move(r));
        r.kind = Recipe::BoundBuiltin;
        r.object = PyRef::steal(PyUnicode_FromString(((PyCFunctionObject*)v)->m_ml->ml_name));
        int i = add_recipe(v, std::move(r));
        int part = build(self);
        recipes.rows[i].parts = {part};
        return i;
    }
    if (PyType_Check(v) && identity_.find(v) && (((PyTypeObject*)v)->tp_flags & Py_TPFLAGS_HEAPTYPE))
        fail("a class made inside the region outlives it");
    if (code_like(v)) return add_recipe(v, std::move(r));
    return build_container(v);
}

// long: one case per builtin type
int Recorder::build_container(PyObject* v) {
    Recipe r;
    r.object = PyRef::share((PyObject*)Py_TYPE(v));
    auto items = [&](int i, PyObject** p, Py_ssize_t n) {
        std::vector<int> parts;
        for (Py_ssize_t k = 0; k < n; ++k) parts.push_back(build(p[k]));
        recipes.rows[i].parts = std::move(parts);
        return i;
    };
    if (PyTuple_CheckExact(v) || PyList_CheckExact(v)) {
        r.kind = PyTuple_CheckExact(v) ? Recipe::Tuple : Recipe::List;
        int i = add_recipe(v, std::move(r));
        return items(i, PySequence_Fast_ITEMS(v), Py_SIZE(v));
    }
    if (PyDict_CheckExact(v)) {
        r.kind = Recipe::Dict;
        int i = add_recipe(v, std::move(r));
        std::vector<int> parts;
        PyObject *k, *x;
        Py_ssize_t pos = 0;
        while (PyDict_Next(v, &pos, &k, &x)) {
            parts.push_back(build(k));
            parts.push_back(build(x));
        }
        recipes.rows[i].parts = std::move(parts);
        return i;
    }
    if (PyAnySet_CheckExact(v)) {
        r.kind = PySet_Check(v) ? Recipe::Set : Recipe::FrozenSet;
        int i = add_recipe(v, std::move(r));
        std::vector<int> parts;
        PyRef list = PyRef::steal(PySequence_List(v));
        for (Py_ssize_t k = 0; list && k < PyList_GET_SIZE(list.get()); ++k) parts.push_back(build(PyList_GET_ITEM(list.get(), k)));
        recipes.rows[i].parts = std::move(parts);
        return i;
    }
    if (Py_IS_TYPE(v, &PyCell_Type)) {
        r.kind = Recipe::Cell;
        int i = add_recipe(v, std::move(r)), part;
        int* shadow = cell_shadow_.find(v);
        part = recipe_of(PyCell_GET(v), shadow ? *shadow : int(Internal));
        recipes.rows[i].parts = {part};
        return i;
    }
    if (PyMethod_Check(v)) {
        r.kind = Recipe::Method;
        int i = add_recipe(v, std::move(r));
        int fn = build(PyMethod_GET_FUNCTION(v)), self = build(PyMethod_GET_SELF(v));
        recipes.rows[i].parts = {fn, self};
        return i;
    }
    if (PyGen_Check(v) || PyCoro_CheckExact(v) || PyAsyncGen_CheckExact(v)) {
        fail("a generator is alive where the region ends");
        return add_recipe(v, std::move(r));
    }
    if (PyTuple_Check(v) && !strncmp(Py_TYPE(v)->tp_name, "torch.return_types.", 19)) {
        r.kind = Recipe::TypeCall;
        PyRef plain = PyRef::steal(PySequence_Tuple(v));
        int i = add_recipe(v, std::move(r));
        recipes.held.push_back(plain);
        int part = build_container(plain.get());
        recipes.rows[i].parts = {part};
        return i;
    }
    if (Py_TYPE(v)->tp_flags & Py_TPFLAGS_HEAPTYPE) return build_instance(v);
    return build_reduced(v);
}

// An object of a class: made by object.__new__ (or the builtin base's), then its contents are put in without running __init__ or
// __setattr__.
int Recorder::build_instance(PyObject* v) {
    PyTypeObject* t = Py_TYPE(v);
    PyTypeObject* base = t;  // the builtin class below the Python ones
    while (base && (base->tp_flags & Py_TPFLAGS_HEAPTYPE)) base = base->tp_base;
    bool known = base == &PyBaseObject_Type || base == &PyDict_Type || base == &PyODict_Type || base == &PyList_Type ||
                 base == &PyTuple_Type || PyType_IsSubtype(base, (PyTypeObject*)PyExc_BaseException);
    if (!known || t->tp_itemsize > (base == &PyTuple_Type ? int(sizeof(void*)) : 0) ||
        (base != &PyBaseObject_Type && !strncmp(t->tp_name, "torch._C", 8)))
        return build_reduced(v);
    if (base == &PyBaseObject_Type && t->tp_basicsize > Py_ssize_t(sizeof(PyObject) + 2 * sizeof(void*)) && !t->tp_dictoffset)
        return build_reduced(v);
    Recipe r;
    r.kind = Recipe::Instance;
    r.object = PyRef::share((PyObject*)t);
    int i = add_recipe(v, std::move(r));
    std::vector<int> parts;
    if (PyDict_Check(v)) {
        PyObject *k, *x;
        Py_ssize_t pos = 0;
        while (PyDict_Next(v, &pos, &k, &x)) {
            parts.push_back(build(k));
            parts.push_back(build(x));
        }
    } else if (PyList_Check(v) || PyTuple_Check(v)) {
        for (Py_ssize_t k = 0; k < Py_SIZE(v); ++k) parts.push_back(build(PySequence_Fast_ITEMS(v)[k]));
    } else if (PyExceptionInstance_Check(v))
        parts.push_back(build(((PyBaseExceptionObject*)v)->args));
    PyObject* d = dict_of(v);
    int dict = d ? build(d) : -1;
    recipes.rows[i].parts = std::move(parts);
    recipes.rows[i].dict = dict;
    // __slots__ would need their own writes: leave such classes to pickle's protocol
    for (PyTypeObject* k = t; k && (k->tp_flags & Py_TPFLAGS_HEAPTYPE); k = k->tp_base)
        if (PyRef slots = PyRef::steal(k->tp_dict && PyDict_GetItemString(k->tp_dict, "__slots__")
                                           ? Py_NewRef(PyDict_GetItemString(k->tp_dict, "__slots__"))
                                           : nullptr);
            slots && PyObject_Length(slots.get()) > 0 && base == &PyBaseObject_Type) {
            recipes.rows.resize(i);
            recipes.memo.erase(v);
            return build_reduced(v);
        }
    PyErr_Clear();
    return i;
}

int Recorder::build_function(PyObject* v) {
    auto* fn = (PyFunctionObject*)v;
    Recipe r;
    r.kind = Recipe::Function;
    r.object = PyRef::share(v);  // code, globals, names and annotations are taken from it
    int i = add_recipe(v, std::move(r));
    std::vector<int> parts = {build(fn->func_defaults ? fn->func_defaults : Py_None),
                              build(fn->func_kwdefaults ? fn->func_kwdefaults : Py_None)};
    Py_ssize_t n = fn->func_closure ? PyTuple_GET_SIZE(fn->func_closure) : 0;
    for (Py_ssize_t k = 0; k < n; ++k) parts.push_back(build(PyTuple_GET_ITEM(fn->func_closure, k)));
    int dict = fn->func_dict && PyDict_GET_SIZE(fn->func_dict) ? build(fn->func_dict) : -1;
    recipes.rows[i].parts = std::move(parts);
    recipes.rows[i].dict = dict;
    return i;
}

// Iterators and other objects of C types that say themselves how they are rebuilt: callable(*args) and a state.
int Recorder::build_reduced(PyObject* v) {
    static const char* allowed[] = {"range_iterator",      "list_iterator",
                                    "tuple_iterator",      "list_reverseiterator",
                                    "enumerate",           "zip",
                                    "str_iterator",        "str_ascii_iterator",
                                    "longrange_iterator",  "range",
                                    "collections.deque",   "collections.defaultdict",
                                    "collections.Counter", "functools.partial",
                                    "torch.Size",          "dict_itemiterator",
                                    "dict_keyiterator",    "dict_valueiterator",
                                    "bytearray",           "reversed",
                                    "mappingproxy",        "set_iterator"};
    bool ok = Py_TYPE(v)->tp_flags & Py_TPFLAGS_HEAPTYPE;
    for (const char* a : allowed) ok = ok || !strcmp(Py_TYPE(v)->tp_name, a);
    PyRef reduced;
    if (ok) {
        Recorder* self = std::exchange(active_recorder, nullptr);
        reduced = PyRef::steal(PyObject_CallMethod(v, "__reduce_ex__", "i", 2));
        active_recorder = self;
    }
    if (!reduced || !PyTuple_Check(reduced.get())) {
        PyErr_Clear();
        fail(std::string("an object that cannot be rebuilt outlives the region: ") + Py_TYPE(v)->tp_name);
        return add_recipe(v, {});
    }
    Recipe r;
    r.kind = Recipe::Reduced;
    int i = add_recipe(v, std::move(r));
    recipes.held.push_back(reduced);
    std::vector<int> parts;  // callable, args, state, list items, dict items
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(reduced.get()) && k < 5; ++k) {
        PyObject* part = PyTuple_GET_ITEM(reduced.get(), k);
        PyRef list;
        if (k >= 3 && part != Py_None) {
            list = PyRef::steal(PySequence_List(part));
            recipes.held.push_back(list);
            part = list.get();
        }
        parts.push_back(part ? (code_like(part) ? recipe_of(Operand{Operand::Const, 0, PyRef::share(part)}) : build(part))
                             : recipe_of(Py_None, Internal));
    }
    recipes.rows[i].parts = std::move(parts);
    return i;
}

}  // namespace framejit
