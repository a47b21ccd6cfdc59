// Reading a tensor: by probed offsets, by torch's C ABI, by DLPack's exchange table, by Python attributes. Each way fills the same view.
// The slower ways take from Python what their interface cannot tell (key set, storage identity); they exist for a torch whose layout the
// probe does not understand, and as independent witnesses in the tests.
#include "plugin/torch/reader.h"
#include <set>
#include <vector>

namespace framejit {

namespace {

// torch functions of subclasses must not run while a tensor is looked at.
class NoTorchFunction {
public:
    NoTorchFunction() {
        static const bool found =
            find_symbol(get_, "_ZN2at4impl22PythonTorchFunctionTLS18get_disabled_stateEv") &&
            find_symbol(set_, "_ZN2at4impl22PythonTorchFunctionTLS18set_disabled_stateENS0_26TorchFunctionDisabledStateE");
        active_ = found;
        if (active_) {
            before_ = get_();
            set_(kAllDisabled);
        }
    }
    ~NoTorchFunction() {
        if (active_) set_(before_);
    }
    NoTorchFunction(const NoTorchFunction&) = delete;

private:
    static constexpr uint8_t kAllDisabled = 2;
    static inline uint8_t (*get_)() = nullptr;
    static inline void (*set_)(uint8_t) = nullptr;
    uint8_t before_ = 0;
    bool active_ = false;
};

PyRef attribute(PyObject* object, const char* name) { return PyRef::steal(PyObject_GetAttrString(object, name)); }
PyRef method(PyObject* object, const char* name) { return PyRef::steal(PyObject_CallMethod(object, name, nullptr)); }
int64_t number(const PyRef& object) { return object ? PyLong_AsLongLong(object.get()) : -1; }

// Lists of sizes that Python made have no memory of their own to borrow from; they are kept for good, one copy each.
const int64_t* interned(const PyRef& sequence, int& count) {
    static std::set<std::vector<int64_t>> all;
    if (!sequence || !PyTuple_Check(sequence.get())) return nullptr;
    std::vector<int64_t> values;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sequence.get()); ++i)
        values.push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(sequence.get(), i)));
    count = int(values.size());
    return PyErr_Occurred() ? nullptr : all.insert(std::move(values)).first->data();
}

struct DeviceRow {
    const char* name;
    int type;  // c10::DeviceType
};
constexpr DeviceRow kDevices[] = {{"cpu", 0},  {"cuda", 1}, {"mkldnn", 5}, {"hip", 6},  {"xla", 9},           {"vulkan", 10},
                                  {"xpu", 12}, {"mps", 13}, {"meta", 14},  {"hpu", 15}, {"privateuseone", 20}};

DType known_dtype(int code) { return unsigned(code) < kTorchDTypes ? torch.dtype_of[code] : DType::other; }
int64_t item_size(int code) { return unsigned(code) < kTorchDTypes ? torch.item_size[code] : 0; }
bool read_device(PyObject* tensor, TensorView& view) {
    PyRef device = attribute(tensor, "device");
    PyRef type = device ? attribute(device.get(), "type") : PyRef();
    PyRef index = type ? attribute(device.get(), "index") : PyRef();
    if (!index) return false;
    view.device_type = -1;
    for (auto& row : kDevices)
        if (PyUnicode_CompareWithASCIIString(type.get(), row.name) == 0) view.device_type = row.type;
    view.device_index = index.get() == Py_None ? -1 : int(PyLong_AsLong(index.get()));
    return true;
}
bool read_key_set(PyObject* tensor, TensorView& view) {
    PyRef set = PyRef::steal(PyObject_CallOneArg(torch.dispatch_keys, tensor));
    PyRef raw = set ? method(set.get(), "raw_repr") : PyRef();
    if (!raw) return false;
    view.key_set = PyLong_AsUnsignedLongLong(raw.get());
    return !PyErr_Occurred();
}
// Any tensor may be a dual one while a level of forward mode is open.
bool forward_mode() {
    static PyObject* const names = [] {
        PyRef module = PyRef::steal(PyImport_ImportModule("torch.autograd.forward_ad"));
        return module ? Py_XNewRef(PyModule_GetDict(module.get())) : nullptr;
    }();
    PyObject* level = names ? PyDict_GetItemString(names, "_current_level") : nullptr;
    return level && PyLong_Check(level) && PyLong_AsLong(level) >= 0;
}
bool read_kind(PyObject* tensor, TensorView& view) {
    PyRef dtype = attribute(tensor, "dtype");
    if (!dtype || !read_device(tensor, view) || !read_key_set(tensor, view)) return false;
    view.torch_dtype = torch_code(dtype.get());
    view.dtype = known_dtype(view.torch_dtype);
    view.requires_grad = ask_requires_grad(tensor);
    view.tangent = forward_mode();
    return true;
}
bool read_storage(PyObject* tensor, TensorView& view) {
    PyRef storage = method(tensor, "untyped_storage");
    PyRef identity = storage ? attribute(storage.get(), "_cdata") : PyRef();
    if (!identity) {
        PyErr_Clear();  // a wrapper without memory
        return false;
    }
    view.storage = PyLong_AsVoidPtr(identity.get());
    view.storage_bytes = number(method(storage.get(), "nbytes"));
    PyRef data = method(storage.get(), "data_ptr");
    if (!data) PyErr_Clear();
    view.data = data ? PyLong_AsVoidPtr(data.get()) : nullptr;
    return true;
}
bool read_dims(PyObject* tensor, TensorView& view) {
    int count = 0, again = 0;
    view.sizes = interned(attribute(tensor, "shape"), count);
    view.strides = interned(method(tensor, "stride"), again);
    view.offset = number(method(tensor, "storage_offset"));
    view.ndim = count;
    view.numel = 1;
    for (int i = 0; view.sizes && i < count; ++i) view.numel *= view.sizes[i];
    return !PyErr_Occurred() && count == again;
}
void apply_offset(TensorView& view) {
    if (view.numel == 0) view.data = nullptr;
    if (view.data) view.data = static_cast<char*>(view.data) + view.offset * item_size(view.torch_dtype);
}
bool answered(bool ok) {
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return false;
    }
    return ok;
}

