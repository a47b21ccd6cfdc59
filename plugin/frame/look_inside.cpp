// Looking into C objects of the standard library without calling them.
// Where the C struct of a functools.lru_cache keeps its dict, and a bounded cache's link the result, is found once on a cache made for it:
// by the objects that the wrapper says it refers to, and by words that are equal to known pointers.
#include "plugin/frame/frame.h"

namespace framejit {
namespace {

struct Places {
    PyTypeObject *wrapper = nullptr, *link = nullptr;
    int cache = 0, result = 0;  // offsets in words
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

PyObject* lru_cached(PyObject* wrapper, PyObject* key, Py_hash_t hash) {
    if (!is_lru_cache(wrapper)) return nullptr;
    PyObject* cache = reinterpret_cast<PyObject**>(wrapper)[places.cache];
    PyObject* value = cache && PyDict_Check(cache) ? _PyDict_GetItem_KnownHash(cache, key, hash) : nullptr;
    if (PyErr_Occurred()) PyErr_Clear();
    return value && Py_IS_TYPE(value, places.link) ? reinterpret_cast<PyObject**>(value)[places.result] : value;
}

PyObject* proxied_mapping(PyObject* o) {
    PyObject* mapping = nullptr;
    auto note = [](PyObject* seen, void* into) { return *static_cast<PyObject**>(into) = seen, 0; };
    if (Py_IS_TYPE(o, &PyDictProxy_Type)) PyDictProxy_Type.tp_traverse(o, note, &mapping);  // all that it refers to
    return mapping;
}

}  // namespace framejit
