// Size: scheduling is fast for graphs of thousands of nodes, and no kernel becomes one of them.
#include <boost/test/unit_test.hpp>

#include <chrono>

#include "src/passes/passes.h"
#include "src/schedule/kernel.h"
#include "tests/cpp/support/run.h"

using namespace framejit;

namespace {
Ref chain(Graph& g, int n) {
    Ref x = g.input(DType::f32, {64, 64}, {64, 1}), y = x;
    for (int i = 0; i < n; i++)
        y = g.op(i % 3 ? "add" : "mul", {i % 7 ? y : g.op("tanh", {y}), i % 5 ? x : g.scalar(0.5 + i % 11, DType::f32)});
    return y;
}
double schedule_ms(const Graph& g, Program* p) {
    double best = 1e9;
    for (int i = 0; i < 3; i++) {
        const auto start = std::chrono::steady_clock::now();
        *p = schedule(g);
        best = std::min(best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    }
    return best;
}
}  // namespace

BOOST_AUTO_TEST_SUITE(schedule_large)

BOOST_AUTO_TEST_CASE(long_chain_is_cut) {
    Graph g;
    g.outputs.push_back({chain(g, 3000)});
    Program p;
    const double ms = schedule_ms(g, &p);
    BOOST_TEST_MESSAGE("3000 nodes in a chain: " << ms << " ms, " << p.kernels.size() << " kernels");
    BOOST_TEST(ms < 1000);  // the target is 100 ms; test machines are shared
    BOOST_TEST(p.steps.size() > 4);
    for (const auto& k : p.kernels) BOOST_TEST(k->exprs.size() < 2000);
    BOOST_TEST(test::difference(g, host_target(), 1, -1, 1) == "");
}

BOOST_AUTO_TEST_CASE(many_layers) {
    Graph g;  // norm, activation, residual: 120 layers without an extern call
    Ref x = g.input(DType::f32, {32, 128}, {128, 1});
    for (int i = 0; i < 120; i++) {
        Ref n = g.op("softmax", {x}, {{1}, {}});
        x = g.op("add", {x, g.op("gelu", {g.op("mul", {n, g.scalar(1.0 + i, DType::f32)})})});
    }
    g.outputs.push_back({x});
    const Graph basic = decompose(g);
    Program p;
    const double ms = schedule_ms(basic, &p);
    BOOST_TEST_MESSAGE("120 layers, " << basic.nodes.size() << " nodes: " << ms << " ms, " << p.steps.size() << " launches");
    BOOST_TEST(ms < 1000);
}

BOOST_AUTO_TEST_CASE(many_calls) {
    Graph g;  // 100 transformer layers: norms, matrix products as extern calls, activations, residuals, one table that all layers read
    const Shape s{16, 64};
    const Window w{s, {64, 1}, 0};
    auto call = [&](Ref x) {
        ExternCall c{.id = 0, .name = "mm", .args = {w}, .results = {w}, .dtypes = {DType::f32}};
        return g.result(g.extern_call(c, {x}), 0);
    };
    Ref x = g.input(DType::f32, s, {64, 1});
    Ref table = g.op("sin", {g.op("mul", {g.input(DType::f32, s, {64, 1}), g.scalar(3, DType::f32)})});
    for (int i = 0; i < 100; i++) {
        Ref n = g.op("layer_norm", {x}, {{}, {1e-5}});
        Ref q = g.op("mul", {call(n), table}), k = g.op("mul", {call(n), table}), v = call(n);
        Ref a = call(g.op("mul", {g.op("softmax", {g.op("add", {q, k})}, {{1}, {}}), v}));
        x = g.op("add", {x, a});
        Ref h = g.op("gelu", {call(g.op("layer_norm", {x}, {{}, {1e-5}}))});
        x = g.op("add", {x, call(h)});
    }
    g.outputs.push_back({x});
    const Graph basic = decompose(g);
    Program p;
    const double ms = schedule_ms(basic, &p);
    size_t launches = 0;
    for (const Step& step : p.steps) launches += step.launch.kernel != nullptr;
    BOOST_TEST_MESSAGE("100 layers, " << basic.nodes.size() << " nodes: " << ms << " ms, " << launches << " launches of "
                                      << p.kernels.size() << " kernels");
    BOOST_TEST(ms < 1000);
    BOOST_TEST(p.kernels.size() < 20);
    BOOST_TEST(launches <= 520u);
}

BOOST_AUTO_TEST_CASE(many_streams) {
    Graph g;  // a sum of 60 tensors
    Ref sum = g.input(DType::f32, {1000}, {1});
    for (int i = 0; i < 60; i++) sum = g.op("add", {sum, g.input(DType::f32, {1000}, {1})});
    g.outputs.push_back({sum});
    const Program p = schedule(g);
    for (const auto& k : p.kernels) BOOST_TEST(k->loads.size() <= 20u);
    BOOST_TEST(test::difference(g, host_target()) == "");
}

BOOST_AUTO_TEST_SUITE_END()
