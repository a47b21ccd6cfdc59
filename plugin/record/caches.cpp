// Calls that hand out what somebody else keeps: the referent of a weak reference, what a functools.lru_cache has made before.
#include "plugin/record/kinds.h"
#include "plugin/record/recorder.h"

namespace framejit {
namespace {

// How often a cache has not found what it was asked for; -1: it keeps nothing (maxsize=0), or does not say.
long misses(PyObject* cache, bool* bounded = nullptr) {
    Recorder* self = std::exchange(active_recorder, nullptr);  // a named tuple is made by Python
    PyRef info = PyRef::steal(PyObject_CallMethod(cache, "cache_info", nullptr));
    active_recorder = self;
    if (!info || !PyTuple_Check(info.get()) || PyTuple_GET_SIZE(info.get()) != 4) return PyErr_Clear(), -1;
    PyObject* size = PyTuple_GET_ITEM(info.get(), 2);
    if (bounded) *bounded = size != Py_None;
    return size != Py_None && PyLong_AsLong(size) == 0 ? -1 : PyLong_AsLong(PyTuple_GET_ITEM(info.get(), 1));
}

}  // namespace

bool Recorder::fills_a_cache() const {
    for (const auto& [cache, before] : caches_)
        if (misses(cache.get()) != before) return true;
    return false;
}

// True: it throws out what was not used for the longest time, so that being asked changes it.
bool Recorder::note_cache(PyObject* cache) {
    bool bounded = false;
    const long before = misses(cache, &bounded);
    bool known = before < 0;
    for (const auto& [other, _] : caches_) known |= other.get() == cache;
    if (!known) caches_.emplace_back(PyRef::share(cache), before);
    return bounded && before >= 0;
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
    const bool bounded = note_cache(fn);
    for (int i = 0; i < total; ++i) {
        if (shadows[i] == Unknown || is_tensor(args[i])) return kOpen;
        bool constant = valued(args[i]) || constant_tuple(args[i]);
        bool by_address = Py_TYPE(args[i])->tp_hash == PyBaseObject_Type.tp_hash;  // another hash may be Python: not here
        if (!constant && (shadows[i] <= 0 || !by_address)) return kOpen;
    }
    PyRef key = PyRef::steal(lru_key(args, total, kw));
    Py_hash_t hash = key ? PyObject_Hash(key.get()) : -1;
    if (hash == -1) return PyErr_Clear(), kOpen;
    for (int i = 0; i < total; ++i)
        if (shadows[i] > 0) guard(valued(args[i]) ? GuardKind::Value : GuardKind::Identity, shadows[i], args[i]);
    int source = sources.child(SourceKind::Cached, fn_shadow, key.get());
    if (lru_cached(fn, key.get(), hash)) {
        if (bounded) call_event(fn, fn_shadow, args, shadows, total, kw);
        return source;
    }
    guard(GuardKind::Missing, source);  // the function runs, and is recorded
    return kOpen;
}

}  // namespace framejit
