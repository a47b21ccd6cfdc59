// What tests and measurements see of this folder: thin wrappers, one per contract function. Every wrapper starts torch on first use.
#include "plugin/torch/add_torch.h"
#include "plugin/torch/operators.h"
#include "plugin/torch/reader.h"
#include "plugin/torch/tensor.h"
#include "plugin/torch/torch.h"
#include <atomic>
#include <chrono>
#include <memory>

namespace framejit {

namespace {

template <class T> constexpr const char* kCapsule = nullptr;
template <> constexpr const char* kCapsule<TensorSpec> = "framejit.TensorSpec";
template <> constexpr const char* kCapsule<GlobalState> = "framejit.GlobalState";
template <> constexpr const char* kCapsule<Extern> = "framejit.Extern";

template <class T> PyObject* wrap(T value) {
    auto destroy = [](PyObject* capsule) { delete static_cast<T*>(PyCapsule_GetPointer(capsule, kCapsule<T>)); };
    return PyCapsule_New(new T(std::move(value)), kCapsule<T>, destroy);
}
template <class T> T* unwrap(PyObject* capsule) { return static_cast<T*>(PyCapsule_GetPointer(capsule, kCapsule<T>)); }

PyObject* text(const std::string& s) { return PyUnicode_FromStringAndSize(s.data(), Py_ssize_t(s.size())); }
PyObject* tuple(const int64_t* values, int count) {
    PyObject* out = PyTuple_New(count);
    for (int i = 0; out && i < count; ++i) PyTuple_SET_ITEM(out, i, PyLong_FromLongLong(values[i]));
    return out;
}
bool numbers(PyObject* sequence, std::vector<int64_t>& out) {
    PyRef list = PyRef::steal(PySequence_Tuple(sequence));
    if (!list) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(list.get()); ++i) out.push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(list.get(), i)));
    return !PyErr_Occurred();
}
bool want_tensor(PyObject* object) {
    if (init_torch() < 0) return false;
    if (!is_tensor(object)) PyErr_SetString(PyExc_TypeError, "expected a tensor");
    return is_tensor(object);
}

PyObject* init(PyObject*, PyObject*) { return init_torch() < 0 ? nullptr : Py_NewRef(Py_None); }
PyObject* tier(PyObject*, PyObject*) { return init_torch() < 0 ? nullptr : PyLong_FromLong(tensor_tier()); }
PyObject* kind(PyObject*, PyObject* object) {
    return init_torch() < 0 ? nullptr
                            : Py_BuildValue("(OO)", is_tensor(object) ? Py_True : Py_False, is_plain_tensor(object) ? Py_True : Py_False);
}
// view(tensor[, tier])
PyObject* view(PyObject*, PyObject* args) {
    PyObject* tensor;
    int tier = -1;
    if (!PyArg_ParseTuple(args, "O|i", &tensor, &tier) || !want_tensor(tensor)) return nullptr;
    TensorView v = view_of(tensor);
    if (tier >= 0 && tier < kTierCount && !read_with(Tier(tier), tensor, v)) return Py_NewRef(Py_None);
    auto address = [](void* p) { return (unsigned long long)reinterpret_cast<uintptr_t>(p); };
    return Py_BuildValue("{sKsKsNsNsisisisisLsLsLsKsOsO}", "data", address(v.data), "storage", address(v.storage), "sizes",
                         tuple(v.sizes, v.ndim), "strides", tuple(v.strides, v.ndim), "dtype", int(v.dtype), "torch_dtype", v.torch_dtype,
                         "device_type", v.device_type, "device_index", v.device_index, "offset", (long long)v.offset, "numel",
                         (long long)v.numel, "storage_bytes", (long long)v.storage_bytes, "key_set", (unsigned long long)v.key_set,
                         "requires_grad", v.requires_grad ? Py_True : Py_False, "tangent", v.tangent ? Py_True : Py_False);
}
PyObject* spec(PyObject*, PyObject* tensor) { return want_tensor(tensor) ? wrap(spec_of(tensor)) : nullptr; }
PyObject* spec_matches(PyObject*, PyObject* args) {
    PyObject *object, *capsule;
    if (!PyArg_ParseTuple(args, "OO", &object, &capsule)) return nullptr;
    auto* want = unwrap<TensorSpec>(capsule);
    return want ? PyBool_FromLong(matches(object, *want)) : nullptr;
}
PyObject* spec_difference(PyObject*, PyObject* args) {
    PyObject *object, *capsule;
    if (!PyArg_ParseTuple(args, "OO", &object, &capsule)) return nullptr;
    auto* want = unwrap<TensorSpec>(capsule);
    return want ? text(difference(object, *want)) : nullptr;
}
PyObject* spec_text(PyObject*, PyObject* capsule) {
    auto* want = unwrap<TensorSpec>(capsule);
    return want ? text(describe(*want)) : nullptr;
}