// ---- C ABI ----
struct CAbi {
    int32_t (*dim)(void*, int64_t*) = nullptr;
    int32_t (*sizes)(void*, int64_t**) = nullptr;
    int32_t (*strides)(void*, int64_t**) = nullptr;
    int32_t (*offset)(void*, int64_t*) = nullptr;
    int32_t (*numel)(void*, int64_t*) = nullptr;
    int32_t (*bytes)(void*, int64_t*) = nullptr;
    int32_t (*dtype)(void*, int32_t*) = nullptr;
    int32_t (*device_type)(void*, int32_t*) = nullptr;
    int32_t (*device_index)(void*, int32_t*) = nullptr;
    bool found() {
        return find_symbol(dim, "aoti_torch_get_dim") && find_symbol(sizes, "aoti_torch_get_sizes") &&
               find_symbol(strides, "aoti_torch_get_strides") && find_symbol(offset, "aoti_torch_get_storage_offset") &&
               find_symbol(numel, "aoti_torch_get_numel") && find_symbol(bytes, "aoti_torch_get_storage_size") &&
               find_symbol(dtype, "aoti_torch_get_dtype") && find_symbol(device_type, "aoti_torch_get_device_type") &&
               find_symbol(device_index, "aoti_torch_get_device_index");
    }
} abi;

// ---- DLPack's exchange table (dlpack.h 1.2 and later, restated) ----
struct DLTensor {
    void* data;
    int32_t device_type, device_id;
    int32_t ndim;
    struct {
        uint8_t code, bits;
        uint16_t lanes;
    } dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
};
struct DLExchange {
    uint32_t major, minor;
    DLExchange* previous;
    void *allocate, *managed_from_python, *managed_to_python;
    int (*view)(void*, DLTensor*);  // borrows; may be null
    void* stream;
};
DLExchange* exchange = nullptr;

}  // namespace

bool ask_requires_grad(PyObject* tensor) {
    NoTorchFunction quiet;
    PyGetSetDef* getter = torch.requires_grad;
    PyRef answer = getter ? PyRef::steal(getter->get(tensor, getter->closure)) : attribute(tensor, "requires_grad");
    if (!answer) PyErr_Clear();
    return answer.get() != Py_False;
}

bool read_with(Tier tier, PyObject* tensor, TensorView& view) {
    switch (tier) {
    case kProbed: return read_probed(tensor, view);
    case kCAbi: return read_c_abi(tensor, view);
    case kDlpack: return read_dlpack(tensor, view);
    default: return read_python(tensor, view);
    }
}

