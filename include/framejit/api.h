// The back half as the front half sees it: a pure function from a graph and a target to an executable. Callable from any thread, no GIL.
#pragma once
#include "framejit/ir.h"
#include <functional>
#include <memory>
#include <variant>

namespace framejit {

struct Target {
    std::string cpu;  // LLVM's name and features; part of every cache key
    int width = 16;   // f32 lanes: 16 (AVX-512), 8 (AVX2)
    bool avx512 = true;
};
Target host_target();  // what this machine offers, or FRAMEJIT_TARGET=avx2 for less

// bufs: one pointer per slot of the item; [begin, end) in units; scratch: `scratch` bytes, 64-byte aligned, one per thread.
// Returns 0, or 1 when an index was out of range (the caller re-runs the region eagerly, which raises eager's error).
using KernelFn = int32_t (*)(void* const* bufs, int64_t begin, int64_t end, void* scratch);

struct Slot {
    enum Kind { Input, Output, Temp, Result } kind;
    int position = -1;  // Input: which input; Output: which output (its memory may be an input's: Output::into)
    DType dtype = DType::f32;
    Shape shape;  // Input/Result: logical; Output/Temp: contiguous
    int64_t bytes = 0;
    int64_t arena = -1;  // Temp that no extern touches: offset in the arena; otherwise the runner makes a tensor
};
struct KernelStep {
    KernelFn fn = nullptr, finish = nullptr;  // finish: merges the partials of a full reduction, in fixed order
    int64_t units = 0;                        // per item; a linear kernel's unit is 64 elements wide except the last
    int64_t grain = 1;                        // split only at multiples of this
    int64_t bytes = 0;                        // memory traffic of all items
    double ns = 0;                            // compute of all items
    int64_t scratch = 0;                      // bytes per thread
    std::vector<std::vector<int>> items;      // slots per item: kernels of equal structure are one function and one launch
    std::string name;                         // for reports and profiles: fused_add_gelu
};
struct ExternStep {
    int call;                  // index into Executable::externs
    std::vector<int> args;     // slots whose memory the windows look at
    std::vector<int> results;  // slots
};
struct Executable {
    std::vector<Slot> slots;
    std::vector<std::variant<KernelStep, ExternStep>> steps;  // in order of execution
    std::vector<ExternCall> externs;
    std::vector<int> outputs;  // slot of each graph output
    int64_t arena_bytes = 0;
    int kernels = 0, fused_ops = 0;  // distinct launches; ops that run inside them
    double schedule_ms = 0, codegen_ms = 0;
    std::string text;            // the scheduled graph, for FRAMEJIT_DUMP=kernel
    std::shared_ptr<void> code;  // keeps the machine code alive
};
// Throws GraphError (our bug; the caller stays eager and reports it).
std::shared_ptr<const Executable> compile(const Graph&, const Target&);

// Runs the kernels of an executable that has no externs, on plain memory: tests, tools. bufs: inputs, then outputs.
using ParallelFor = int32_t (*)(int64_t, int64_t, int64_t, void (*)(int64_t, int64_t, void*), void*);
void run_plain(const Executable&, std::span<void* const> bufs, ParallelFor par = nullptr, int threads = 1);
// One launch, split over threads above the threshold (4 us of work). table: memory of every slot. Returns as KernelFn does.
int32_t launch(const KernelStep&, void* const* table, ParallelFor par, int threads);
// Half the time of a kernel that writes a large fresh buffer is page faults: asks for huge pages before the first write.
void prepare_fresh(void*, int64_t bytes);

}  // namespace framejit
