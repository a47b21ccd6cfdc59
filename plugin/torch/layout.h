// Where the fields of a tensor stand in memory: found at start-up by looking for values that torch itself reports, never hard-coded.
// Private to plugin/torch. The probe reads only inside heap blocks whose size the allocator knows, and follows only pointers that it
// understands.
#pragma once
#include "plugin/py.h"
#include <cstdint>

namespace framejit {

struct Layout {
    // in TensorImpl; ndim stands 8 bytes before sizes, strides of up to five dimensions 40 bytes behind them
    int sizes = 0, storage = 0, offset = 0, numel = 0, dtype = 0, device = 0, key_set = 0, meta = 0, version = 0;
    int count = 0;                     // in the version counter
    int data = 0, bytes = 0;           // in StorageImpl
    int flag = 0, grad_fn = 0;         // in AutogradMeta
    int tangent = 0;                   // in AutogradMeta: set for a dual tensor of forward-mode differentiation
    const void* plain_meta = nullptr;  // the class (vtable) of an AutogradMeta that belongs to no view
};
inline constexpr int kInlineDims = 5;
extern Layout layout;

// Fills `layout`; false when a field has no place or several (no Python error is left).
bool probe_layout();

}  // namespace framejit
