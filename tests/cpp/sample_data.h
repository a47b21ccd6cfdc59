// Graphs and memory made from an op's samples.
#pragma once
#include <random>

#include "framejit/op.h"
#include "src/ir/scalar_emitter.h"

namespace framejit {

using Memory = std::vector<char>;

// Uniform in [lo, hi), truncated for integers.
inline Memory random_memory(DType d, const Shape& shape, double lo, double hi, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> uniform(lo, hi);
    Memory m(size_t(numel(shape)) * size_of(d));
    ScalarEmitter e;
    for (int64_t i = 0; i < numel(shape); i++)
        store_scalar(m.data(), d, i, e.narrow(e.cast(ScalarEmitter::real(Ty::f64, uniform(random)), reg(d)), d));
    return m;
}

inline Graph sample_graph(const OpDef& op, const Sample& s) {
    Graph g;
    g.name = op.name;
    std::vector<Ref> in;
    for (auto& [dtype, shape] : s.in) in.push_back(g.input(dtype, shape, contiguous_strides(shape)));
    g.outputs.push_back({g.op(op.name, in, s.at)});
    return g;
}

inline std::vector<Memory> sample_memory(const Sample& s) {
    std::vector<Memory> out;
    unsigned seed = 1;
    for (auto& [dtype, shape] : s.in) out.push_back(random_memory(dtype, shape, s.lo, s.hi, seed++));
    return out;
}

// Every output of a graph, interpreted.
inline std::vector<Memory> evaluate(const Graph& g, std::vector<Memory> inputs) {
    std::vector<Memory> outputs;
    for (const Output& o : g.outputs) outputs.emplace_back(size_t(numel(o.value->shape)) * size_of(o.value->dtype));
    std::vector<void*> bufs;
    for (Memory& m : inputs) bufs.push_back(m.data());
    for (Memory& m : outputs) bufs.push_back(m.data());
    interpret(g, bufs);
    return outputs;
}

}  // namespace framejit
