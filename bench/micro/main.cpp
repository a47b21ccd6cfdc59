// Kernels and compilation alone, without Python: kernel/<name> runs one executable into outputs that exist, compile/<name> goes from the
// graph to machine code without the cache. `--benchmark_filter=kernel/softmax`; a first argument `big` takes sizes far beyond the caches.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>

#include "bench/micro/workloads.h"
#include "framejit/api.h"
#include "framejit/op.h"

using namespace framejit;

namespace {

struct Buffers {
    std::vector<std::unique_ptr<char, decltype(&std::free)>> own;
    std::vector<void*> pointers;
    int64_t bytes = 0;
    void add(const Shape& shape, DType d) {
        const int64_t n = numel(shape) * size_of(d);
        own.emplace_back(static_cast<char*>(std::aligned_alloc(64, size_t(n + 63) / 64 * 64)), &std::free);
        std::memset(own.back().get(), 0, size_t(n));
        pointers.push_back(own.back().get());
        bytes += n;
    }
    explicit Buffers(const Graph& g) {
        for (const Node& n : g.nodes)
            if (n.op == &op_input) add(n.shape, n.dtype);
        for (const Output& o : g.outputs) add(o.value->shape, o.value->dtype);
    }
};

void kernel(benchmark::State& state, const std::string& name, bool big) {
    const Graph g = bench::workload(name, big);
    const auto x = compile(g, host_target());
    Buffers b(g);
    for (auto _ : state) run_plain(*x, b.pointers);
    state.SetBytesProcessed(int64_t(state.iterations()) * b.bytes);
}
void compilation(benchmark::State& state, const std::string& name) {
    const Graph g = bench::workload(name, false);
    double schedule = 0;
    size_t kernels = 1;
    for (auto _ : state) {
        const auto x = compile(g, host_target());  // dropped at once: the next one finds nothing in the cache
        schedule += x->schedule_ms;
        kernels = size_t(x->kernels);
    }
    state.counters["schedule_ms"] = benchmark::Counter(schedule / double(state.iterations()));
    state.counters["kernels"] = double(kernels);
}

}  // namespace

int main(int argc, char** argv) {
    const bool big = argc > 1 && std::string(argv[1]) == "big";
    if (big) {
        argv[1] = argv[0];
        argc--, argv++;
    }
    for (const std::string& name : bench::names()) {
        auto run = [name, big](benchmark::State& s) { kernel(s, name, big); };
        benchmark::RegisterBenchmark(("kernel/" + name).c_str(), run)->Unit(benchmark::kMillisecond);
        auto make = [name](benchmark::State& s) { compilation(s, name); };
        benchmark::RegisterBenchmark(("compile/" + name).c_str(), make)->Unit(benchmark::kMillisecond)->MinTime(0.1);
    }
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
}
