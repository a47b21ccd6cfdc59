// What this folder keeps of torch: its Python objects, C functions taken out of its builtins, and symbols of its libraries.
// Private to plugin/torch. Filled once by init_torch() and constant afterwards, so that any thread may read it.
//
// Invariants: nothing is linked and nothing is made global (dlopen with RTLD_NOLOAD); every symbol may be missing, and whoever uses one has
// another way; a pointer is only taken out of a builtin whose calling convention (ml_flags) was checked.
#pragma once
#include "framejit/dtype.h"
#include "plugin/py.h"
#include <cstdint>

namespace framejit {

// A C function of torch: called by pointer when its flags are the expected ones, otherwise as an object. Lives until the process ends, as
// everything here: references are never given back, because static destructors run after Python has gone.
struct Builtin {
    PyObject* object = nullptr;
    PyCFunction function = nullptr;  // null: call the object
    PyObject* self = nullptr;        // borrowed from `object`
    explicit operator bool() const { return object != nullptr; }
    PyObject* call_no_args() const { return function ? function(self, nullptr) : PyObject_CallNoArgs(object); }
    PyObject* call_one(PyObject* arg) const { return function ? function(self, arg) : PyObject_CallOneArg(object, arg); }  // METH_O
    PyObject* call_tuple(PyObject* args) const {
        return function ? function(self, args) : PyObject_Call(object, args, nullptr);
    }  // METH_VARARGS
};
Builtin builtin(PyObject* owner, const char* name, int flags);  // empty (no Python error) when there is no such attribute

inline constexpr int kTorchDTypes = 128;

struct Torch {
    bool ready = false;
    void* library = nullptr;     // handle of torch._C and everything that it depends on
    PyObject* module = nullptr;  // torch
    PyObject* C = nullptr;       // torch._C
    PyTypeObject* tensor = nullptr;
    PyTypeObject* parameter = nullptr;
    PyGetSetDef* requires_grad = nullptr;
    PyObject* dtypes[kTorchDTypes] = {};  // torch.dtype objects by c10::ScalarType
    uint8_t item_size[kTorchDTypes] = {};
    DType dtype_of[kTorchDTypes] = {};  // what framejit calls it
    PyObject* dispatch_keys = nullptr;  // torch._C._dispatch_keys
    Builtin empty_strided;              // _empty_strided_cpu(sizes, strides, dtype)
    Builtin increment_version;
    Builtin set_grad_enabled;
    uint64_t dense = 0, nested = 0, wrapped = 0, lazy = 0;  // bits of a key set; wrapped: by functorch; lazy: conjugate or negative
};
extern Torch torch;

void* torch_symbol(const char* name);
template <class F> bool find_symbol(F& function, const char* name) {
    function = F(torch_symbol(name));
    return function != nullptr;
}
int torch_code(PyObject* dtype);  // c10::ScalarType of a torch.dtype, -1 for anything else

// THPVariable is {PyObject_HEAD; at::Tensor cdata; ...} and at::Tensor is one pointer (checked against `_cdata` by the probe).
// The address of that pointer is what the C ABI calls a handle; it is borrowed from the Python object.
inline void* handle_of(PyObject* tensor) { return reinterpret_cast<char*>(tensor) + sizeof(PyObject); }
inline void* impl_of(PyObject* tensor) { return *static_cast<void**>(handle_of(tensor)); }
template <class T> T load(const void* base, int offset) { return *reinterpret_cast<const T*>(static_cast<const char*>(base) + offset); }

// Runs the source of a Python function definition and calls the function `name` with (torch,). Null with a Python error.
PyObject* run_script(const char* source, const char* name);

// The steps of init_torch, each in its own file; -1 with a Python error.
int init_tensors();   // tensor.cpp: chooses the tier
int init_state();     // state.cpp
void init_threads();  // threads.cpp
void init_shims();    // shim.cpp

// True when the calling thread's operators reach their kernels directly: no mode of any kind, no functorch level. Inference mode is fine.
bool ordinary_thread();

// Grad mode off while it lives (only if it was on).
class NoGrad {
public:
    NoGrad();
    ~NoGrad();
    NoGrad(const NoGrad&) = delete;

private:
    bool was_on_;
};
// Ops that were recorded below autocast run without it. Nothing happens (1 ns) when autocast is off. A Python error passes through.
class NoAutocast {
public:
    NoAutocast();
    ~NoAutocast();
    NoAutocast(const NoAutocast&) = delete;

private:
    uint64_t removed_ = 0;  // bits of the thread's word
    PyRef context_;         // torch's own context manager, when the word is not known
};

}  // namespace framejit
