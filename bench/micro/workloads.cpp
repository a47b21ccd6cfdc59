#include "bench/micro/workloads.h"

#include <map>

#include "framejit/op.h"

namespace framejit::bench {
namespace {

Ref in(Graph& g, Shape s, DType d = DType::f32) { return g.input(d, s, contiguous_strides(s)); }
Ref number(Graph& g, double v) { return g.scalar(v, DType::f32); }
Ref cast(Graph& g, Ref x, DType d) { return g.op("cast", {x}, {{int64_t(d)}, {}}); }

Ref bias_gelu(Graph& g, bool big) {
    const int64_t n = big ? 16384 : 512, d = big ? 4096 : 768;
    Ref x = in(g, {n, d}), b = in(g, {d});
    return g.op("gelu", {g.op("add", {x, b})});
}
Ref chain20(Graph& g, bool big) {
    const int64_t n = int64_t(1) << (big ? 26 : 20);
    Ref x = in(g, {n}), y = in(g, {n}), z = x;
    for (int i = 0; i < 5; i++) {
        z = g.op("sigmoid", {g.op("add", {g.op("mul", {z, y}), number(g, 0.5)})});
        z = g.op("where", {g.op("gt", {z, number(g, 0.6)}), g.op("sub", {z, x}), g.op("add", {z, y})});
    }
    return g.op("mul", {z, g.op("tanh", {z})});
}
Ref layernorm_residual(Graph& g, bool big) {
    const int64_t n = big ? 32768 : 1024, d = big ? 4096 : 768;
    Ref x = in(g, {n, d}), r = in(g, {n, d}), w = in(g, {d}), b = in(g, {d});
    return g.op("layer_norm", {g.op("add", {x, r}), w, b}, {{}, {1e-5}});
}
Ref rmsnorm_bf16(Graph& g, bool big) {
    const int64_t n = big ? 32768 : 1024, d = big ? 8192 : 768;
    Ref x = in(g, {n, d}, DType::bf16), w = in(g, {d}, DType::bf16);
    Ref h = cast(g, x, DType::f32);
    Ref mean = g.op("mean", {g.op("mul", {h, h})}, {{1}, {}});
    h = g.op("mul", {h, g.op("rsqrt", {g.op("add", {mean, number(g, 1e-6)})})});
    return cast(g, g.op("mul", {h, cast(g, w, DType::f32)}), DType::bf16);
}
Ref softmax(Graph& g, bool big) {
    const int64_t n = big ? 32768 : 1024, d = big ? 8192 : 1024;
    return g.op("softmax", {g.op("mul", {in(g, {n, d}), number(g, 0.125)})}, {{1}, {}});
}
Ref cross_entropy(Graph& g, bool big) {
    const int64_t n = big ? 8192 : 256, v = big ? 50304 : 8192;
    Ref x = in(g, {n, v}), t = in(g, {n}, DType::i64);
    Ref p = g.op("log_softmax", {x}, {{1}, {}});
    Ref picked = g.op("gather", {p, g.op("view", {t}, {{n, 1}, {}})}, {{1}, {}});
    return g.op("view", {g.op("mean", {g.op("neg", {picked})}, {{0}, {}})}, {{}, {}});
}
Ref sum_reduce(Graph& g, bool big) {
    const int64_t n = int64_t(1) << (big ? 28 : 22);
    Ref y = g.op("add", {g.op("mul", {in(g, {n}), number(g, 2)}), number(g, 1)});
    return g.op("view", {g.op("sum", {g.op("mul", {y, y})}, {{0}, {}})}, {{}, {}});
}
Ref column_sum(Graph& g, bool big) {
    const int64_t n = big ? 65536 : 4096, d = big ? 1024 : 768;
    return g.op("sum", {in(g, {n, d})}, {{0}, {}});
}
Ref channel_softmax(Graph& g, bool big) {
    const int64_t n = big ? 64 : 4;
    return g.op("softmax", {in(g, {n, 21, 128, 128})}, {{1}, {}});
}
Ref add_transposed(Graph& g, bool big) {
    const int64_t n = big ? 4096 : 512;
    return g.op("add", {in(g, {n, n}), g.op("transpose", {in(g, {n, n})}, {{1, 0}, {}})});
}
Ref merge_heads(Graph& g, bool big) {
    const int64_t b = big ? 64 : 4;
    Ref x = g.op("transpose", {in(g, {b, 12, 128, 64})}, {{0, 2, 1, 3}, {}});
    return g.op("view", {x}, {{b, 128, 768}, {}});
}
Ref small_rows(Graph& g, bool big) {  // softmax over 8 values, as in a router
    return g.op("softmax", {in(g, {big ? 1 << 20 : 1 << 14, 8})}, {{1}, {}});
}

const std::map<std::string, Ref (*)(Graph&, bool)>& table() {
    static const std::map<std::string, Ref (*)(Graph&, bool)> all = {
        {"bias_gelu", bias_gelu},       {"chain20", chain20},       {"layernorm_residual", layernorm_residual},
        {"rmsnorm_bf16", rmsnorm_bf16}, {"softmax", softmax},       {"cross_entropy", cross_entropy},
        {"sum_reduce", sum_reduce},     {"column_sum", column_sum}, {"channel_softmax", channel_softmax},
        {"merge_heads", merge_heads},   {"small_rows", small_rows}, {"add_transposed", add_transposed},
    };
    return all;
}

}  // namespace

std::vector<std::string> names() {
    std::vector<std::string> list;
    for (const auto& [name, make] : table()) list.push_back(name);
    return list;
}

Graph workload(const std::string& name, bool big) {
    Graph g;
    g.name = name;
    g.outputs.push_back({table().at(name)(g, big)});
    return g;
}

}  // namespace framejit::bench
