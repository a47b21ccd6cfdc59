// What the lowering knows of a storage while it walks the log: the value that it holds now, and the layout of the tensor that owns it.
#pragma once
#include "framejit/ir.h"
#include <algorithm>
#include <numeric>
#include <vector>

namespace framejit {

// The dimensions of a dense, non-overlapping layout from the slowest to the fastest; empty when it is not dense.
inline std::vector<int> memory_order(const Shape& sizes, const Shape& strides, bool& dense) {
    std::vector<int> order(sizes.size()), wide;  // a dimension of size 1 stands where it is: its stride says nothing
    std::iota(order.begin(), order.end(), 0);
    std::copy_if(order.begin(), order.end(), std::back_inserter(wide), [&](int d) { return sizes[d] != 1; });
    std::stable_sort(wide.begin(), wide.end(), [&](int a, int b) { return strides[a] > strides[b]; });
    for (size_t d = 0, next = 0; d < order.size(); ++d)
        if (sizes[d] != 1) order[d] = wide[next++];
    int64_t expect = 1;
    dense = true;
    for (size_t i = order.size(); i-- > 0;) {
        int d = order[i];
        if (sizes[d] == 1) continue;
        if (strides[d] != expect) dense = false;
        expect *= sizes[d];
    }
    return order;
}
// Whether two elements may be the same memory: dimensions that do not lie clear of the faster ones.
inline bool may_overlap(const Shape& sizes, const Shape& strides) {
    std::vector<std::pair<int64_t, int64_t>> dims;  // stride, extent
    for (size_t d = 0; d < sizes.size(); ++d) {
        if (sizes[d] == 0) return false;
        if (sizes[d] > 1) dims.emplace_back(strides[d], sizes[d]);
    }
    std::sort(dims.begin(), dims.end());
    int64_t reach = 0;  // of all faster ones
    for (auto [stride, extent] : dims) {
        if (stride <= reach) return true;
        reach += stride * (extent - 1);
    }
    return false;
}
inline bool identity(const std::vector<int>& order) {
    for (size_t i = 0; i < order.size(); ++i)
        if (order[i] != int(i)) return false;
    return true;
}

struct StorageState {
    enum Kind : uint8_t {
        Unset,
        Memory,
        Value
    } kind = Unset;          // Memory: an input's or an extern result's; Value: contiguous in memory order
    Ref base = nullptr;      // Memory: input or result node (logical shape); Value: the value in memory order
    Shape sizes, strides;    // of the tensor that owns it
    int64_t offset = 0;      // its storage offset
    int owner = -1;          // the tensor whose layout this is
    int torch_dtype = -1;    // of its elements
    std::vector<int> order;  // memory order of the owner's dimensions
    int input = -1;          // Memory of which input
    int version = 0;
    bool written = false;
    bool padded = false;  // Value: base has one more dimension, of extent 1, so that a copy of memory is not taken for that memory
};
struct TensorValue {
    Ref value = nullptr;
    int version = -1;
};

}  // namespace framejit