PyObject* write_address(PyObject*, PyObject* tensor) { return want_tensor(tensor) ? PyLong_FromVoidPtr(data_for_write(tensor)) : nullptr; }
PyObject* bump(PyObject*, PyObject* tensor) { return want_tensor(tensor) && bump_version(tensor) == 0 ? Py_NewRef(Py_None) : nullptr; }
PyObject* empty(PyObject*, PyObject* args) {
    PyObject *sizes, *strides, *dtype;
    std::vector<int64_t> a, b;
    if (!PyArg_ParseTuple(args, "OOO", &sizes, &strides, &dtype) || init_torch() < 0 || !numbers(sizes, a) || !numbers(strides, b))
        return nullptr;
    return Allocator(a, b, torch_code(dtype))();
}
PyObject* strided(PyObject*, PyObject* args) {
    PyObject *base, *sizes, *strides;
    long long offset;
    std::vector<int64_t> a, b;
    if (!PyArg_ParseTuple(args, "OOOL", &base, &sizes, &strides, &offset) || !want_tensor(base) || !numbers(sizes, a) ||
        !numbers(strides, b))
        return nullptr;
    return as_strided(base, a, b, offset);
}

PyObject* state(PyObject*, PyObject* full) { return init_torch() < 0 ? nullptr : wrap(global_state(full == Py_True)); }
PyObject* state_look(PyObject*, PyObject* capsule) {
    auto* state = unwrap<GlobalState>(capsule);
    return state ? Py_BuildValue("(ON)", state->matches() ? Py_True : Py_False, text(state->difference())) : nullptr;
}
PyObject* modes(PyObject*, PyObject*) {
    return init_torch() < 0
               ? nullptr
               : Py_BuildValue("(OOi)", grad_enabled() ? Py_True : Py_False, inference_mode() ? Py_True : Py_False, num_threads());
}

// Counts how often every index of [0, n) is visited; returns (pieces, all exactly once).
struct Visits {
    std::unique_ptr<std::atomic<int>[]> counts;
    std::atomic<int> pieces{0};
};
PyObject* parallel(PyObject*, PyObject* args) {
    long long n, grain;
    if (!PyArg_ParseTuple(args, "LL", &n, &grain) || init_torch() < 0) return nullptr;
    Visits visits{std::make_unique<std::atomic<int>[]>(size_t(n)), {}};
    int32_t failed;
    auto body = [](int64_t begin, int64_t end, void* context) {
        auto* v = static_cast<Visits*>(context);
        ++v->pieces;
        for (int64_t i = begin; i < end; ++i) ++v->counts[size_t(i)];
    };
    Py_BEGIN_ALLOW_THREADS failed = parallel_for()(0, n, grain, body, &visits);
    Py_END_ALLOW_THREADS bool once = failed == 0;
    for (long long i = 0; i < n; ++i) once = once && visits.counts[size_t(i)] == 1;
    return Py_BuildValue("(iO)", visits.pieces.load(), once ? Py_True : Py_False);
}

PyObject* schema(PyObject*, PyObject* overload) {
    const OpSchema* op = init_torch() < 0 ? nullptr : schema_of(overload);
    if (!op) return nullptr;
    PyRef args = PyRef::steal(PyList_New(0)), returns = PyRef::steal(PyList_New(0));
    for (size_t i = 0; i < op->args.size(); ++i) {
        const ArgSchema& a = op->args[i];
        PyObject* value = default_of(*op, i);
        PyRef row = PyRef::steal(Py_BuildValue("(sOOOOi)", a.name.c_str(), value ? value : Py_Ellipsis, a.kwarg_only ? Py_True : Py_False,
                                               a.writes ? Py_True : Py_False, a.aliases ? Py_True : Py_False, a.writes_when));
        if (!row || PyList_Append(args.get(), row.get()) < 0) return nullptr;
    }
    for (int source : op->returns_alias) {
        PyRef number = PyRef::steal(PyLong_FromLong(source));
        if (!number || PyList_Append(returns.get(), number.get()) < 0) return nullptr;
    }
    auto flag = [](bool on) { return on ? Py_True : Py_False; };
    return Py_BuildValue("{sssOsOsOsOsOsOsO}", "name", op->name.c_str(), "args", args.get(), "returns_alias", returns.get(), "mutates",
                         flag(op->mutates), "view", flag(op->view), "random", flag(op->random), "decomposes", flag(op->decomposes),
                         "data_dependent", flag(op->data_dependent));
}
PyObject* placeholder(PyObject*, PyObject* index) { return make_placeholder(int(PyLong_AsLong(index))); }
PyObject* make_extern(PyObject*, PyObject* args) {
    PyObject *overload, *positional, *keywords;
    if (!PyArg_ParseTuple(args, "OO!O!", &overload, &PyTuple_Type, &positional, &PyDict_Type, &keywords) || init_torch() < 0)
        return nullptr;
    Extern call(overload, positional, keywords);
    return call.valid() ? wrap(std::move(call)) : nullptr;
}
PyObject* call_extern(PyObject*, PyObject* args) {
    PyObject *capsule, *tensors;
    if (!PyArg_ParseTuple(args, "OO!", &capsule, &PyTuple_Type, &tensors)) return nullptr;
    auto* call = unwrap<Extern>(capsule);
    if (!call) return nullptr;
    if (PyTuple_GET_SIZE(tensors) != call->tensors()) return PyErr_Format(PyExc_ValueError, "expected %d tensors", call->tensors());
    std::vector<PyObject*> results;
    if (call->call(&PyTuple_GET_ITEM(tensors, 0), results) < 0) return nullptr;
    PyObject* list = PyList_New(Py_ssize_t(results.size()));
    for (size_t i = 0; list && i < results.size(); ++i) PyList_SET_ITEM(list, Py_ssize_t(i), results[i] ? results[i] : Py_NewRef(Py_None));
    return list;
}

