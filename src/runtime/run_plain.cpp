// Runs an executable without extern calls on plain memory: tests and tools.
#include <stdexcept>

#include "framejit/api.h"
#include "framejit/op.h"
#include "src/runtime/memory.h"

namespace framejit {

void run_plain(const Executable& x, std::span<void* const> bufs, ParallelFor par, int threads) {
    int inputs = 0;
    for (const Slot& s : x.slots) inputs += s.kind == Slot::Input;
    std::unique_ptr<void, decltype(&std::free)> arena(std::aligned_alloc(64, size_t(x.arena_bytes + 64) / 64 * 64), &std::free);
    std::vector<void*> table;
    for (const Slot& s : x.slots) {
        if (s.kind == Slot::Result) throw GraphError("run_plain runs no extern calls");
        if (s.kind == Slot::Temp)
            table.push_back(s.arena < 0 ? nullptr : static_cast<char*>(arena.get()) + s.arena);
        else
            table.push_back(bufs[size_t(s.kind == Slot::Input ? s.position : inputs + s.position)]);
    }
    for (const auto& step : x.steps) {
        const auto* kernel = std::get_if<KernelStep>(&step);
        if (!kernel) throw GraphError("run_plain runs no extern calls");
        if (launch(*kernel, table.data(), par, threads)) throw std::out_of_range("an index is out of range");
    }
}

}  // namespace framejit
