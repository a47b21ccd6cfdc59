// Every sample of every op: machine code equals the interpreter bit for bit, on every target that this machine can run.
#include <boost/test/unit_test.hpp>

#include <set>

#include "tests/cpp/support/run.h"

using namespace framejit;

namespace {

Graph sample_graph(const OpDef& op, const Sample& s, DType dtype) {
    Graph g;
    g.name = op.name;
    std::vector<Ref> in;
    for (const auto& [d, shape] : s.in) in.push_back(g.input(d == DType::f32 ? dtype : d, shape, contiguous_strides(shape)));
    g.outputs.push_back({g.op(op.name, in, s.at)});
    return g;
}

// Floating-point functions are not defined on integers, and most of them do not say so.
bool takes_integers(std::string_view op) {
    static const std::set<std::string_view> kOps = {
        "add",        "sub",     "mul",        "div_trunc",   "div_floor", "fmod", "mod",       "maximum", "minimum", "neg",      "abs",
        "sign",       "relu",    "where",      "lt",          "le",        "gt",   "ge",        "eq",      "ne",      "bit_and",  "bit_or",
        "bit_xor",    "bit_not", "shift_left", "shift_right", "expand",    "view", "transpose", "slice",   "window",  "diagonal", "unfold",
        "as_strided", "gather",  "index",      "sum",         "prod",      "amax", "amin",      "argmax",  "argmin",  "any",      "all"};
    return kOps.count(op) > 0;
}

void check_samples(DType dtype) {
    for (const Target& target : test::targets())
        for (const OpDef* op : all_ops())
            for (const Sample& s : op->samples.fn()) {
                if (is_int(dtype) && !takes_integers(op->name)) continue;
                BOOST_TEST_CHECKPOINT(op->name << " " << name_of(dtype));
                try {
                    const Graph g = sample_graph(*op, s, dtype);
                    BOOST_TEST(test::difference(g, target, 7, s.lo, s.hi) == "", op->name << " " << print(g));
                } catch (const GraphError& e) {
                    if (dtype == DType::f32) BOOST_ERROR(op->name << ": " << e.what());
                }
            }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(codegen_ops)
BOOST_AUTO_TEST_CASE(f32_samples) { check_samples(DType::f32); }
BOOST_AUTO_TEST_CASE(bf16_samples) { check_samples(DType::bf16); }
BOOST_AUTO_TEST_CASE(f16_samples) { check_samples(DType::f16); }
BOOST_AUTO_TEST_CASE(f64_samples) { check_samples(DType::f64); }
BOOST_AUTO_TEST_CASE(i32_samples) { check_samples(DType::i32); }
BOOST_AUTO_TEST_CASE(i64_samples) { check_samples(DType::i64); }
BOOST_AUTO_TEST_CASE(u8_samples) { check_samples(DType::u8); }
BOOST_AUTO_TEST_CASE(gradients) {
    for (DType dtype : {DType::f32, DType::bf16})
        for (const OpDef* op : all_ops())
            for (const Sample& s : op->samples.fn()) {
                if (!op->vjp) continue;
                BOOST_TEST_CHECKPOINT(op->name << " " << name_of(dtype));
                try {
                    Graph g = sample_graph(*op, s, dtype);
                    Ref out = g.outputs[0].value;
                    if (!is_float(out->dtype)) continue;
                    Ref dy = g.input(out->dtype, out->shape, contiguous_strides(out->shape));
                    for (Ref grad : op->vjp(g, *out, out->in, out, dy))
                        if (grad) g.outputs.push_back({grad});
                    BOOST_TEST(test::difference(g, host_target(), 7, s.lo, s.hi) == "", op->name << " " << print(g));
                } catch (const GraphError&) {  // this op does not take this dtype
                    BOOST_TEST((dtype != DType::f32 || s.in.empty() || s.in[0].first != DType::f32));
                }
            }
}
// Also on machines that cannot run it: the code of both targets is selected and linked.
BOOST_AUTO_TEST_CASE(compiles_for_avx512) {
    for (const char* cpu : {"skylake-avx512|", "sapphirerapids|+avx512bf16"})
        for (const OpDef* op : all_ops())
            for (const Sample& s : op->samples.fn()) {
                const auto x = compile(sample_graph(*op, s, DType::f32), {.cpu = cpu, .width = 16, .avx512 = true});
                BOOST_TEST(!x->slots.empty());
            }
}
BOOST_AUTO_TEST_SUITE_END()
