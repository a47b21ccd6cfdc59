// Looking into C objects of the standard library without calling them.
// Where the C struct of a functools.lru_cache keeps its dict, and a bounded cache's link the result, is found once on a cache made for it:
// by the objects that the wrapper says it refers to, and by words that are equal to known pointers.
#include "plugin/frame/frame.h"

namespace framejit {
namespace {

struct Places {
    PyTypeObject *wrapper = nullptr, *link = nullptr;
    int cache = 0, result = 0;         // offsets in words
    PyObject* keyword_mark = nullptr;  // stands in keys between positional and keyword arguments
};

// The first word of an object behind its header that equals `wanted`; 0: none.
int word_of(PyObject* o, PyObject* wanted) {
    auto* words = reinterpret_cast<PyObject**>(o);
    const int count = int(Py_TYPE(o)->tp_basicsize / Py_ssize_t(sizeof(PyObject*)));
    for (int i = int(sizeof(PyObject) / sizeof(PyObject*)); i < count; ++i)
        if (words[i] == wanted) return i;
    return 0;
}
int find_dict(PyObject* o, void* found) {
    if (!PyDict_CheckExact(o) || PyDict_GET_SIZE(o) != 1) return 0;
    *static_cast<PyObject**>(found) = o;
    return 1;
}
// All wrappers share it: the first word of the only key of a cache that was called with a keyword alone.
PyObject* keyword_mark(PyObject* functools) {
    PyRef decorator = PyRef::steal(PyObject_CallMethod(functools, "lru_cache", "i", 2));
    PyRef wrapper = PyRef::steal(decorator ? PyObject_CallOneArg(decorator.get(), reinterpret_cast<PyObject*>(&PyComplex_Type)) : nullptr);
    PyRef names = PyRef::steal(Py_BuildValue("{s:i}", "real", 1));
    PyRef none = PyRef::steal(PyTuple_New(0));
    PyRef result = PyRef::steal(wrapper && names && none ? PyObject_Call(wrapper.get(), none.get(), names.get()) : nullptr);
    PyObject *cache = nullptr, *key = nullptr;
    Py_ssize_t at = 0;
    if (!result) return nullptr;
    Py_TYPE(wrapper.get())->tp_traverse(wrapper.get(), find_dict, &cache);
    if (!cache || !PyDict_Next(cache, &at, &key, nullptr) || !PyTuple_CheckExact(key) || PyTuple_GET_SIZE(key) != 3) return nullptr;
    return Py_NewRef(PyTuple_GET_ITEM(key, 0));
}
Places probe() {
    Places p;
    PyRef functools = PyRef::steal(PyImport_ImportModule("functools"));
    PyRef decorator = PyRef::steal(functools ? PyObject_CallMethod(functools.get(), "lru_cache", "i", 2) : nullptr);
    PyRef wrapper = PyRef::steal(decorator ? PyObject_CallOneArg(decorator.get(), reinterpret_cast<PyObject*>(&PyList_Type)) : nullptr);
    PyRef text = PyRef::steal(PyUnicode_FromString("x"));
    PyRef result = PyRef::steal(wrapper && text ? PyObject_CallOneArg(wrapper.get(), text.get()) : nullptr);
    PyObject* cache = nullptr;
    if (!result || !Py_TYPE(wrapper.get())->tp_traverse) return PyErr_Clear(), p;
    Py_TYPE(wrapper.get())->tp_traverse(wrapper.get(), find_dict, &cache);
    PyObject* link = cache ? PyDict_GetItemWithError(cache, text.get()) : nullptr;
    if (!link) return PyErr_Clear(), p;
    p.keyword_mark = keyword_mark(functools.get());
    if (!p.keyword_mark) PyErr_Clear();
    p.cache = word_of(wrapper.get(), cache);
    p.result = word_of(link, result.get());
    p.link = Py_TYPE(link);
    if (p.cache && p.result) p.wrapper = Py_TYPE(wrapper.get());
    return p;
}
Places places;

}  // namespace

void init_lru_cache() { places = probe(); }

bool is_lru_cache(PyObject* o) { return places.wrapper && Py_IS_TYPE(o, places.wrapper); }

PyObject* lru_key(PyObject* const* args, Py_ssize_t total, PyObject* keywords) {
    const Py_ssize_t named = keywords ? PyTuple_GET_SIZE(keywords) : 0, positional = total - named;
    if (total == 1 && !named && (PyUnicode_CheckExact(args[0]) || PyLong_CheckExact(args[0]))) return Py_NewRef(args[0]);
    if (named && !places.keyword_mark) return nullptr;
    PyObject* key = PyTuple_New(positional + (named ? 1 + 2 * named : 0));
    if (!key) return PyErr_Clear(), nullptr;
    for (Py_ssize_t i = 0; i < positional; ++i) PyTuple_SET_ITEM(key, i, Py_NewRef(args[i]));
    if (named) PyTuple_SET_ITEM(key, positional, Py_NewRef(places.keyword_mark));
    for (Py_ssize_t i = 0; i < named; ++i) {
        PyTuple_SET_ITEM(key, positional + 1 + 2 * i, Py_NewRef(PyTuple_GET_ITEM(keywords, i)));
        PyTuple_SET_ITEM(key, positional + 2 + 2 * i, Py_NewRef(args[positional + i]));
    }
    return key;
}

PyObject* lru_entries(PyObject* wrapper) {
    PyObject* cache = is_lru_cache(wrapper) ? reinterpret_cast<PyObject**>(wrapper)[places.cache] : nullptr;
    return cache && PyDict_Check(cache) ? cache : nullptr;
}

PyObject* lru_cached(PyObject* wrapper, PyObject* key, Py_hash_t hash) {
    PyObject* cache = lru_entries(wrapper);
    PyObject* value = cache ? _PyDict_GetItem_KnownHash(cache, key, hash) : nullptr;
    if (PyErr_Occurred()) PyErr_Clear();
    return value && Py_IS_TYPE(value, places.link) ? reinterpret_cast<PyObject**>(value)[places.result] : value;
}

PyObject* proxied_mapping(PyObject* o) {
    PyObject* mapping = nullptr;
    auto note = [](PyObject* seen, void* into) { return *static_cast<PyObject**>(into) = seen, 0; };
    if (Py_IS_TYPE(o, &PyDictProxy_Type)) PyDictProxy_Type.tp_traverse(o, note, &mapping);  // all that it refers to
    return mapping;
}

BoundSlot bound_slot(PyObject* method_wrapper) {
    struct Seen {
        PyObject* parts[2] = {};
        int count = 0;
    } seen;  // it refers to its descriptor and to its object, in this order
    auto note = [](PyObject* part, void* into) {
        auto& s = *static_cast<Seen*>(into);
        if (s.count < 2) s.parts[s.count++] = part;
        return 0;
    };
    _PyMethodWrapper_Type.tp_traverse(method_wrapper, note, &seen);
    if (seen.count < 2 || !Py_IS_TYPE(seen.parts[0], &PyWrapperDescr_Type)) return {};
    return {PyDescr_NAME(seen.parts[0]), seen.parts[1]};
}

}  // namespace framejit
