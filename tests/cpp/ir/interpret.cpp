// The oracle against closed forms: widths, rounding, NaN, strides, memory that is written in place.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "tests/cpp/sample_data.h"

using namespace framejit;

namespace {

Memory memory_of(DType d, std::vector<double> values) {
    Memory m(values.size() * size_of(d));
    ScalarEmitter e;
    for (size_t i = 0; i < values.size(); i++)
        store_scalar(m.data(), d, int64_t(i), is_float(d) ? e.constant(reg(d), values[i]) : e.integer(reg(d), int64_t(values[i])));
    return m;
}
std::vector<double> values_of(const Memory& m, DType d) {
    std::vector<double> out;
    for (size_t i = 0; i < m.size() / size_of(d); i++) {
        const Val v = load_scalar(m.data(), d, int64_t(i));
        out.push_back(is_float(v.ty) ? v.f : double(v.i));
    }
    return out;
}
// One op on vectors of one dtype.
std::vector<double> apply(std::string_view op, DType d, std::vector<std::vector<double>> operands, Attrs at = {}) {
    Graph g;
    std::vector<Ref> in;
    std::vector<Memory> memory;
    for (auto& values : operands) {
        in.push_back(g.input(d, {int64_t(values.size())}, {1}));
        memory.push_back(memory_of(d, values));
    }
    g.outputs.push_back({g.op(op, in, at)});
    return values_of(evaluate(g, memory)[0], g.outputs[0].value->dtype);
}
using Values = std::vector<double>;
constexpr double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace

BOOST_AUTO_TEST_SUITE(oracle)

BOOST_AUTO_TEST_CASE(integers_wrap_at_their_width) {
    BOOST_TEST(apply("add", DType::i8, {{100, -100}, {100, -100}}) == (Values{-56, 56}), boost::test_tools::per_element());
    BOOST_TEST(apply("add", DType::u8, {{200}, {100}}) == (Values{44}), boost::test_tools::per_element());
    BOOST_TEST(apply("sub", DType::u8, {{1}, {2}}) == (Values{255}), boost::test_tools::per_element());
    BOOST_TEST(apply("mul", DType::i16, {{300}, {300}}) == (Values{24464}), boost::test_tools::per_element());
    BOOST_TEST(apply("mul", DType::i32, {{65536}, {65536}}) == (Values{0}), boost::test_tools::per_element());
    BOOST_TEST(apply("neg", DType::i8, {{-128}}) == (Values{-128}), boost::test_tools::per_element());
    BOOST_TEST(apply("bit_not", DType::u8, {{5}}) == (Values{250}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(sixteen_bit_floats_round_once_per_op) {
    const double half_step = std::ldexp(1, -8);  // half of bf16's step at 1
    BOOST_TEST(apply("add", DType::bf16, {{1, 1}, {half_step, 3 * half_step}}) == (Values{1, 1 + 4 * half_step}),
               boost::test_tools::per_element());
    BOOST_TEST(apply("mul", DType::f16, {{60000, -60000}, {2, 2}}) == (Values{kInf, -kInf}), boost::test_tools::per_element());
    BOOST_TEST(apply("add", DType::f16, {{2048}, {1}}) == (Values{2048}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(division_and_remainder_have_two_directions) {
    const std::vector<Values> operands{{7, -7, 7, -7}, {2, 2, -2, -2}};
    for (DType d : {DType::i64, DType::f32, DType::i8}) {
        BOOST_TEST(apply("div_trunc", d, operands) == (Values{3, -3, -3, 3}), boost::test_tools::per_element());
        BOOST_TEST(apply("div_floor", d, operands) == (Values{3, -4, -4, 3}), boost::test_tools::per_element());
        BOOST_TEST(apply("fmod", d, operands) == (Values{1, -1, 1, -1}), boost::test_tools::per_element());
        BOOST_TEST(apply("mod", d, operands) == (Values{1, 1, -1, -1}), boost::test_tools::per_element());
    }
}

BOOST_AUTO_TEST_CASE(shifts_beyond_the_width) {
    BOOST_TEST(apply("shift_left", DType::i32, {{3, 3, 3}, {1, 32, -1}}) == (Values{6, 0, 0}), boost::test_tools::per_element());
    BOOST_TEST(apply("shift_right", DType::i64, {{-8, -8, 8}, {1, 64, 64}}) == (Values{-4, -1, 0}), boost::test_tools::per_element());
    BOOST_TEST(apply("shift_right", DType::u8, {{200, 200}, {1, 9}}) == (Values{100, 0}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(nan_wins_or_is_ignored_as_eager_does) {
    BOOST_TEST(std::isnan(apply("maximum", DType::f32, {{kNaN}, {1}})[0]));
    BOOST_TEST(std::isnan(apply("minimum", DType::f32, {{1}, {kNaN}})[0]));
    BOOST_TEST(std::isnan(apply("relu", DType::f32, {{kNaN}})[0]));
    BOOST_TEST(apply("sign", DType::f32, {{kNaN, -0.5}}) == (Values{0, -1}), boost::test_tools::per_element());
    BOOST_TEST(std::isnan(apply("amax", DType::f32, {{1, kNaN, 3}}, {{0}, {}})[0]));
    BOOST_TEST(apply("argmax", DType::f32, {{1, kNaN, 3, kNaN}}, {{0}, {}})[0] == 1);
    BOOST_TEST(apply("argmin", DType::f32, {{1, 2, kNaN, kNaN}}, {{0}, {}})[0] == 2);
}

BOOST_AUTO_TEST_CASE(reductions_at_their_edges) {
    BOOST_TEST(apply("argmax", DType::f32, {{3, 5, 5}}, {{0}, {}})[0] == 1);
    BOOST_TEST(apply("argmax", DType::f32, {{-kInf, -kInf}}, {{0}, {}})[0] == 0);
    BOOST_TEST(apply("argmin", DType::i64, {{double(INT32_MAX), double(INT32_MAX)}}, {{0}, {}})[0] == 0);
    BOOST_TEST(apply("sum", DType::f32, {{}}, {{0}, {}})[0] == 0);
    BOOST_TEST(apply("prod", DType::i64, {{}}, {{0}, {}})[0] == 1);
    BOOST_TEST(apply("all", DType::b1, {{}}, {{0}, {}})[0] == 1);
    BOOST_TEST(apply("any", DType::b1, {{0, 1, 0}}, {{0}, {}})[0] == 1);
}

BOOST_AUTO_TEST_CASE(true_is_above_false) {
    BOOST_TEST(apply("lt", DType::b1, {{0, 1, 1}, {1, 0, 1}}) == (Values{1, 0, 0}), boost::test_tools::per_element());
    BOOST_TEST(apply("amax", DType::b1, {{0, 1}}, {{0}, {}})[0] == 1);
}

BOOST_AUTO_TEST_CASE(inputs_have_strides_and_outputs_may_be_inputs) {
    Graph g;
    Ref x = g.input(DType::f32, {2, 3}, {1, 2});    // transposed memory
    Ref row = g.input(DType::f32, {2, 3}, {0, 1});  // expanded
    g.outputs = {{g.op("add", {x, row}), 0}, {g.op("neg", {x})}};
    std::vector<float> a{1, 2, 3, 4, 5, 6}, b{10, 20, 30}, unused(6), negated(6);
    void* bufs[] = {a.data(), b.data(), unused.data(), negated.data()};
    interpret(g, bufs);
    BOOST_TEST(a == (std::vector<float>{11, 12, 23, 24, 35, 36}), boost::test_tools::per_element());
    BOOST_TEST(negated == (std::vector<float>{-1, -3, -5, -2, -4, -6}), boost::test_tools::per_element());
    BOOST_TEST(unused == std::vector<float>(6), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_index_out_of_range_is_an_error_and_a_negative_one_wraps) {
    Graph g;
    Ref x = g.input(DType::f32, {3}, {1}), i = g.input(DType::i64, {2}, {1});
    g.outputs.push_back({g.op("gather", {x, i}, {{0}, {}})});
    const Memory values = memory_of(DType::f32, {1, 2, 3});
    BOOST_TEST(values_of(evaluate(g, {values, memory_of(DType::i64, {-1, 0})})[0], DType::f32) == (Values{3, 1}),
               boost::test_tools::per_element());
    BOOST_CHECK_THROW(evaluate(g, {values, memory_of(DType::i64, {0, 3})}), std::out_of_range);
    BOOST_CHECK_THROW(evaluate(g, {values, memory_of(DType::i64, {0, -4})}), std::out_of_range);
}

BOOST_AUTO_TEST_CASE(calls_cannot_be_interpreted) {
    Graph g;
    Ref x = g.input(DType::f32, {2}, {1});
    Ref call = g.extern_call({1, "aten::sort", {{{2}, {1}, 0}}, {{{2}, {1}, 0}}, {DType::f32}, false}, {x});
    g.outputs.push_back({g.result(call, 0)});
    BOOST_CHECK_THROW(evaluate(g, {memory_of(DType::f32, {1, 2})}), GraphError);
}

BOOST_AUTO_TEST_SUITE_END()
