// Arithmetic of two or three operands, with torch's promotion. What eager does in bf16 and f16 (measured, torch 2.13): the op in f32 and
// one rounding; the number in mul, div and div with a rounding mode is not rounded to bf16 first, that in add, sub, remainder, pow is.
#include "src/ops/aten.h"

namespace framejit::aten {
namespace {

bool reduced(DType d) { return d == DType::bf16 || d == DType::f16; }
bool is_single(const Arg& a) {
    auto* t = a.as<Ref>();
    return !t || numel((*t)->shape) == 1;
}

Ref both(Call& c, std::string_view op, DType d) { return c(op, {c.value(0, d), c.value(1, d)}); }

template <const OpDef& op> Results plain(Call& c) { return {both(c, op.name, c.common({0, 1}))}; }

// a + alpha * b, the product unrounded
Results scaled_sum(Call& c, const Arg& a, const Arg& b, size_t alpha, double sign) {
    const Arg* operands[] = {&a, &b};
    const DType d = result_type(operands, c.default_float());
    Ref x = c.value(a, d), y = c.value(b, d);
    const double factor = c.given(alpha) ? c.real(alpha) : 1;
    if (d == DType::b1) {
        require(sign > 0);
        return {factor != 0 ? c("bit_or", {x, y}) : c.expand(x, c.out[0].shape)};
    }
    if (factor == 1) return {c(sign > 0 ? "add" : "sub", {x, y})};
    if (is_float(d)) return {c("fma", {y, c.number(sign * factor, y), x})};
    return {c(sign > 0 ? "add" : "sub", {x, c.mul(y, c.scalar_of(c.at(alpha), d))})};
}
Results add(Call& c) { return scaled_sum(c, c.at(0), c.at(1), 2, 1); }
Results sub(Call& c) { return scaled_sum(c, c.at(0), c.at(1), 2, -1); }
Results rsub(Call& c) { return scaled_sum(c, c.at(1), c.at(0), 2, -1); }

// The second operand keeps its digits when it is a single number of another dtype.
Ref with_exact_number(Call& c, std::string_view op, DType d) {
    if (!reduced(d) || !is_single(c.at(1))) return both(c, op, d);
    return c.cast(c(op, {c.cast(c.value(0, d), DType::f32), c.value(1, DType::f32)}), d);
}
Results mul(Call& c) {
    const DType d = c.common({0, 1});
    if (d == DType::b1) return {both(c, "bit_and", d)};
    return {with_exact_number(c, "mul", d)};
}

// Integer division by a tensor could meet a 0, which is eager's error: only by a constant that is none.
void require_divisor(const Call& c) {
    auto* n = c.at(1).as<int64_t>();
    require(n && *n != 0);
}
Results divide(Call& c, const std::string& mode) {
    DType d = c.common({0, 1});
    if (mode.empty()) return {with_exact_number(c, "div", to_float(d, c.default_float()))};
    if (!is_float(d)) require_divisor(c), require(d != DType::b1);
    return {with_exact_number(c, mode == "floor" ? "div_floor" : "div_trunc", d)};
}
Results div(Call& c) { return divide(c, ""); }
Results div_mode(Call& c) { return divide(c, c.text(2)); }
Results floor_divide(Call& c) { return divide(c, "floor"); }

template <const OpDef& op> Results remainder(Call& c) {
    const DType d = c.common({0, 1});
    if (!is_float(d)) require_divisor(c), require(d != DType::b1);
    return {both(c, op.name, d)};
}

template <const OpDef& op, const OpDef& of_bools> Results extremum(Call& c) {
    const DType d = c.common({0, 1});
    return {both(c, d == DType::b1 ? of_bools.name : op.name, d)};
}
template <const OpDef& op> Results floating(Call& c) { return {both(c, op.name, to_float(c.common({0, 1}), c.default_float()))}; }

// ---- powers ----

Ref whole_power(Call& c, Ref x, int64_t n) {  // integers wrap, so the order of multiplication does not matter
    Ref result = nullptr;
    for (; n > 0; n >>= 1, x = c.mul(x, x))
        if (n & 1) result = result ? c.mul(result, x) : x;
    return result;
}
// bf16 rounds after every multiplication for the exponents 3 and -2; f16 has no shortcuts, so that (-inf) ** 0.5 is inf.
Ref small_power(Call& c, Ref x, double p) {
    if (p == 2) return c.mul(x, x);
    if (x->dtype == DType::f16) return c("power", {x, c.expand(c.number(p, x), x->shape)});
    if (p == 3) return c.mul(c.mul(x, x), x);
    if (p == -2) return c("reciprocal", {c.mul(x, x)});
    return c("pow", {x}, {{}, {c.number(p, x)->at.f[0]}});
}
Results pow_number(Call& c) {
    const DType d = c.common({0, 1});
    Ref x = c.value(0, d);
    if (is_float(d)) return {small_power(c, x, c.real(1))};
    require(d != DType::b1);
    const int64_t n = c.integer(1);
    require(n >= 0 && n < 64);
    return {n == 0 ? c.expand(c.g.integer(1, d), x->shape) : whole_power(c, x, n)};
}
Results power(Call& c) {
    const DType d = c.common({0, 1});
    require(is_float(d));
    return {both(c, "power", d)};
}
// The number is the base; in pow_.Scalar, which is found under this name, it is the exponent.
Results pow_of_number(Call& c) { return c.at(0).as<Ref>() ? pow_number(c) : power(c); }

// ---- three operands ----

Ref promoted(Call& c, size_t i) { return c.value(i, c.common({0, 1, 2})); }

// self + (value * t1) * t2, the last product unrounded
Results addcmul(Call& c) {
    const DType d = c.common({0, 1, 2});
    Ref x = promoted(c, 0), a = promoted(c, 1), b = promoted(c, 2);
    if (!is_float(d)) return {c.add(x, c.mul(c.mul(a, c.scalar_of(c.at(3), d)), b))};
    x = c.up(x), a = c.up(a), b = c.up(b);
    const double factor = c.given(3) ? c.real(3) : 1;
    return {c.cast(c("fma", {factor == 1 ? a : c.mul(a, factor), b, x}), d)};
}
Results addcdiv(Call& c) {
    const DType d = c.common({0, 1, 2});
    require(is_float(d));
    Ref a = c.up(promoted(c, 1));
    const double factor = c.given(3) ? c.real(3) : 1;
    return {c.cast(c.add(c.up(promoted(c, 0)), c.div(factor == 1 ? a : c.mul(a, factor), c.up(promoted(c, 2)))), d)};
}
// The form that is exact at both ends; the product unrounded.
Results lerp(Call& c) {
    Ref x = c.up(c.tensor(0)), y = c.up(c.tensor(1)), w = c.up(c.value(2, x->dtype));
    require(is_float(x->dtype) && c.tensor(0)->dtype == c.tensor(1)->dtype);
    Ref d = c.sub(y, x), one = c.number(1, w);
    Ref low = c("fma", {w, d, x}), high = c("fma", {c.neg(d), c.sub(one, w), y});
    if (auto* number = c.at(2).as<double>()) return {c.as_recorded(std::abs(*number) < 0.5 ? low : high)};
    return {c.as_recorded(c.where(c.compare("lt", c("abs", {w}), 0.5), low, high))};
}

constexpr Row kRules[] = {
    {"aten::add.Tensor", rule<add>},
    {"aten::add.Scalar", rule<add>},
    {"aten::sub.Tensor", rule<sub>},
    {"aten::sub.Scalar", rule<sub>},
    {"aten::rsub.Tensor", rule<rsub>},
    {"aten::rsub.Scalar", rule<rsub>},
    {"aten::mul.Tensor", rule<mul>},
    {"aten::mul.Scalar", rule<mul>},
    {"aten::div.Tensor", rule<div>},
    {"aten::div.Scalar", rule<div>},
    {"aten::div.Tensor_mode", rule<div_mode>},
    {"aten::div.Scalar_mode", rule<div_mode>},
    {"aten::floor_divide", rule<floor_divide>},
    {"aten::floor_divide.Scalar", rule<floor_divide>},
    {"aten::remainder.Tensor", rule<remainder<op_mod>>},
    {"aten::remainder.Scalar", rule<remainder<op_mod>>},
    {"aten::fmod.Tensor", rule<remainder<op_fmod>>},
    {"aten::fmod.Scalar", rule<remainder<op_fmod>>},
    {"aten::maximum", rule<extremum<op_maximum, op_bit_or>>},
    {"aten::minimum", rule<extremum<op_minimum, op_bit_and>>},
    {"aten::atan2", rule<floating<op_atan2>>},
    {"aten::copysign.Tensor", rule<floating<op_copysign>>},
    {"aten::copysign.Scalar", rule<floating<op_copysign>>},
    {"aten::pow.Tensor_Scalar", rule<pow_number>},
    {"aten::pow.Tensor_Tensor", rule<power>},
    {"aten::pow.Scalar", rule<pow_of_number>},
    {"aten::addcmul", rule<addcmul>},
    {"aten::addcdiv", rule<addcdiv>},
    {"aten::lerp.Scalar", rule<lerp>},
    {"aten::lerp.Tensor", rule<lerp>},
};

}  // namespace

std::span<const Row> arithmetic_rules() { return kRules; }

}  // namespace framejit::aten
