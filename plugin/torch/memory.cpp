// Making tensors: fresh ones as eager makes them, and real views.
#include "plugin/torch/reader.h"
#include "plugin/torch/tensor.h"
#include "plugin/torch/torch.h"

namespace framejit {

namespace {

PyRef tuple_of(std::span<const int64_t> values) {
    PyRef tuple = PyRef::steal(PyTuple_New(Py_ssize_t(values.size())));
    for (size_t i = 0; tuple && i < values.size(); ++i) {
        PyObject* value = PyLong_FromLongLong(values[i]);
        if (!value) return {};
        PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i), value);
    }
    return tuple;
}

// torch.empty_strided(sizes, strides, dtype=dtype): for a torch without the fast allocator.
PyObject* slow_empty(PyObject* args) {
    static PyObject* const names = Py_BuildValue("(ss)", "dtype", "device");
    static PyObject* const function = PyObject_GetAttrString(torch.module, "empty_strided");
    static PyObject* const cpu = PyUnicode_InternFromString("cpu");
    if (!names || !function || !cpu) return nullptr;
    PyObject* values[] = {PyTuple_GET_ITEM(args, 0), PyTuple_GET_ITEM(args, 1), PyTuple_GET_ITEM(args, 2), cpu};
    return PyObject_Vectorcall(function, values, 2, names);
}

}  // namespace

Allocator::Allocator(std::span<const int64_t> sizes, std::span<const int64_t> strides, int torch_dtype) {
    PyRef size_tuple = tuple_of(sizes), stride_tuple = tuple_of(strides);
    PyObject* dtype = torch_dtype >= 0 && torch_dtype < kTorchDTypes ? torch.dtypes[torch_dtype] : nullptr;
    if (size_tuple && stride_tuple && dtype) args_ = PyRef::steal(PyTuple_Pack(3, size_tuple.get(), stride_tuple.get(), dtype));
    PyErr_Clear();
}

PyObject* Allocator::operator()() const {
    if (!args_) {
        PyErr_SetString(PyExc_SystemError, "framejit: allocator without a shape or with an unknown dtype");
        return nullptr;
    }
    return torch.empty_strided ? torch.empty_strided.call_tuple(args_.get()) : slow_empty(args_.get());
}

Viewer::Viewer(std::span<const int64_t> sizes, std::span<const int64_t> strides, int64_t offset)
    : sizes_(tuple_of(sizes)), strides_(tuple_of(strides)), offset_(PyRef::steal(PyLong_FromLongLong(offset))), distance_(offset) {
    PyErr_Clear();
}

// A view that torch records nothing for. With a base that needs no gradient the caller's grad mode stays: it decides how torch treats
// later writes to the view.
PyObject* Viewer::operator()(PyObject* base) const { return make(base, offset_.get()); }

PyObject* Viewer::relative(PyObject* base) const {
    const int64_t own = view_of(base).offset;
    if (own == 0) [[likely]]
        return make(base, offset_.get());
    PyRef sum = PyRef::steal(PyLong_FromLongLong(own + distance_));
    return sum ? make(base, sum.get()) : nullptr;
}

PyObject* Viewer::make(PyObject* base, PyObject* offset) const {
    static PyObject* const function = [] {
        PyRef functions = PyRef::steal(PyObject_GetAttrString(torch.C, "_VariableFunctions"));
        return functions ? PyObject_GetAttrString(functions.get(), "as_strided") : nullptr;
    }();
    if (!function) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ImportError, "framejit: this torch has no as_strided");
        return nullptr;
    }
    PyObject* args[] = {base, sizes_.get(), strides_.get(), offset};
    if (!grad_enabled() || !requires_grad_of(base)) return PyObject_Vectorcall(function, args, 4, nullptr);
    NoGrad quiet;
    return PyObject_Vectorcall(function, args, 4, nullptr);
}

PyObject* as_strided(PyObject* base, std::span<const int64_t> sizes, std::span<const int64_t> strides, int64_t offset) {
    return Viewer(sizes, strides, offset)(base);
}

}  // namespace framejit