// Field by field: clearing a view of this size first would cost as much as reading it.
bool read_probed(PyObject* tensor, TensorView& view) {
    const void* impl = impl_of(tensor);
    view.key_set = load<uint64_t>(impl, layout.key_set);
    view.torch_dtype = load<uint16_t>(impl, layout.dtype);
    view.dtype = known_dtype(view.torch_dtype);
    view.device_type = load<uint8_t>(impl, layout.device);
    view.device_index = load<int8_t>(impl, layout.device + 1);
    const void* meta = load<void*>(impl, layout.meta);
    view.requires_grad = probed_requires_grad(tensor, meta);
    view.tangent = meta && load<void*>(meta, layout.tangent);
    void* storage = load<void*>(impl, layout.storage);
    const bool strided = is_strided(view.key_set) && storage;
    const Dims dims = strided ? dims_of(impl) : Dims{};
    view.ndim = int(dims.count);
    view.sizes = dims.sizes;
    view.strides = dims.strides;
    view.offset = strided ? load<int64_t>(impl, layout.offset) : 0;
    view.numel = strided ? load<int64_t>(impl, layout.numel) : 0;
    view.storage = strided ? storage : nullptr;
    view.storage_bytes = strided ? load<int64_t>(storage, layout.bytes) : 0;
    view.data = strided ? load<void*>(storage, layout.data) : nullptr;
    apply_offset(view);
    return true;
}

bool c_abi_works(PyObject* sample) {
    PyRef number = attribute(sample, "_cdata");
    bool same = number && PyLong_AsVoidPtr(number.get()) == impl_of(sample);
    PyErr_Clear();
    return same && abi.found();
}
bool read_c_abi(PyObject* tensor, TensorView& view) {
    NoTorchFunction quiet;
    view = {};
    void* handle = handle_of(tensor);
    int32_t dtype, type, index;
    if (abi.dtype(handle, &dtype) || abi.device_type(handle, &type) || abi.device_index(handle, &index)) return false;
    view.torch_dtype = dtype;
    view.dtype = known_dtype(dtype);
    view.device_type = type;
    view.device_index = index;
    view.requires_grad = ask_requires_grad(tensor);
    view.tangent = forward_mode();
    if (!read_key_set(tensor, view)) return answered(false);
    if (!is_strided(view.key_set) || !read_storage(tensor, view)) return answered(true);
    int64_t ndim, *sizes, *strides;
    if (abi.dim(handle, &ndim) || abi.sizes(handle, &sizes) || abi.strides(handle, &strides) || abi.offset(handle, &view.offset) ||
        abi.numel(handle, &view.numel) || abi.bytes(handle, &view.storage_bytes))
        return answered(false);
    view.ndim = int(ndim);
    view.sizes = sizes;
    view.strides = strides;
    apply_offset(view);
    return answered(true);
}

bool dlpack_works(PyObject* sample) {
    PyRef capsule = attribute(reinterpret_cast<PyObject*>(Py_TYPE(sample)), "__dlpack_c_exchange_api__");
    if (capsule) exchange = static_cast<DLExchange*>(PyCapsule_GetPointer(capsule.get(), "dlpack_exchange_api"));
    PyErr_Clear();
    while (exchange && exchange->major != 1) exchange = exchange->previous;
    DLTensor out;
    bool works = exchange && exchange->view && exchange->view(sample, &out) == 0;
    PyErr_Clear();
    return works;
}
bool read_dlpack(PyObject* tensor, TensorView& view) {
    NoTorchFunction quiet;
    view = {};
    if (!read_kind(tensor, view)) return answered(false);
    if (!is_strided(view.key_set) || !read_storage(tensor, view)) return answered(true);
    DLTensor out;
    if (exchange->view(tensor, &out) != 0) {  // a device that DLPack does not know
        PyErr_Clear();
        return read_python(tensor, view);
    }
    view.ndim = out.ndim;
    view.sizes = out.shape;
    view.strides = out.strides;
    view.offset = number(method(tensor, "storage_offset"));
    view.numel = 1;
    for (int i = 0; i < view.ndim; ++i) view.numel *= view.sizes[i];
    view.data = out.data;
    if (view.numel == 0) view.data = nullptr;
    return answered(true);
}

bool read_python(PyObject* tensor, TensorView& view) {
    NoTorchFunction quiet;
    view = {};
    if (!read_kind(tensor, view)) return answered(false);
    if (!is_strided(view.key_set) || !read_storage(tensor, view)) return answered(true);
    if (!read_dims(tensor, view)) return answered(false);
    apply_offset(view);
    return answered(true);
}

}  // namespace framejit
