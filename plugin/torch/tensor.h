// Reading and making tensors without libtorch's C++. Four ways to read, the best one that works is chosen once (README.md).
// Everything here needs the GIL unless said otherwise.
#pragma once
#include "framejit/api.h"
#include "framejit/dtype.h"
#include "plugin/py.h"
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace framejit {

int init_torch();    // imports torch, probes; -1 with a Python error (UnsupportedVersionError below torch 2.10)
bool torch_ready();  // false on an interpreter without torch: only the interpreter can be used
int tensor_tier();   // 0 probed offsets, 1 C ABI, 2 DLPack, 3 Python; FRAMEJIT_TENSOR_TIER forces one (tests)

bool is_tensor(PyObject*);          // torch.Tensor or a subclass
PyTypeObject* tensor_type();        // torch.Tensor, borrowed
bool is_wrapped(PyObject* tensor);  // by functorch (vmap, grad): operators reach the tensor behind it
bool is_lazy(uint64_t key_set);     // its elements are the conjugates, or negatives, of what lies in memory
bool is_strided_tensor(PyObject*);  // not sparse, nested, quantised or of an opaque library
bool is_plain_tensor(PyObject*);    // exactly torch.Tensor or torch.nn.Parameter

struct TensorView {  // borrowed from the tensor
    void* data;      // of element 0 (offset applied); null for 0 elements
    void* storage;   // identity of the StorageImpl
    const int64_t *sizes, *strides;
    int ndim;
    DType dtype;
    int torch_dtype;
    int device_type, device_index;
    int64_t offset, numel, storage_bytes;
    uint64_t key_set;
    bool requires_grad;
    bool tangent;  // a dual tensor of forward-mode differentiation: never compiled
};
TensorView view_of(PyObject* tensor);  // strided tensors with storage only; data is null otherwise
void* data_of(PyObject* tensor);       // view_of(tensor).data, of a strided tensor with storage, for the price of five loads

// What a compiled call relies on. Everything but the data pointer.
struct TensorSpec {
    PyTypeObject* type;  // exact type, borrowed (Tensor and Parameter never die; a subclass is kept alive by its guard)
    uint64_t key_set;
    DType dtype;
    int torch_dtype;
    int device_type, device_index;
    bool requires_grad;
    int64_t offset;  // storage_offset; -1: any
    std::vector<int64_t> sizes, strides;
};
TensorSpec spec_of(PyObject* tensor);
bool matches(PyObject* object, const TensorSpec&);            // 2-5 ns; false for anything that is no tensor, and for dual tensors
std::string difference(PyObject* object, const TensorSpec&);  // "size 4 at dimension 1, expected 3"
std::string describe(const TensorSpec&);                      // "f32[3,4] cpu"

void* data_for_write(PyObject* tensor);  // materialises copy-on-write storage
int bump_version(PyObject* tensor);      // after the graph wrote it; -1 with a Python error

// A fresh tensor as eager makes it (real storage, resizable). Null with a Python error. `Allocator` caches the argument tuple.
class Allocator {
public:
    Allocator() = default;
    Allocator(std::span<const int64_t> sizes, std::span<const int64_t> strides, int torch_dtype);
    PyObject* operator()() const;

private:
    PyRef args_;
};
// A real view (aliases, version counter shared): torch.as_strided, never recorded by autograd. Null with a Python error.
// The current grad mode stays when the base needs no gradient, so that torch treats later writes to the view as eager's. `Viewer` caches
// the arguments.
class Viewer {
public:
    Viewer() = default;
    Viewer(std::span<const int64_t> sizes, std::span<const int64_t> strides, int64_t offset);
    PyObject* operator()(PyObject* base) const;
    PyObject* relative(PyObject* base) const;  // the offset counts from the base's own

private:
    PyObject* make(PyObject* base, PyObject* offset) const;
    PyRef sizes_, strides_, offset_;
    int64_t distance_ = 0;  // offset_ as a number
};
PyObject* as_strided(PyObject* base, std::span<const int64_t> sizes, std::span<const int64_t> strides, int64_t offset);

// The state of the calling thread at recording that decides what operators do: six words (state.cpp), compared in 14 ns.
// Forward-mode differentiation is not in it: `matches` refuses its tensors.
struct GlobalState {
    uint64_t words[6] = {};
    PyRef slow;  // a torch GlobalStateGuard, only when autocast was on or `full` was asked for
    bool matches() const;
    std::string difference() const;  // "grad mode is on, recorded with it off"
};
GlobalState global_state(bool full = false);
bool grad_enabled();
bool inference_mode();
bool mode_is_on();  // a TorchDispatchMode or TorchFunctionMode sees what this thread does; the recorder's own is one too

ParallelFor parallel_for();  // torch_parallel_for; runs inline in a forked child
int num_threads();           // torch's intra-op count of the calling thread

}  // namespace framejit
