// The stages before scheduling, per node: building (hash-consing), printing, parsing, decomposing, verifying. The argument is the number of
// blocks.
#include "framejit/op.h"
#include "src/passes/passes.h"
#include <benchmark/benchmark.h>

using namespace framejit;

namespace {

// What a transformer's pointwise and row work looks like: residual, layer norm, gelu, softmax.
Graph blocks(int64_t count) {
    Graph g;
    Ref x = g.input(DType::f32, {64, 256}, {256, 1});
    Ref weight = g.input(DType::f32, {256}, {1});
    Ref bias = g.input(DType::f32, {256}, {1});
    for (int64_t i = 0; i < count; i++) {
        Ref h = g.op("add", {g.op("mul", {x, weight}), bias});
        h = g.op("gelu", {h});
        x = g.op("add", {x, g.op("softmax", {g.op("add", {h, g.scalar(double(i), DType::f32)})}, {{1}, {}})});
    }
    g.outputs.push_back({x});
    return g;
}

void per_node(benchmark::State& state, const Graph& g) { state.SetItemsProcessed(state.iterations() * int64_t(g.nodes.size())); }

void build(benchmark::State& state) {
    for (auto _ : state) benchmark::DoNotOptimize(blocks(state.range(0)).nodes.size());
    per_node(state, blocks(state.range(0)));
}
void print_text(benchmark::State& state) {
    Graph g = blocks(state.range(0));
    for (auto _ : state) benchmark::DoNotOptimize(print(g).size());
    per_node(state, g);
}
void parse_text(benchmark::State& state) {
    Graph g = blocks(state.range(0));
    std::string text = print(g);
    for (auto _ : state) benchmark::DoNotOptimize(parse(text).nodes.size());
    per_node(state, g);
}
void decompose_composites(benchmark::State& state) {
    Graph g = blocks(state.range(0));
    for (auto _ : state) benchmark::DoNotOptimize(decompose(g).nodes.size());
    per_node(state, g);
}
void verify_stage(benchmark::State& state) {
    Graph g = blocks(state.range(0));
    for (auto _ : state) benchmark::DoNotOptimize(verify(g, Stage::Captured).size());
    per_node(state, g);
}

}  // namespace

BENCHMARK(build)->Arg(1)->Arg(100);
BENCHMARK(print_text)->Arg(100);
BENCHMARK(parse_text)->Arg(100);
BENCHMARK(decompose_composites)->Arg(1)->Arg(100);
BENCHMARK(verify_stage)->Arg(100);
