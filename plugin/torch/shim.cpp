// Preconditions of a shim call: ordinary dense CPU tensors of one floating dtype, shapes that eager accepts, nothing recorded by autograd,
// no mode or functorch level that must see the operator. Then the shim runs the very kernel that the dispatcher would reach.
#include "plugin/torch/shim.h"
#include "plugin/torch/torch.h"
#include <string_view>

namespace framejit {

struct ShimRow {
    std::string_view op;
    const char* symbol;
    ShimFamily family;
    void* function = nullptr;
};

namespace {

ShimRow kRows[] = {
#define SHIM(op, symbol, family) {op, symbol, ShimFamily::family},
#include "plugin/torch/shims.def"
#undef SHIM
};

using MatMul = int32_t (*)(void* out, void* a, void* b);
using AddMatMul = int32_t (*)(void* out, void* self, void* a, void* b, double beta, double alpha);

constexpr int64_t kReleaseGilAbove = 1 << 18;  // multiplications; about 10 us of work

uint64_t plain_keys = 0, inference_keys = 0;  // key sets of ordinary CPU tensors

constexpr const char* kPlain = R"(
def plain(torch):
    from torch.utils._python_dispatch import _disable_current_modes
    with torch._C.DisableTorchFunction(), _disable_current_modes():
        with torch.inference_mode(False):
            normal = torch.empty(1, device="cpu")
        with torch.inference_mode():
            return normal, torch.empty(1, device="cpu")
)";

bool number_or(PyObject* value, double& out) {
    if (!value) return true;
    if (PyFloat_CheckExact(value))
        out = PyFloat_AS_DOUBLE(value);
    else if (PyLong_CheckExact(value))
        out = PyLong_AsDouble(value);
    else
        return false;
    bool exact = !PyErr_Occurred();
    PyErr_Clear();
    return exact;
}

bool ordinary(const TensorView& view, int dtype) {
    return (view.key_set == plain_keys || view.key_set == inference_keys) && view.torch_dtype == dtype && is_float(view.dtype) &&
           view.storage;
}
bool expands_to(const TensorView& view, const int64_t* shape, int ndim) {
    if (view.ndim > ndim) return false;
    for (int i = 1; i <= view.ndim; ++i)
        if (view.sizes[view.ndim - i] != 1 && view.sizes[view.ndim - i] != shape[ndim - i]) return false;
    return true;
}
bool multiply(const TensorView& a, const TensorView& b, int ndim) {
    return a.ndim == ndim && b.ndim == ndim && a.sizes[ndim - 1] == b.sizes[ndim - 2] && (ndim == 2 || a.sizes[0] == b.sizes[0]);
}

}  // namespace

void init_shims() {
    PyRef samples = PyRef::steal(run_script(kPlain, "plain"));
    if (!samples) {
        PyErr_Clear();
        return;
    }
    plain_keys = view_of(PyTuple_GET_ITEM(samples.get(), 0)).key_set;
    inference_keys = view_of(PyTuple_GET_ITEM(samples.get(), 1)).key_set;
    for (auto& row : kRows) row.function = torch_symbol(row.symbol);
}

std::unique_ptr<Shim> Shim::prepare(const OpSchema& schema, const std::vector<PyObject*>& args) {
    const ShimRow* row = nullptr;
    for (auto& candidate : kRows)
        if (candidate.op == schema.name && candidate.function) row = &candidate;
    if (!row) return nullptr;
    std::unique_ptr<Shim> shim(new Shim(*row));
    size_t count = row->family == ShimFamily::MatMul ? 2 : 3;
    for (size_t i = 0; i < count; ++i)
        if (i >= args.size() || !args[i] || !is_placeholder(args[i], &shim->tensors_[i + 3 - count])) return nullptr;
    if (row->family == ShimFamily::AddMatMul && !(args.size() == 5 && number_or(args[3], shim->beta_) && number_or(args[4], shim->alpha_)))
        return nullptr;
    return shim;
}

PyObject* Shim::run(PyObject* const* tensors) {
    PyObject *first = tensors[tensors_[0]], *left = tensors[tensors_[1]], *right = tensors[tensors_[2]];
    const bool adds = row_.family == ShimFamily::AddMatMul;
    if (!is_plain_tensor(left) || !is_plain_tensor(right) || (adds && !is_plain_tensor(first)) || !ordinary_thread()) return nullptr;
    TensorView a = view_of(left), b = view_of(right), self = adds ? view_of(first) : TensorView{};
    const int ndim = a.ndim;
    if (ndim < 2 || ndim > 3 || !ordinary(a, a.torch_dtype) || !ordinary(b, a.torch_dtype) || !multiply(a, b, ndim)) return nullptr;
    if (grad_enabled() && (a.requires_grad || b.requires_grad || self.requires_grad)) return nullptr;
    std::array<int64_t, 3> shape{a.sizes[0], ndim == 3 ? a.sizes[1] : b.sizes[1], ndim == 3 ? b.sizes[2] : 0};
    if (adds && (!ordinary(self, a.torch_dtype) || !expands_to(self, shape.data(), ndim))) return nullptr;
    if (shape != shape_ || ndim != ndim_ || a.torch_dtype != dtype_) {
        const int64_t strides[] = {ndim == 3 ? shape[1] * shape[2] : shape[1], ndim == 3 ? shape[2] : 1, 1};
        allocate_ = Allocator({shape.data(), size_t(ndim)}, {strides, size_t(ndim)}, a.torch_dtype);
        shape_ = shape;
        ndim_ = ndim;
        dtype_ = a.torch_dtype;
    }
    PyRef out = PyRef::steal(allocate_());
    if (!out) return nullptr;
    auto call = [&] {
        return adds ? AddMatMul(row_.function)(handle_of(out.get()), handle_of(first), handle_of(left), handle_of(right), beta_, alpha_)
                    : MatMul(row_.function)(handle_of(out.get()), handle_of(left), handle_of(right));
    };
    int32_t failed;
    if (a.numel * b.sizes[ndim - 1] < kReleaseGilAbove) {
        failed = call();
    } else {
        PyThreadState* saved = PyEval_SaveThread();
        failed = call();
        PyEval_RestoreThread(saved);
    }
    return failed ? nullptr : out.release();
}

}  // namespace framejit
