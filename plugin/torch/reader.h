// The four ways to read a tensor. Private to plugin/torch.
#pragma once
#include "plugin/torch/layout.h"
#include "plugin/torch/tensor.h"
#include "plugin/torch/torch.h"

namespace framejit {

enum Tier { kProbed, kCAbi, kDlpack, kPython, kTierCount };

// Reads everything; false (no Python error left) when torch does not answer, e.g. for a size that is symbolic.
bool read_probed(PyObject*, TensorView&);
bool read_c_abi(PyObject*, TensorView&);
bool read_dlpack(PyObject*, TensorView&);
bool read_python(PyObject*, TensorView&);
bool read_with(Tier, PyObject*, TensorView&);
bool c_abi_works(PyObject* sample);
bool dlpack_works(PyObject* sample);

// A key set with the sizes, strides and storage of an ordinary tensor: not sparse, nested, quantised, or of an opaque library.
inline bool is_strided(uint64_t key_set) { return (key_set & torch.dense) == torch.dense && !(key_set & torch.nested); }

// c10::SizesAndStrides: {size; int64 in[10] or a pointer}
struct Dims {
    int64_t count;
    const int64_t *sizes, *strides;
};
inline Dims dims_of(const void* impl) {
    int64_t count = load<int64_t>(impl, layout.sizes - 8);
    auto* inside = reinterpret_cast<const int64_t*>(static_cast<const char*>(impl) + layout.sizes);
    if (count <= kInlineDims) [[likely]]
        return {count, inside, inside + kInlineDims};
    auto* outside = *reinterpret_cast<const int64_t* const*>(inside);
    return {count, outside, outside + count};
}

bool requires_grad_of(PyObject* tensor);  // by the serving tier

// Asks torch: the answer of a view follows its base. Errors count as "yes", which no recording without gradients accepts.
bool ask_requires_grad(PyObject* tensor);
inline bool probed_requires_grad(PyObject* tensor, const void* meta) {
    if (!meta) return false;
    if (load<uint8_t>(meta, layout.flag) || load<void*>(meta, layout.grad_fn)) return true;
    if (load<const void*>(meta, 0) == layout.plain_meta) [[likely]]
        return false;  // a frozen parameter, a counter made by torch.tensor
    return ask_requires_grad(tensor);
}

}  // namespace framejit
