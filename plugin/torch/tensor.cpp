// Tensors for the rest of the plugin: views, guard specs, writing. Which of the four ways of reading serves is decided once, at start-up.
//
// Two facts make the fused compare of `matches` sufficient for one tensor: the key set holds device type, layout, subclass, conj, neg,
// inference and quantisation in one word; and autocast, functorch and the modes, which it does not show, are in GlobalState.
#include "plugin/torch/tensor.h"
#include "framejit/options.h"
#include "plugin/torch/reader.h"
#include <algorithm>
#include <cstring>

namespace framejit {

namespace {

Tier tier = kPython;
int32_t (*mutable_data)(void*, void**) = nullptr;

bool read(PyObject* tensor, TensorView& view) { return read_with(tier, tensor, view); }

// Odd tensors on which the probed offsets must say what Python says.
constexpr const char* kWitnesses = R"(
def witnesses(torch):
    from torch.utils._python_dispatch import _disable_current_modes
    with torch.inference_mode(False), torch.enable_grad(), torch._C.DisableTorchFunction(), _disable_current_modes():
        new = lambda *sizes, dtype=torch.float32: torch.empty(sizes, dtype=dtype, device="cpu")
        base, leaf = new(50), new(3).requires_grad_()
        late = torch.zeros(3, device="cpu")
        tail = late[1:]
        late.mul_(leaf)
        with torch.no_grad():
            quiet = leaf[1:]
        with torch.inference_mode():
            inference = new(3, 2)
        eight = new(1, 1, 1, 1, 1, 1, 2, 3).permute(7, 0, 1, 2, 3, 4, 5, 6)
        pair = new(4, dtype=torch.complex64)
        return [new(), new(0, 4), new(2, 1, 3, 1, 2, 2), eight, base[7:20:2], new(1).expand(4), new(3, 4).t(), leaf, leaf * 2, (leaf * 2).detach(),
                leaf[1:], quiet, tail, inference, pair.conj(), torch._neg_view(base), new(3, dtype=torch.bool), torch.nn.Parameter(new(2, 2)),
                new(2, dtype=torch.float64), torch.empty(3, device="meta"), new(2).resize_(3, 3), new(2).requires_grad_().requires_grad_(False)]
)";

bool same_dims(const int64_t* a, const int64_t* b, int count) {
    return count == 0 || std::memcmp(a, b, sizeof(int64_t) * size_t(count)) == 0;
}
bool same(const TensorView& a, const TensorView& b) {
    return a.data == b.data && a.storage == b.storage && a.ndim == b.ndim && same_dims(a.sizes, b.sizes, a.ndim) &&
           same_dims(a.strides, b.strides, a.ndim) && a.torch_dtype == b.torch_dtype && a.device_type == b.device_type &&
           a.device_index == b.device_index && a.offset == b.offset && a.numel == b.numel && a.storage_bytes == b.storage_bytes &&
           a.key_set == b.key_set && a.requires_grad == b.requires_grad;
}
// A leaf that required grad: what its meta says of itself is the whole answer. A view's meta is of another class.
void find_plain_meta(PyObject* leaf) {
    const void* meta = load<const void*>(impl_of(leaf), layout.meta);
    layout.plain_meta = meta ? load<const void*>(meta, 0) : nullptr;
}
bool verified(PyObject* witnesses) {
    find_plain_meta(PyList_GET_ITEM(witnesses, PyList_GET_SIZE(witnesses) - 1));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(witnesses); ++i) {
        TensorView probed, asked;
        PyObject* tensor = PyList_GET_ITEM(witnesses, i);
        if (!read_probed(tensor, probed) || !read_python(tensor, asked) || !same(probed, asked)) return false;
    }
    return true;
}

[[gnu::always_inline]] inline bool matches_dims(const TensorSpec& spec, int64_t count, const int64_t* sizes, const int64_t* strides) {
    if (count != int64_t(spec.sizes.size())) return false;
    const int64_t *want_sizes = spec.sizes.data(), *want_strides = spec.strides.data();
    for (int64_t i = 0; i < count; ++i)
        if (sizes[i] != want_sizes[i] || strides[i] != want_strides[i]) return false;
    return true;
}
[[gnu::noinline]] bool matches_view(PyObject* object, const TensorSpec& spec) {
    TensorView view;
    return read(object, view) && view.key_set == spec.key_set && view.torch_dtype == spec.torch_dtype &&
           view.device_type == spec.device_type && view.device_index == spec.device_index &&
           (spec.offset < 0 || view.offset == spec.offset) && matches_dims(spec, view.ndim, view.sizes, view.strides) &&
           view.requires_grad == spec.requires_grad && !view.tangent;
}

