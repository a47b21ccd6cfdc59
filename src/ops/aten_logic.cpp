// Comparisons, logic, bits, selection, casts.
#include <limits>

#include "src/ops/aten.h"

namespace framejit::aten {
namespace {

template <const OpDef& op> Results comparison(Call& c) {
    const DType d = c.common({0, 1});
    return {c(op.name, {c.value(0, d), c.value(1, d)})};
}
template <const OpDef& op> Results bitwise(Call& c) {
    const DType d = c.common({0, 1});
    require(!is_float(d));
    return {c(op.name, {c.value(0, d), c.value(1, d)})};
}
template <const OpDef& op> Results shift(Call& c) {
    const DType d = c.common({0, 1});
    require(is_int(d));
    return {c(op.name, {c.value(0, d), c.value(1, d)})};
}
Results bitwise_not(Call& c) {
    require(!is_float(c.tensor(0)->dtype));
    return {c("bit_not", {c.tensor(0)})};
}

Ref truth(Call& c, size_t i) { return c.cast(c.tensor(i), DType::b1); }
template <const OpDef& op> Results logical(Call& c) { return {c(op.name, {truth(c, 0), truth(c, 1)})}; }
Results logical_not(Call& c) { return {c("bit_not", {truth(c, 0)})}; }

Ref everywhere(Call& c, bool value) { return c.expand(c.g.integer(value, DType::b1), c.tensor(0)->shape); }
Ref infinity(Call& c, double sign = 1) { return c.number(sign * std::numeric_limits<double>::infinity(), c.tensor(0)); }
Results isnan(Call& c) {
    Ref x = c.tensor(0);
    return {is_float(x->dtype) ? c("ne", {x, x}) : everywhere(c, false)};
}
Results isinf(Call& c) {
    Ref x = c.tensor(0);
    return {is_float(x->dtype) ? c("eq", {c("abs", {x}), infinity(c)}) : everywhere(c, false)};
}
Results isfinite(Call& c) {
    Ref x = c.tensor(0);
    return {is_float(x->dtype) ? c("lt", {c("abs", {x}), infinity(c)}) : everywhere(c, true)};
}
template <int sign> Results is_signed_infinity(Call& c) {
    Ref x = c.tensor(0);
    return {is_float(x->dtype) ? c("eq", {x, infinity(c, sign)}) : everywhere(c, false)};
}

Ref mask(Call& c, size_t i) {
    require(c.tensor(i)->dtype == DType::b1);
    return c.tensor(i);
}
Results where(Call& c) {
    const DType d = c.common({1, 2});
    return {c.where(mask(c, 0), c.value(1, d), c.value(2, d))};
}
Results masked_fill(Call& c) {
    Ref x = c.tensor(0);
    return {c.where(mask(c, 1), c.value(2, x->dtype), x)};
}

Results to_copy(Call& c) { return {c.cast(c.tensor(0), c.out[0].dtype)}; }
// What a copy into a tensor leaves there.
Results copy(Call& c) { return {c.expand(c.cast(c.tensor(1), c.tensor(0)->dtype), c.tensor(0)->shape)}; }
Results fill(Call& c) { return {c.expand(c.value(1, c.tensor(0)->dtype), c.tensor(0)->shape)}; }
Results zero(Call& c) { return {c.expand(c.number(0, c.tensor(0)), c.tensor(0)->shape)}; }

constexpr Row kRules[] = {
    {"aten::eq.Tensor", rule<comparison<op_eq>>},
    {"aten::eq.Scalar", rule<comparison<op_eq>>},
    {"aten::ne.Tensor", rule<comparison<op_ne>>},
    {"aten::ne.Scalar", rule<comparison<op_ne>>},
    {"aten::lt.Tensor", rule<comparison<op_lt>>},
    {"aten::lt.Scalar", rule<comparison<op_lt>>},
    {"aten::le.Tensor", rule<comparison<op_le>>},
    {"aten::le.Scalar", rule<comparison<op_le>>},
    {"aten::gt.Tensor", rule<comparison<op_gt>>},
    {"aten::gt.Scalar", rule<comparison<op_gt>>},
    {"aten::ge.Tensor", rule<comparison<op_ge>>},
    {"aten::ge.Scalar", rule<comparison<op_ge>>},
    {"aten::bitwise_and.Tensor", rule<bitwise<op_bit_and>>},
    {"aten::bitwise_and.Scalar", rule<bitwise<op_bit_and>>},
    {"aten::bitwise_or.Tensor", rule<bitwise<op_bit_or>>},
    {"aten::bitwise_or.Scalar", rule<bitwise<op_bit_or>>},
    {"aten::bitwise_xor.Tensor", rule<bitwise<op_bit_xor>>},
    {"aten::bitwise_xor.Scalar", rule<bitwise<op_bit_xor>>},
    {"aten::bitwise_not", rule<bitwise_not>},
    {"aten::bitwise_left_shift.Tensor", rule<shift<op_shift_left>>},
    {"aten::bitwise_left_shift.Tensor_Scalar", rule<shift<op_shift_left>>},
    {"aten::bitwise_right_shift.Tensor", rule<shift<op_shift_right>>},
    {"aten::bitwise_right_shift.Tensor_Scalar", rule<shift<op_shift_right>>},
    {"aten::__lshift__.Scalar", rule<shift<op_shift_left>>},
    {"aten::__lshift__.Tensor", rule<shift<op_shift_left>>},
    {"aten::__rshift__.Scalar", rule<shift<op_shift_right>>},
    {"aten::__rshift__.Tensor", rule<shift<op_shift_right>>},
    {"aten::logical_and", rule<logical<op_bit_and>>},
    {"aten::logical_or", rule<logical<op_bit_or>>},
    {"aten::logical_xor", rule<logical<op_bit_xor>>},
    {"aten::logical_not", rule<logical_not>},
    {"aten::isnan", rule<isnan>},
    {"aten::isinf", rule<isinf>},
    {"aten::isfinite", rule<isfinite>},
    {"aten::isposinf", rule<is_signed_infinity<1>>},
    {"aten::isneginf", rule<is_signed_infinity<-1>>},
    {"aten::where.self", rule<where>},
    {"aten::where.ScalarSelf", rule<where>},
    {"aten::where.ScalarOther", rule<where>},
    {"aten::where.Scalar", rule<where>},
    {"aten::masked_fill.Scalar", rule<masked_fill>},
    {"aten::masked_fill.Tensor", rule<masked_fill>},
    {"aten::_to_copy", rule<to_copy>},
    {"aten::copy", rule<copy>},
    {"aten::fill.Scalar", rule<fill>},
    {"aten::fill.Tensor", rule<fill>},
    {"aten::zero", rule<zero>},
};

}  // namespace

std::span<const Row> logic_rules() { return kRules; }

}  // namespace framejit::aten
