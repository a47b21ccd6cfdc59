// init_torch: imports torch, checks its version and collects what torch.h lists.
#include "plugin/torch/torch.h"
#include "plugin/torch/tensor.h"
#include <cstdio>
#include <cstring>
#include <dlfcn.h>

namespace framejit {

Torch torch;

void* torch_symbol(const char* name) { return torch.library ? dlsym(torch.library, name) : nullptr; }

Builtin builtin(PyObject* owner, const char* name, int flags) {
    Builtin b;
    b.object = PyObject_GetAttrString(owner, name);
    if (!b.object) {
        PyErr_Clear();
        return b;
    }
    if (PyCFunction_CheckExact(b.object) && PyCFunction_GET_FLAGS(b.object) == flags) {
        b.function = PyCFunction_GET_FUNCTION(b.object);
        b.self = PyCFunction_GET_SELF(b.object);
    }
    return b;
}

PyObject* run_script(const char* source, const char* name) {
    PyRef globals = PyRef::steal(PyDict_New());
    if (!globals || PyDict_SetItemString(globals.get(), "__builtins__", PyEval_GetBuiltins()) < 0) return nullptr;
    PyRef done = PyRef::steal(PyRun_String(source, Py_file_input, globals.get(), globals.get()));
    if (!done) return nullptr;
    PyObject* function = PyDict_GetItemString(globals.get(), name);
    return function ? PyObject_CallFunctionObjArgs(function, torch.module, nullptr) : nullptr;
}

int torch_code(PyObject* dtype) {
    if (!torch.dtypes[0] || Py_TYPE(dtype) != Py_TYPE(torch.dtypes[0])) return -1;
    for (int code = 0; code < kTorchDTypes; ++code)
        if (torch.dtypes[code] == dtype) return code;
    return -1;
}

namespace {

constexpr int kMinMajor = 2, kMinMinor = 10;

int unsupported(const char* version) {
    PyRef errors = PyRef::steal(PyImport_ImportModule("framejit.errors"));
    PyRef type;
    if (errors) type = PyRef::steal(PyObject_GetAttrString(errors.get(), "UnsupportedVersionError"));
    PyErr_Clear();
    PyErr_Format(type ? type.get() : PyExc_ImportError, "framejit needs torch %d.%d or later, found %s", kMinMajor, kMinMinor, version);
    return -1;
}

int check_version() {
    PyRef version = PyRef::steal(PyObject_GetAttrString(torch.module, "__version__"));
    PyRef text = version ? PyRef::steal(PyObject_Str(version.get())) : PyRef();
    const char* s = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
    if (!s) return -1;
    int major = 0, minor = 0;
    if (std::sscanf(s, "%d.%d", &major, &minor) != 2) return unsupported(s);
    return major > kMinMajor || (major == kMinMajor && minor >= kMinMinor) ? 0 : unsupported(s);
}

PyTypeObject* type_at(PyObject* owner, const char* name) {
    PyObject* type = PyObject_GetAttrString(owner, name);
    if (type && !PyType_Check(type)) {
        PyErr_Format(PyExc_TypeError, "torch: %s is no class", name);
        Py_CLEAR(type);
    }
    return reinterpret_cast<PyTypeObject*>(type);
}

int find_objects() {
    torch.C = PyObject_GetAttrString(torch.module, "_C");
    torch.tensor = torch.C ? type_at(torch.module, "Tensor") : nullptr;
    PyRef nn = PyRef::steal(torch.tensor ? PyImport_ImportModule("torch.nn") : nullptr);
    torch.parameter = nn ? type_at(nn.get(), "Parameter") : nullptr;
    if (!torch.parameter) return -1;
    torch.dispatch_keys = PyObject_GetAttrString(torch.C, "_dispatch_keys");
    PyRef file = torch.dispatch_keys ? PyRef::steal(PyObject_GetAttrString(torch.C, "__file__")) : PyRef();
    const char* path = file ? PyUnicode_AsUTF8(file.get()) : nullptr;
    if (!path) return -1;
    torch.library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    PyRef getter = PyRef::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(torch.tensor), "requires_grad"));
    if (!getter) return -1;
    if (Py_TYPE(getter.get()) == &PyGetSetDescr_Type) torch.requires_grad = reinterpret_cast<PyGetSetDescrObject*>(getter.get())->d_getset;
    torch.increment_version = builtin(torch.C, "_increment_version", METH_O);
    if (!torch.increment_version) {
        PyRef autograd = PyRef::steal(PyObject_GetAttrString(torch.C, "_autograd"));
        if (autograd) torch.increment_version = builtin(autograd.get(), "_increment_version", METH_O);
    }
    torch.set_grad_enabled = builtin(torch.C, "_set_grad_enabled", METH_VARARGS);
    PyErr_Clear();
    return 0;
}