[[gnu::always_inline]] inline bool matches_meta(PyObject* object, const void* meta, const TensorSpec& spec) {
    return !load<void*>(meta, layout.tangent) && probed_requires_grad(object, meta) == spec.requires_grad;
}

std::string list(const std::vector<int64_t>& values) {
    std::string text = "[";
    for (size_t i = 0; i < values.size(); ++i) text += (i ? "," : "") + std::to_string(values[i]);
    return text + "]";
}
std::string device_text(const TensorSpec& spec) {
    static constexpr const char* kNames[] = {"cpu", "cuda"};
    std::string name = spec.device_type == 14                          ? "meta"
                       : spec.device_type >= 0 && spec.device_type < 2 ? kNames[spec.device_type]
                                                                       : "device " + std::to_string(spec.device_type);
    return spec.device_index >= 0 ? name + ":" + std::to_string(spec.device_index) : name;
}
std::string dtype_text(const TensorSpec& spec) {
    return spec.dtype == DType::other ? "dtype " + std::to_string(spec.torch_dtype) : std::string(name_of(spec.dtype));
}
std::string number_text(const char* what, int64_t got, int64_t expected) {
    return std::string(what) + " " + std::to_string(got) + ", expected " + std::to_string(expected);
}

}  // namespace

int init_tensors() {
    PyRef witnesses = PyRef::steal(run_script(kWitnesses, "witnesses"));
    if (!witnesses) return -1;
    PyObject* sample = PyList_GET_ITEM(witnesses.get(), 1);
    const bool works[kTierCount] = {probe_layout() && verified(witnesses.get()), c_abi_works(sample), dlpack_works(sample), true};
    int first = std::max(0, int(option(Option::tensor_tier)) - 1);  // choice 0 is "auto"
    while (!works[first]) ++first;
    tier = Tier(first);
    if (!c_abi_works(sample) || !find_symbol(mutable_data, "aoti_torch_get_data_ptr")) mutable_data = nullptr;
    return 0;
}
int tensor_tier() { return tier; }

bool requires_grad_of(PyObject* tensor) {
    return tier == kProbed ? probed_requires_grad(tensor, load<void*>(impl_of(tensor), layout.meta)) : ask_requires_grad(tensor);
}

bool is_tensor(PyObject* object) {
    PyTypeObject* type = Py_TYPE(object);
    if (type == torch.tensor || type == torch.parameter) return true;
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE) || Py_IS_TYPE(type, &PyType_Type)) return false;  // tensor classes have a metaclass
    return torch.tensor && PyType_IsSubtype(type, torch.tensor);
}
PyTypeObject* tensor_type() { return torch.tensor; }
bool is_wrapped(PyObject* tensor) { return view_of(tensor).key_set & torch.wrapped; }
bool is_lazy(uint64_t key_set) { return key_set & torch.lazy; }
bool is_strided_tensor(PyObject* tensor) {
    const TensorView v = view_of(tensor);
    return is_strided(v.key_set) && v.sizes;
}
bool is_plain_tensor(PyObject* object) { return torch.tensor && (Py_TYPE(object) == torch.tensor || Py_TYPE(object) == torch.parameter); }

TensorView view_of(PyObject* tensor) {
    TensorView view;
    if (!read(tensor, view)) view = {};
    return view;
}

void* data_of(PyObject* tensor) {
    if (tier != kProbed) [[unlikely]]
        return view_of(tensor).data;
    const void* impl = impl_of(tensor);
    char* data = load<char*>(load<void*>(impl, layout.storage), layout.data);
    if (!data || load<int64_t>(impl, layout.numel) == 0) return nullptr;
    return data + load<int64_t>(impl, layout.offset) * torch.item_size[load<uint16_t>(impl, layout.dtype)];
}

