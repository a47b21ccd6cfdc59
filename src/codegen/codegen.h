// Kernels to machine code. The only interface of this folder; no LLVM type is visible in it.
#pragma once
#include <memory>
#include <span>
#include <string>

#include "framejit/api.h"
#include "src/schedule/kernel.h"

namespace framejit {

struct MachineCode {  // shared by every kernel of the process with the same structure
    KernelFn fn = nullptr, finish = nullptr;
    int64_t units = 0, grain = 1, scratch = 0;
    std::shared_ptr<void> memory;
};
// Thread-safe. keys[i] is key_of(*kernels[i]).
std::vector<std::shared_ptr<const MachineCode>> generate(std::span<const Kernel* const> kernels, std::span<const std::string> keys,
                                                         const Target&, std::string_view name);

}  // namespace framejit
