// torch's own thread pool. A second pool in the process would fight it for the cores.
// A forked child has no pool threads (eager torch hangs there once the parent has used the pool), so kernels run inline in it.
#include "plugin/torch/tensor.h"
#include "plugin/torch/torch.h"
#include <pthread.h>

namespace framejit {

namespace {

ParallelFor torch_parallel_for = nullptr;
int32_t (*torch_num_threads)(uint32_t*) = nullptr;
bool forked_child = false;

int32_t run_inline_or_parallel(int64_t begin, int64_t end, int64_t grain, void (*body)(int64_t, int64_t, void*), void* context) {
    if (torch_parallel_for && !forked_child) return torch_parallel_for(begin, end, grain, body, context);
    if (begin < end) body(begin, end, context);
    return 0;
}

}  // namespace

void init_threads() {
    find_symbol(torch_parallel_for, "torch_parallel_for");
    find_symbol(torch_num_threads, "torch_get_num_threads");
    pthread_atfork(nullptr, nullptr, [] { forked_child = true; });
}

ParallelFor parallel_for() { return run_inline_or_parallel; }

int num_threads() {
    uint32_t count = 1;
    if (forked_child || !torch_parallel_for || !torch_num_threads || torch_num_threads(&count) != 0) return 1;
    return int(count);
}

}  // namespace framejit