TensorSpec spec_of(PyObject* tensor) {
    TensorView view = view_of(tensor);
    TensorSpec spec{Py_TYPE(tensor), view.key_set, view.dtype, view.torch_dtype, view.device_type, view.device_index, view.requires_grad,
                    view.offset,     {},           {}};
    spec.sizes.assign(view.sizes, view.sizes + view.ndim);
    spec.strides.assign(view.strides, view.strides + view.ndim);
    return spec;
}

bool matches(PyObject* object, const TensorSpec& spec) {
    if (Py_TYPE(object) != spec.type) return false;
    if (tier != kProbed) [[unlikely]]
        return matches_view(object, spec);
    const void* impl = impl_of(object);
    if (load<uint64_t>(impl, layout.key_set) != spec.key_set || load<uint16_t>(impl, layout.dtype) != spec.torch_dtype ||
        load<int8_t>(impl, layout.device + 1) != spec.device_index)
        return false;
    if (spec.offset >= 0 && load<int64_t>(impl, layout.offset) != spec.offset) return false;
    if (is_strided(spec.key_set)) [[likely]] {
        Dims dims = dims_of(impl);
        if (!matches_dims(spec, dims.count, dims.sizes, dims.strides)) return false;
    }
    const void* meta = load<void*>(impl, layout.meta);
    return meta ? matches_meta(object, meta, spec) : !spec.requires_grad;
}

std::string difference(PyObject* object, const TensorSpec& spec) {
    if (Py_TYPE(object) != spec.type) return std::string("type ") + Py_TYPE(object)->tp_name + ", expected " + spec.type->tp_name;
    TensorSpec got = spec_of(object);
    if (got.torch_dtype != spec.torch_dtype) return "dtype " + dtype_text(got) + ", expected " + dtype_text(spec);
    if (got.device_type != spec.device_type || got.device_index != spec.device_index)
        return "device " + device_text(got) + ", expected " + device_text(spec);
    if (got.sizes.size() != spec.sizes.size()) return number_text("rank", int64_t(got.sizes.size()), int64_t(spec.sizes.size()));
    for (size_t i = 0; i < spec.sizes.size(); ++i)
        if (got.sizes[i] != spec.sizes[i])
            return number_text("size", got.sizes[i], spec.sizes[i]).insert(4, " at dimension " + std::to_string(i) + ":");
    for (size_t i = 0; i < spec.strides.size(); ++i)
        if (got.strides[i] != spec.strides[i])
            return number_text("stride", got.strides[i], spec.strides[i]).insert(6, " at dimension " + std::to_string(i) + ":");
    if (got.requires_grad != spec.requires_grad)
        return spec.requires_grad ? "requires_grad is off, expected on" : "requires_grad is on, expected off";
    if (view_of(object).tangent) return "a dual tensor of forward-mode differentiation";
    if (spec.offset >= 0 && got.offset != spec.offset) return number_text("storage offset", got.offset, spec.offset);
    if (got.key_set != spec.key_set) return "another kind of tensor (layout, conjugate, negative or inference bit)";
    return "";
}

std::string describe(const TensorSpec& spec) { return dtype_text(spec) + list(spec.sizes) + " " + device_text(spec); }

// A copy-on-write storage is copied here, as torch does for its own kernels.
void* data_for_write(PyObject* tensor) {
    void* data = nullptr;
    if (mutable_data) return mutable_data(handle_of(tensor), &data) == 0 ? data : nullptr;
    PyRef address = PyRef::steal(PyObject_CallMethod(tensor, "data_ptr", nullptr));
    data = address ? PyLong_AsVoidPtr(address.get()) : nullptr;
    PyErr_Clear();
    return data;
}

int bump_version(PyObject* tensor) {
    if (tier == kProbed) {
        void* counter = load<void*>(impl_of(tensor), layout.version);  // an inference tensor has none
        if (counter) __atomic_fetch_add(reinterpret_cast<uint32_t*>(static_cast<char*>(counter) + layout.count), 1, __ATOMIC_RELAXED);
        return 0;
    }
    PyRef inference = PyRef::steal(PyObject_CallMethod(tensor, "is_inference", nullptr));
    if (!inference || inference.get() == Py_True) return inference ? 0 : -1;
    PyRef done = PyRef::steal(torch.increment_version.call_one(PyRef::steal(PyTuple_Pack(1, tensor)).get()));
    return done ? 0 : -1;
}

}  // namespace framejit
