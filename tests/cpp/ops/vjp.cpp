// Every VJP against central differences in f64, on the op's own samples.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <random>

#include "src/passes/passes.h"
#include "tests/cpp/sample_data.h"

using namespace framejit;

namespace {

Sample in_f64(Sample s) {
    for (auto& [dtype, shape] : s.in)
        if (is_float(dtype)) dtype = DType::f64;
    return s;
}

double& real(Memory& m, int64_t i) { return reinterpret_cast<double*>(m.data())[i]; }

// sum(weights * op(inputs))
double weighted(const Graph& forward, const std::vector<Memory>& in, Memory& weights) {
    Memory out = evaluate(forward, in)[0];
    double total = 0;
    for (int64_t i = 0; i < int64_t(out.size() / 8); i++) total += real(out, i) * real(weights, i);
    return total;
}

void check(const OpDef& op, const Sample& s) {
    const Graph forward = sample_graph(op, s);
    std::vector<Memory> in = sample_memory(s);
    const Shape& shape = forward.outputs[0].value->shape;
    Memory weights = random_memory(DType::f64, shape, 0.5, 1.5, 99);

    // The gradients: a graph of the inputs and the weights.
    Graph g;
    std::vector<Ref> operands;
    for (auto& [dtype, extent] : s.in) operands.push_back(g.input(dtype, extent, contiguous_strides(extent)));
    Ref dy = g.input(DType::f64, shape, contiguous_strides(shape));
    Ref out = g.op(op.name, operands, s.at);
    const std::vector<Ref> grads = op.vjp(g, *out, out->in, out, dy);
    BOOST_REQUIRE_EQUAL(grads.size(), operands.size());
    std::vector<size_t> of;
    for (size_t k = 0; k < grads.size(); k++) {
        if (!grads[k]) continue;
        BOOST_TEST((grads[k]->shape == out->in[k]->shape));
        BOOST_TEST(name_of(grads[k]->dtype) == name_of(out->in[k]->dtype));
        if (operands[k]->shape != out->in[k]->shape) continue;  // a broadcast operand: its gradient is that of the expand below it
        g.outputs.push_back({grads[k]});
        of.push_back(k);
    }
    std::vector<Memory> with_dy = in;
    with_dy.push_back(weights);
    std::vector<Memory> ours = evaluate(g, with_dy);

    std::mt19937 random(5);
    for (size_t k = 0; k < of.size(); k++) {
        Memory& x = in[of[k]];
        for (int trial = 0; trial < 6; trial++) {
            const int64_t i = int64_t(random() % (x.size() / 8));
            const double at = real(x, i), h = 1e-6 * std::max(1.0, std::fabs(at));
            real(x, i) = at + h;
            const double above = weighted(forward, in, weights);
            real(x, i) = at - h;
            const double below = weighted(forward, in, weights);
            real(x, i) = at;
            const double want = (above - below) / (2 * h), got = real(ours[k], i);
            BOOST_TEST(std::fabs(got - want) <= 1e-5 * std::max(1.0, std::fabs(want)),
                       "operand " << of[k] << ": " << got << ", not " << want);
        }
    }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(vjp)

BOOST_AUTO_TEST_CASE(central_differences) {
    int ops = 0;
    for (const OpDef* op : all_ops()) {
        if (!op->vjp || op == &op_cast) continue;
        ops++;
        for (const Sample& s : op->samples.fn()) {
            const Sample wide = in_f64(s);
            const Graph g = sample_graph(*op, wide);
            if (g.outputs[0].value->dtype != DType::f64) continue;
            BOOST_TEST_CONTEXT(std::string(op->name)) check(*op, wide);
        }
    }
    BOOST_TEST(ops > 40);
}

// A gradient through a branch that was not taken must not become NaN.
BOOST_AUTO_TEST_CASE(far_arguments_have_finite_gradients) {
    for (std::string_view name : {"softplus", "elu", "mish", "silu", "log_sigmoid", "gelu", "sigmoid", "tanh", "hardswish"})
        for (double x : {-200.0, 200.0, 0.0}) {
            Graph g;
            Ref in = g.input(DType::f32, {1}, {1});
            Attrs at;
            if (name == "softplus") at.f = {1, 20};
            if (name == "elu") at.f = {1, 1, 1};
            Ref out = g.op(name, {in}, at);
            Ref dy = g.op("expand", {g.scalar(1, DType::f32)}, {{1}, {}});
            g.outputs.push_back({out->op->vjp(g, *out, out->in, out, dy)[0]});
            Memory value(4);
            store_scalar(value.data(), DType::f32, 0, ScalarEmitter::real(Ty::f32, x));
            const double grad = load_scalar(evaluate(g, {value})[0].data(), DType::f32, 0).f;
            BOOST_TEST(std::isfinite(grad), name << "'(" << x << ") = " << grad);
            BOOST_TEST(std::fabs(grad) <= 1.2, name << "'(" << x << ") = " << grad);
        }
}

BOOST_AUTO_TEST_SUITE_END()
