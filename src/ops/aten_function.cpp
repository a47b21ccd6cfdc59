// Functions of one value: elementary functions, rounding, activations, clamps.
#include <limits>

#include "src/ops/aten.h"

namespace framejit::aten {
namespace {

// Integers become floats first.
template <const OpDef& op> Results function(Call& c) {
    Ref x = c.tensor(0);
    return {c(op.name, {c.cast(x, to_float(x->dtype, c.default_float()))})};
}
template <const OpDef& op> Results of_floats(Call& c) {
    require(is_float(c.tensor(0)->dtype));
    return {c(op.name, {c.tensor(0)})};
}
// Integers have no fraction.
template <const OpDef& op> Results rounding(Call& c) {
    Ref x = c.tensor(0);
    require(x->dtype != DType::b1);
    return {is_int(x->dtype) ? x : c(op.name, {x})};
}
Results neg(Call& c) {
    require(c.tensor(0)->dtype != DType::b1);
    return {c.neg(c.tensor(0))};
}
template <const OpDef& op> Results of_numbers(Call& c) {
    Ref x = c.tensor(0);
    return {x->dtype == DType::b1 ? x : c(op.name, {x})};
}
Results relu(Call& c) {
    require(c.tensor(0)->dtype != DType::b1);
    return {c("relu", {c.tensor(0)})};
}
Results frac(Call& c) {
    Ref x = c.tensor(0);
    require(is_float(x->dtype));
    return {c.sub(x, c("trunc", {x}))};
}
Results gelu(Call& c) {
    const std::string approximate = c.text(1);
    require(is_float(c.tensor(0)->dtype) && (approximate == "tanh" || approximate == "none" || approximate.empty()));
    return {c(approximate == "tanh" ? "gelu_tanh" : "gelu", {c.tensor(0)})};
}

// ---- activations with parameters ----

Ref floating(Call& c) {
    require(is_float(c.tensor(0)->dtype));
    return c.tensor(0);
}
double number_or(Call& c, size_t i, double otherwise) { return c.given(i) ? c.real(i) : otherwise; }

Results leaky_relu(Call& c) { return {c("leaky_relu", {floating(c)}, {{}, {number_or(c, 1, 0.01)}})}; }
Results elu(Call& c) { return {c("elu", {floating(c)}, {{}, {number_or(c, 1, 1), number_or(c, 2, 1), number_or(c, 3, 1)}})}; }
Results celu(Call& c) {
    const double alpha = number_or(c, 1, 1);
    return {c("elu", {floating(c)}, {{}, {alpha, 1, 1 / alpha}})};
}
Results selu(Call& c) { return {c("elu", {floating(c)}, {{}, {1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1}})}; }
Results softplus(Call& c) { return {c("softplus", {floating(c)}, {{}, {number_or(c, 1, 1), number_or(c, 2, 20)}})}; }
Results log_sigmoid(Call& c) {
    Ref x = floating(c);
    return {c("log_sigmoid", {x}), c.as_recorded(c.exp(c.neg(c("abs", {c.up(x)}))), 1)};
}
Results threshold(Call& c) {
    Ref x = c.tensor(0);
    return {c.where(c("le", {x, c.value(1, x->dtype)}), c.value(2, x->dtype), x)};
}
Results prelu(Call& c) {
    Ref x = c.up(floating(c)), w = c.up(c.tensor(1));
    return {c.as_recorded(c.where(c.compare("gt", x, 0), x, c.mul(w, x)))};
}
Results glu(Call& c) {
    Ref x = floating(c);
    const int64_t d = c.given(1) ? c.dim(1, x) : int64_t(x->shape.size()) - 1;
    require(!x->shape.empty());
    const int64_t half = x->shape[d] / 2;
    Ref a = c.up(c.slice(x, d, 0, half)), b = c.up(c.slice(x, d, half, half));
    return {c.as_recorded(c.mul(a, c("sigmoid", {b})))};
}

// ---- clamps: the lower bound first, NaN stays; of equal zeros eager keeps x beside a number and the bound beside a tensor ----

Results clamp_between(Call& c, size_t lo, size_t hi) {
    std::vector<const Arg*> operands{&c.at(0)};
    for (size_t i : {lo, hi})
        if (c.given(i)) operands.push_back(&c.at(i));
    const DType d = result_type(operands, c.default_float());
    require(d != DType::b1);
    Ref x = c.value(0, d);
    auto bound = [&](std::string_view op, size_t i) {
        if (c.given(i)) x = c.is_tensor(i) ? c(op, {x, c.value(i, d)}) : c(op, {c.value(i, d), x});
    };
    bound("maximum", lo);
    bound("minimum", hi);
    return {x};
}
constexpr size_t kNone = size_t(-1);
Results clamp(Call& c) { return clamp_between(c, 1, 2); }
Results clamp_min(Call& c) { return clamp_between(c, 1, kNone); }
Results clamp_max(Call& c) { return clamp_between(c, kNone, 1); }
Results hardtanh(Call& c) {
    Ref x = c.tensor(0);
    Ref low = c.given(1) ? c.value(1, x->dtype) : c.number(-1, x), high = c.given(2) ? c.value(2, x->dtype) : c.number(1, x);
    return {c("minimum", {high, c("maximum", {low, x})})};
}

Results nan_to_num(Call& c) {
    Ref x = c.tensor(0);
    if (!is_float(x->dtype)) return {x};
    const double inf = std::numeric_limits<double>::infinity();
    const double largest = x->dtype == DType::f64   ? std::numeric_limits<double>::max()
                           : x->dtype == DType::f32 ? double(std::numeric_limits<float>::max())
                           : x->dtype == DType::f16 ? 65504.0
                                                    : 3.3895313892515355e38;
    Ref y = c.where(c("ne", {x, x}), c.number(number_or(c, 1, 0), x), x);
    y = c.where(c.compare("eq", x, inf), c.number(number_or(c, 2, largest), x), y);
    return {c.where(c.compare("eq", x, -inf), c.number(number_or(c, 3, -largest), x), y)};
}

constexpr Row kRules[] = {
    {"aten::exp", rule<function<op_exp>>},
    {"aten::exp2", rule<function<op_exp2>>},
    {"aten::expm1", rule<function<op_expm1>>},
    {"aten::log", rule<function<op_log>>},
    {"aten::log2", rule<function<op_log2>>},
    {"aten::log10", rule<function<op_log10>>},
    {"aten::log1p", rule<function<op_log1p>>},
    {"aten::sqrt", rule<function<op_sqrt>>},
    {"aten::rsqrt", rule<function<op_rsqrt>>},
    {"aten::reciprocal", rule<function<op_reciprocal>>},
    {"aten::sin", rule<function<op_sin>>},
    {"aten::cos", rule<function<op_cos>>},
    {"aten::tan", rule<function<op_tan>>},
    {"aten::asin", rule<function<op_asin>>},
    {"aten::acos", rule<function<op_acos>>},
    {"aten::atan", rule<function<op_atan>>},
    {"aten::sinh", rule<function<op_sinh>>},
    {"aten::cosh", rule<function<op_cosh>>},
    {"aten::tanh", rule<function<op_tanh>>},
    {"aten::asinh", rule<function<op_asinh>>},
    {"aten::acosh", rule<function<op_acosh>>},
    {"aten::atanh", rule<function<op_atanh>>},
    {"aten::erf", rule<function<op_erf>>},
    {"aten::erfc", rule<function<op_erfc>>},
    {"aten::sigmoid", rule<function<op_sigmoid>>},
    {"aten::floor", rule<rounding<op_floor>>},
    {"aten::ceil", rule<rounding<op_ceil>>},
    {"aten::trunc", rule<rounding<op_trunc>>},
    {"aten::round", rule<rounding<op_round>>},
    {"aten::frac", rule<frac>},
    {"aten::neg", rule<neg>},
    {"aten::abs", rule<of_numbers<op_abs>>},
    {"aten::sign", rule<of_numbers<op_sign>>},
    {"aten::relu", rule<relu>},
    {"aten::gelu", rule<gelu>},
    {"aten::silu", rule<of_floats<op_silu>>},
    {"aten::mish", rule<of_floats<op_mish>>},
    {"aten::hardswish", rule<of_floats<op_hardswish>>},
    {"aten::hardsigmoid", rule<of_floats<op_hardsigmoid>>},
    {"aten::leaky_relu", rule<leaky_relu>},
    {"aten::elu", rule<elu>},
    {"aten::celu", rule<celu>},
    {"aten::selu", rule<selu>},
    {"aten::softplus", rule<softplus>},
    {"aten::log_sigmoid_forward", rule<log_sigmoid>},
    {"aten::threshold", rule<threshold>},
    {"aten::_prelu_kernel", rule<prelu>},
    {"aten::glu", rule<glu>},
    {"aten::clamp", rule<clamp>},
    {"aten::clamp.Tensor", rule<clamp>},
    {"aten::clamp_min", rule<clamp_min>},
    {"aten::clamp_min.Tensor", rule<clamp_min>},
    {"aten::clamp_max", rule<clamp_max>},
    {"aten::clamp_max.Tensor", rule<clamp_max>},
    {"aten::hardtanh", rule<hardtanh>},
    {"aten::nan_to_num", rule<nan_to_num>},
};

}  // namespace

std::span<const Row> function_rules() { return kRules; }

}  // namespace framejit::aten
