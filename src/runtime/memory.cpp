#include "src/runtime/memory.h"

#include "framejit/api.h"

#include <sys/mman.h>

#include <cstdlib>
#include <memory>
#include <new>

namespace framejit {
namespace {

constexpr int64_t kLargeOutput = int64_t(32) << 20;  // smaller ones come from a heap that stays mapped
constexpr uintptr_t kPage = 4096;

struct Free {
    void operator()(void* p) const { std::free(p); }
};

}  // namespace

void* thread_scratch(int64_t bytes) {
    thread_local std::unique_ptr<void, Free> memory;
    thread_local int64_t have = 0;
    if (bytes > have) {
        memory.reset(std::aligned_alloc(64, size_t(bytes + 63) / 64 * 64));
        if (!memory) throw std::bad_alloc();
        have = bytes;
    }
    return memory.get();
}

void prepare_fresh(void* p, int64_t bytes) {
    if (bytes < kLargeOutput) return;
    const uintptr_t begin = (reinterpret_cast<uintptr_t>(p) + kPage - 1) & ~(kPage - 1);
    const uintptr_t end = (reinterpret_cast<uintptr_t>(p) + uintptr_t(bytes)) & ~(kPage - 1);
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);  // advice: a refusal changes nothing
}

}  // namespace framejit