void find_allocator() {
    PyRef dynamo = PyRef::steal(PyObject_GetAttrString(torch.C, "_dynamo"));
    PyRef guards = dynamo ? PyRef::steal(PyObject_GetAttrString(dynamo.get(), "guards")) : PyRef();
    if (guards) torch.empty_strided = builtin(guards.get(), "_empty_strided_cpu", METH_VARARGS);
    PyErr_Clear();
}

// The scalar type stands right behind the header of a torch.dtype. Checked for every dtype that framejit has a row for.
int find_dtypes() {
    PyRef type = PyRef::steal(PyObject_GetAttrString(torch.module, "dtype"));
    PyObject* dict = type ? PyModule_GetDict(torch.module) : nullptr;
    if (!dict) return -1;
    for (int code = 0; code < kTorchDTypes; ++code) torch.dtype_of[code] = dtype_of_torch(code);
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(dict, &at, &key, &value)) {
        if (Py_TYPE(value) != reinterpret_cast<PyTypeObject*>(type.get())) continue;
        int code = load<uint8_t>(value, sizeof(PyObject));
        if (code >= kTorchDTypes || torch.dtypes[code]) continue;
        PyRef size = PyRef::steal(PyObject_GetAttrString(value, "itemsize"));
        if (!size) PyErr_Clear();
        torch.dtypes[code] = Py_NewRef(value);
        torch.item_size[code] = size ? uint8_t(PyLong_AsLong(size.get())) : 0;
    }
    static constexpr struct {
        const char* name;
        DType dtype;
    } kKnown[] = {{"bool", DType::b1},     {"uint8", DType::u8},    {"int8", DType::i8},       {"int16", DType::i16},
                  {"int32", DType::i32},   {"int64", DType::i64},   {"bfloat16", DType::bf16}, {"float16", DType::f16},
                  {"float32", DType::f32}, {"float64", DType::f64}, {"complex64", DType::c64}, {"complex128", DType::c128}};
    for (auto& known : kKnown) {
        PyRef expected = PyRef::steal(PyObject_GetAttrString(torch.module, known.name));
        if (!expected) return -1;
        int code = row(known.dtype).torch_code;
        if (torch.dtypes[code] != expected.get() || torch.item_size[code] != size_of(known.dtype)) {
            PyErr_Format(PyExc_ImportError, "framejit cannot read torch.%s of this torch", known.name);
            return -1;
        }
    }
    return 0;
}

uint64_t key_bit(const char* name) {
    PyRef keys = PyRef::steal(PyObject_GetAttrString(torch.C, "DispatchKey"));
    PyRef key = keys ? PyRef::steal(PyObject_GetAttrString(keys.get(), name)) : PyRef();
    PyRef set = key ? PyRef::steal(PyObject_CallMethod(torch.C, "DispatchKeySet", "O", key.get())) : PyRef();
    PyRef raw = set ? PyRef::steal(PyObject_CallMethod(set.get(), "raw_repr", nullptr)) : PyRef();
    uint64_t bits = raw ? PyLong_AsUnsignedLongLongMask(raw.get()) : 0;
    PyErr_Clear();
    return bits;
}

}  // namespace

bool torch_ready() { return torch.ready; }

int init_torch() {
    if (torch.ready) return 0;
    torch.module = PyImport_ImportModule("torch");
    if (!torch.module || check_version() < 0 || find_objects() < 0 || find_dtypes() < 0) return -1;
    torch.dense = key_bit("Dense");
    torch.nested = key_bit("NestedTensor");
    torch.lazy = key_bit("Conjugate") | key_bit("Negative");
    torch.wrapped = key_bit("FuncTorchBatched") | key_bit("FuncTorchGradWrapper");
    find_allocator();
    if (init_tensors() < 0 || init_state() < 0) return -1;
    init_threads();
    init_shims();
    torch.ready = true;
    return 0;
}

}  // namespace framejit