PyObject* extern_route(PyObject*, PyObject* capsule) {
    auto* call = unwrap<Extern>(capsule);
    return call ? PyUnicode_FromString(call->route()) : nullptr;
}

// ---- measurements: the least of many short blocks, in ns per call ----
template <class F> double least_ns(F call, int per_block = 500, int blocks = 200) {
    double least = 1e18;
    for (int block = 0; block < blocks; ++block) {
        auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < per_block; ++i) call();
        std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
        least = std::min(least, spent.count() / per_block);
    }
    return least;
}
template <class T> void keep(const T& value) { asm volatile("" : : "r,m"(value) : "memory"); }

PyObject* tensor_times(PyObject*, PyObject* tensor) {
    if (!want_tensor(tensor)) return nullptr;
    TensorSpec want = spec_of(tensor);
    GlobalState state = global_state();
    Allocator allocate(want.sizes, want.strides, want.torch_dtype);
    Viewer viewer(want.sizes, want.strides, want.offset);
    double match = least_ns([&] { keep(matches(tensor, want)); });
    double look = least_ns([&] { keep(view_of(tensor).data); });
    double states = least_ns([&] { keep(state.matches()); });
    double allocation = least_ns([&] { Py_XDECREF(allocate()); });
    double as_view = least_ns([&] { Py_XDECREF(viewer(tensor)); }, 100);
    double write = least_ns([&] { keep(data_for_write(tensor)); });
    double version = least_ns([&] { keep(bump_version(tensor)); });
    if (PyErr_Occurred()) return nullptr;
    return Py_BuildValue("{sdsdsdsdsdsdsd}", "matches", match, "view_of", look, "state", states, "allocate", allocation, "as_strided",
                         as_view, "data_for_write", write, "bump_version", version);
}
PyObject* extern_time(PyObject*, PyObject* args) {
    PyObject *capsule, *tensors;
    if (!PyArg_ParseTuple(args, "OO!", &capsule, &PyTuple_Type, &tensors)) return nullptr;
    auto* call = unwrap<Extern>(capsule);
    std::vector<PyObject*> results;
    if (!call || PyTuple_GET_SIZE(tensors) != call->tensors()) return nullptr;
    double ns = least_ns(
        [&] {
            if (call->call(&PyTuple_GET_ITEM(tensors, 0), results) == 0)
                for (PyObject* result : results) Py_XDECREF(result);
        },
        100, 100);
    return PyErr_Occurred() ? nullptr : PyFloat_FromDouble(ns);
}

PyMethodDef methods[] = {{"_init_torch", init, METH_NOARGS, nullptr},
                         {"_tensor_tier", tier, METH_NOARGS, nullptr},
                         {"_tensor_kind", kind, METH_O, nullptr},
                         {"_tensor_view", view, METH_VARARGS, nullptr},
                         {"_tensor_spec", spec, METH_O, nullptr},
                         {"_matches", spec_matches, METH_VARARGS, nullptr},
                         {"_difference", spec_difference, METH_VARARGS, nullptr},
                         {"_describe", spec_text, METH_O, nullptr},
                         {"_data_for_write", write_address, METH_O, nullptr},
                         {"_bump_version", bump, METH_O, nullptr},
                         {"_empty", empty, METH_VARARGS, nullptr},
                         {"_as_strided", strided, METH_VARARGS, nullptr},
                         {"_global_state", state, METH_O, nullptr},
                         {"_state_look", state_look, METH_O, nullptr},
                         {"_modes", modes, METH_NOARGS, nullptr},
                         {"_parallel_for", parallel, METH_VARARGS, nullptr},
                         {"_schema", schema, METH_O, nullptr},
                         {"_placeholder", placeholder, METH_O, nullptr},
                         {"_extern", make_extern, METH_VARARGS, nullptr},
                         {"_extern_call", call_extern, METH_VARARGS, nullptr},
                         {"_extern_route", extern_route, METH_O, nullptr},
                         {"_tensor_times", tensor_times, METH_O, nullptr},
                         {"_extern_time", extern_time, METH_VARARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_torch(PyObject* module) { return PyModule_AddFunctions(module, methods); }

}  // namespace framejit
