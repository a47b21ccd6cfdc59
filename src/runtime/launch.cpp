// One launch: all items of a kernel as one range, split over threads when the work is worth a fork.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "framejit/api.h"
#include "src/runtime/memory.h"

namespace framejit {
namespace {

constexpr double kForkUs = 4;  // a fork-join costs 0.6 us, and a core that is busy elsewhere much more
constexpr double kBytesPerUs = 20e3, kNsPerUs = 1e3;
constexpr int64_t kChunksPerThread = 4;  // so that a late thread costs a chunk and not its share

struct Job {
    const KernelStep* step;
    void* const* table;
    int64_t per_item;  // grains
    std::atomic<int32_t> failed{0};
};

// [begin, end) in grains of all items.
void work(int64_t begin, int64_t end, void* context) {
    Job& job = *static_cast<Job*>(context);
    const KernelStep& s = *job.step;
    void* scratch = s.scratch ? thread_scratch(s.scratch) : nullptr;
    constexpr size_t kFew = 64;
    void* few[kFew];
    std::vector<void*> many;
    int32_t failed = 0;
    while (begin < end) {
        const std::vector<int>& slots = s.items[size_t(begin / job.per_item)];
        void** bufs = few;
        if (slots.size() > kFew) {
            many.resize(slots.size());
            bufs = many.data();
        }
        for (size_t i = 0; i < slots.size(); i++) bufs[i] = job.table[slots[i]];
        const int64_t first = begin % job.per_item, last = std::min(job.per_item, first + end - begin);
        failed |= s.fn(bufs, first * s.grain, std::min(s.units, last * s.grain), scratch);
        begin += last - first;
    }
    if (failed) job.failed.store(1, std::memory_order_relaxed);
}

}  // namespace

int32_t launch(const KernelStep& s, void* const* table, ParallelFor par, int threads) {
    if (s.units == 0 || s.items.empty()) return 0;
    Job job{&s, table, (s.units + s.grain - 1) / s.grain};
    const int64_t grains = job.per_item * int64_t(s.items.size());
    const double us = std::max(double(s.bytes) / kBytesPerUs, s.ns / kNsPerUs);
    if (par && threads > 1 && grains > 1 && us > kForkUs) {
        // Chunks of at least a fork's worth of work.
        const int64_t most = std::max<int64_t>(1, int64_t(us / (kForkUs / 2)));
        const int64_t chunks = std::min<int64_t>({grains, threads * kChunksPerThread, most});
        par(0, grains, std::max<int64_t>(1, grains / chunks), work, &job);
    } else {
        work(0, grains, &job);
    }
    if (s.finish) {
        for (const std::vector<int>& slots : s.items) {
            std::vector<void*> bufs;
            for (int slot : slots) bufs.push_back(table[slot]);
            if (s.finish(bufs.data(), 0, s.units, nullptr)) job.failed = 1;
        }
    }
    return job.failed;
}

}  // namespace framejit
