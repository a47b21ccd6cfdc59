#include "plugin/record/entry_state.h"
#include "plugin/torch/internals.h"
#include "plugin/torch/tensor.h"
#include <cstring>

namespace framejit {
namespace {

constexpr int64_t kMaxKeptBytes = int64_t(256) << 20;  // of one recording: a check is not worth running out of memory

PyObject* argument(const OpSchema& op, size_t i, PyObject* args, PyObject* kwargs) {  // borrowed, null: left out
    if (Py_ssize_t(i) < PyTuple_GET_SIZE(args)) return PyTuple_GET_ITEM(args, Py_ssize_t(i));
    return kwargs ? PyDict_GetItemString(kwargs, op.args[i].name.c_str()) : nullptr;
}
PyRef tuple_of(const int64_t* values, int n) {
    PyRef tuple = PyRef::steal(PyTuple_New(n));
    for (int i = 0; tuple && i < n; ++i) PyTuple_SET_ITEM(tuple.get(), i, PyLong_FromLongLong(values[i]));
    return tuple;
}
PyRef strided(PyObject* memory, const int64_t* sizes, const int64_t* strides, int ndim, int64_t offset) {
    PyRef a = tuple_of(sizes, ndim), b = tuple_of(strides, ndim);
    return PyRef::steal(a && b ? PyObject_CallMethod(memory, "as_strided", "OOL", a.get(), b.get(), (long long)offset) : nullptr);
}
int64_t item_size(const TensorView& v) { return v.torch_dtype >= 0 ? size_of(v.dtype) : 0; }

}  // namespace

void EntryState::keep(const OpSchema& op, PyObject* args, PyObject* kwargs, const std::function<bool(void*)>& made_inside) {
    if (!lost_.empty()) return;
    if (!generator_state_ && draws(op, args, kwargs)) {
        PyObject* given = kwargs ? PyDict_GetItemString(kwargs, "generator") : nullptr;
        const bool own = given && given != Py_None;
        if (!own) generator_state_ = PyRef::steal(call_generator("get_state", nullptr));
        if (!generator_state_) lose("it draws random numbers from a generator of its own");
    }
    for (size_t i = 0; i < op.args.size(); ++i) {
        PyObject* value = op.args[i].writes ? argument(op, i, args, kwargs) : nullptr;
        if (!value) continue;
        const int when = op.args[i].writes_when;
        if (PyObject* condition = when >= 0 ? argument(op, size_t(when), args, kwargs) : nullptr; condition == Py_False) continue;
        keep_content(value, made_inside);
    }
    if (PyErr_Occurred()) {
        PyErr_Clear();
        lose("what it overwrites could not be copied");
    }
}

void EntryState::keep_content(PyObject* value, const std::function<bool(void*)>& made_inside) {
    if (PyList_Check(value) || PyTuple_Check(value)) {
        for (Py_ssize_t i = 0; i < Py_SIZE(value); ++i) keep_content(PySequence_Fast_ITEMS(value)[i], made_inside);
        return;
    }
    if (!is_tensor(value)) return;
    const TensorView v = view_of(value);
    if (!v.storage || made_inside(v.storage)) return;
    for (const Content& c : contents_)
        if (c.storage == v.storage) return;
    if (v.device_type != 0 || !item_size(v)) return lose("it writes to memory that is not the CPU's");
    bytes_ += v.storage_bytes;
    if (bytes_ > kMaxKeptBytes) return lose("it writes to inputs of more than 256 MB");
    const int64_t count = v.storage_bytes / item_size(v), one = 1;
    PyRef all = strided(value, &count, &one, 1, 0);
    PyRef copy = PyRef::steal(all ? PyObject_CallMethod(all.get(), "clone", nullptr) : nullptr);
    if (copy) contents_.push_back({v.storage, std::move(copy)});
}

PyRef EntryState::at_entry(PyObject* tensor) {
    const TensorView v = view_of(tensor);
    for (const Content& c : contents_) {
        if (c.storage != v.storage) continue;
        if (view_of(c.copy.get()).torch_dtype != v.torch_dtype) {
            lose("it writes to an input through a view of another type");
            return {};
        }
        PyRef then = strided(c.copy.get(), v.sizes, v.strides, v.ndim, v.offset);
        if (!then) {
            PyErr_Clear();
            lose("an input was resized");
        }
        return then;
    }
    return PyRef::share(tensor);
}

EntryState::Replayed::Replayed(const EntryState& entry) {
    if (!entry.generator_state_) return;
    now_ = PyRef::steal(call_generator("get_state", nullptr));
    PyRef ok = PyRef::steal(now_ ? call_generator("set_state", entry.generator_state_.get()) : nullptr);
    PyErr_Clear();
}
EntryState::Replayed::~Replayed() {
    if (!now_) return;
    PyObject *t, *v, *tb;
    PyErr_Fetch(&t, &v, &tb);
    PyRef ok = PyRef::steal(call_generator("set_state", now_.get()));
    PyErr_Clear();
    PyErr_Restore(t, v, tb);
}

}  // namespace framejit
