// Calls that hand out what somebody else keeps: the referent of a weak reference, what a functools.lru_cache has made before.
#include "plugin/record/kinds.h"
#include "plugin/record/recorder.h"

namespace framejit {
namespace {

// Another hash may be Python's, or that of a value.
bool hashed_by_address(PyObject* o) { return is_tensor(o) || Py_TYPE(o)->tp_hash == PyBaseObject_Type.tp_hash; }

struct CacheInfo {
    long misses = -1;  // how often it has not found what it was asked for; -1: it keeps nothing (maxsize=0), or does not say
    long size = -1;    // how many it keeps; -1: no bound
};
CacheInfo info_of(PyObject* cache) {
    Recorder* self = std::exchange(active_recorder, nullptr);  // a named tuple is made by Python
    PyRef info = PyRef::steal(PyObject_CallMethod(cache, "cache_info", nullptr));
    active_recorder = self;
    if (!info || !PyTuple_Check(info.get()) || PyTuple_GET_SIZE(info.get()) != 4) return PyErr_Clear(), CacheInfo{};
    PyObject* size = PyTuple_GET_ITEM(info.get(), 2);
    const long most = size == Py_None ? -1 : PyLong_AsLong(size);
    return {most == 0 ? -1 : PyLong_AsLong(PyTuple_GET_ITEM(info.get(), 1)), most};
}

// The key of a cache that keeps one value and has it; null otherwise.
PyRef only_key(PyObject* cache, const CacheInfo& info) {
    PyObject* entries = info.size == 1 ? lru_entries(cache) : nullptr;
    PyObject *key = nullptr, *value;
    Py_ssize_t at = 0;
    if (entries && PyDict_GET_SIZE(entries) == 1) PyDict_Next(entries, &at, &key, &value);
    return PyRef::share(key);
}

}  // namespace

bool Recorder::fills_a_cache() const {
    for (const AskedCache& asked : caches_)
        if (!asked.thrashes && info_of(asked.cache.get()).misses - asked.misses > asked.in_vain) return true;
    return false;
}

Recorder::AskedCache* Recorder::asked_cache(PyObject* cache) {
    for (AskedCache& asked : caches_)
        if (asked.cache.get() == cache) return &asked;
    const CacheInfo info = info_of(cache);
    if (info.misses < 0) return nullptr;
    caches_.push_back({PyRef::share(cache), info.misses, only_key(cache, info), info.size >= 0});
    return &caches_.back();
}

// kOpen: something else is called, or a cache that has nothing yet and calls its function.
int Recorder::kept_result(PyObject* fn, int fn_shadow, PyObject** args, const int* shadows, int total, PyObject* kw) {
    if (fn_shadow <= 0) return kOpen;
    if (PyWeakref_CheckRefExact(fn) && total == 0) {
        int source = sources.child(SourceKind::Referent, fn_shadow);
        bool gone = PyWeakref_GET_OBJECT(fn) == Py_None;
        if (gone) guard(GuardKind::Missing, source);
        return gone ? int(Internal) : source;
    }
    if (!is_lru_cache(fn)) return kOpen;
    AskedCache* asked = asked_cache(fn);
    bool in_vain = false;  // the key holds an object of this call: no cache can have it
    for (int i = 0; i < total; ++i) in_vain |= shadows[i] == Internal && !valued(args[i]) && hashed_by_address(args[i]);
    if (in_vain && asked) ++asked->in_vain;
    for (int i = 0; i < total; ++i) {
        if (shadows[i] == Unknown || is_tensor(args[i])) return kOpen;
        bool constant = valued(args[i]) || constant_tuple(args[i]);
        if (!constant && (shadows[i] <= 0 || !hashed_by_address(args[i]))) return kOpen;
    }
    PyRef key = PyRef::steal(lru_key(args, total, kw));
    Py_hash_t hash = key ? PyObject_Hash(key.get()) : -1;
    if (hash == -1) return PyErr_Clear(), kOpen;
    for (int i = 0; i < total; ++i)
        if (shadows[i] > 0) guard(valued(args[i]) ? GuardKind::Value : GuardKind::Identity, shadows[i], args[i]);
    int source = sources.child(SourceKind::Cached, fn_shadow, key.get());
    if (filled_.count(source)) return kOpen;  // in this region: known by identity
    if (lru_cached(fn, key.get(), hash)) {
        if (asked && asked->bounded) call_event(fn, fn_shadow, args, shadows, total, kw);
        return source;
    }
    // The function runs, and is recorded. What a cache of one held at entry was thrown out for what the region asked for before: it will be
    // so in every call, which makes it anew.
    const bool thrown_out = asked && asked->only_key && PyObject_RichCompareBool(asked->only_key.get(), key.get(), Py_EQ) == 1;
    if (thrown_out) asked->thrashes = true;
    guard(thrown_out ? GuardKind::Present : GuardKind::Missing, source);
    filled_.insert(source);
    return kOpen;
}

}  // namespace framejit
