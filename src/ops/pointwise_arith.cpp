// Arithmetic, selection and rounding. Operands have one dtype: promotion is done when a recorded operator is lowered.
// Integers wrap at their width because the driver narrows after every op. Divisors of integer ops are never 0: see aten_arith.cpp.
#include "src/ops/mathlib.h"
#include "src/ops/rules.h"

namespace framejit {
using namespace rules;

namespace {
// Ties share the gradient; `loses` is the comparison that says that the operand is not the one taken (false for NaN).
std::vector<Ref> extremum_grad(Build b, In in, Ref dy, std::string_view first_loses, std::string_view second_loses) {
    Ref half = b.mul(dy, 0.5);
    Ref zero = b.number(0, dy);
    Ref tie = b("eq", {in[0], in[1]});
    auto side = [&](std::string_view loses) { return b.where(tie, half, b.where(b(loses, {in[0], in[1]}), zero, dy)); };
    return {side(first_loses), side(second_loses)};
}
Val sign(Emitter& e, Val x) {  // NaN gives 0, as eager
    Val zero = e.like(x, 0);
    return e.select(e.cmp(Cmp::gt, x, zero), e.like(x, 1), e.select(e.cmp(Cmp::lt, x, zero), e.like(x, -1), zero));
}
// Is the remainder of another sign than the divisor, so that rounding down differs from truncation?
Val rounds_apart(Emitter& e, Val rem, Val y) {
    Val zero = e.like(y, 0);
    Val differ = e.bit_xor(e.cmp(Cmp::lt, rem, zero), e.cmp(Cmp::lt, y, zero));
    return e.bit_and(e.cmp(Cmp::ne, rem, zero), differ);
}
Val truncated_mod(Emitter& e, Val x, Val y) { return is_float(x.ty) ? mathlib::remainder(e, x, y) : e.rem(x, y); }
Val floored_mod(Emitter& e, Val x, Val y) {
    Val rem = truncated_mod(e, x, y);
    return e.select(rounds_apart(e, rem, y), e.add(rem, y), rem);
}
// CPython's float floor division, as eager: exact remainder first, then one division.
Val floored_div(Emitter& e, Val x, Val y) {
    Val rem = truncated_mod(e, x, y);
    Val apart = rounds_apart(e, rem, y);
    if (!is_float(x.ty)) return e.select(apart, e.sub(e.div(x, y), e.like(x, 1)), e.div(x, y));
    Val one = e.like(x, 1), zero = e.like(x, 0);
    Val q = e.div(e.sub(x, rem), y);
    q = e.select(apart, e.sub(q, one), q);
    Val whole = e.floor(q);
    whole = e.select(e.cmp(Cmp::gt, e.sub(q, whole), e.like(x, 0.5)), e.add(whole, one), whole);
    Val ratio = e.div(x, y);
    whole = e.select(e.cmp(Cmp::eq, q, zero), e.copysign(zero, ratio), whole);
    return e.select(e.cmp(Cmp::eq, y, zero), ratio, whole);
}
Val truncated_div(Emitter& e, Val x, Val y) { return is_float(x.ty) ? e.trunc(e.div(x, y)) : e.div(x, y); }

std::vector<Sample> integral_divisors() {
    return {{{{DType::i64, {40}}, {DType::i64, {}}}, {}, 1, 9},
            {{{DType::f32, {3, 37}}, {DType::f32, {37}}}},
            {{{DType::f64, {9}}, {DType::f64, {9}}}},
            {{{DType::i32, {40}}, {DType::i32, {40}}}, {}, 1, 9}};
}
std::vector<Sample> floats() { return {{{{DType::f32, {3, 37}}}}, {{{DType::bf16, {5, 16}}}}, {{{DType::f64, {9}}}}}; }
std::vector<Sample> numbers() {
    return {{{{DType::f32, {3, 37}}}}, {{{DType::i64, {40}}}}, {{{DType::i8, {40}}}}, {{{DType::bf16, {5, 16}}}}};
}
std::vector<Sample> triples() {
    return {{{{DType::f32, {3, 37}}, {DType::f32, {37}}, {DType::f32, {}}}}, {{{DType::f64, {9}}, {DType::f64, {9}}, {DType::f64, {9}}}}};
}
std::vector<Sample> selections() {
    return {{{{DType::b1, {3, 37}}, {DType::f32, {37}}, {DType::f32, {3, 1}}}}, {{{DType::b1, {9}}, {DType::i64, {9}}, {DType::i64, {}}}}};
}
std::vector<Sample> casts() {
    std::vector<Sample> out;
    for (auto [from, to] : {std::pair{DType::f32, DType::bf16},
                            {DType::bf16, DType::f32},
                            {DType::f32, DType::i64},
                            {DType::f32, DType::f16},
                            {DType::i64, DType::u8},
                            {DType::f64, DType::i32},
                            {DType::b1, DType::f32},
                            {DType::i16, DType::b1},
                            {DType::f32, DType::f64}})
        out.push_back({{{from, {3, 37}}}, {{int64_t(to)}, {}}});
    return out;
}
}  // namespace

#define ARITH(word, cost, text, type, values, expr, ...)                                                                                   \
    const OpDef op_##word = {.name = #word,                                                                                                \
                             .doc = text,                                                                                                  \
                             .dtype = type,                                                                                                \
                             .shape = same,                                                                                                \
                             .body = EMIT(cost, expr),                                                                                     \
                             .samples = values __VA_OPT__(, .vjp = GRAD(__VA_ARGS__))};

ARITH(add, 0.02, "x + y", common, binary, e.add(a[0], a[1]), {dy, dy})
ARITH(sub, 0.02, "x - y", common, binary, e.sub(a[0], a[1]), {dy, b.neg(dy)})
ARITH(mul, 0.02, "x * y", common, binary, e.mul(a[0], a[1]), {b.mul(dy, in[1]), b.mul(dy, in[0])})
ARITH(div, 0.05, "x / y, true division", floating, binary, e.div(a[0], a[1]), {b.div(dy, in[1]), b.neg(b.div(b.mul(dy, out), in[1]))})
ARITH(fma, 0.02, "x * y + z, rounded once", floating, triples, e.fma(a[0], a[1], a[2]), {b.mul(dy, in[1]), b.mul(dy, in[0]), dy})
ARITH(div_trunc, 0.1, "x / y rounded towards 0", common, integral_divisors, truncated_div(e, a[0], a[1]), {b.zeros(dy), b.zeros(dy)})
ARITH(div_floor, 0.5, "x / y rounded down", common, integral_divisors, floored_div(e, a[0], a[1]), {b.zeros(dy), b.zeros(dy)})
ARITH(fmod, 0.3, "remainder with the sign of x", common, integral_divisors, truncated_mod(e, a[0], a[1]),
      {dy, b.neg(b.mul(dy, b("div_trunc", {in[0], in[1]})))})
ARITH(mod, 0.3, "remainder with the sign of y", common, integral_divisors, floored_mod(e, a[0], a[1]),
      {dy, b.neg(b.mul(dy, b("div_floor", {in[0], in[1]})))})
ARITH(maximum, 0.02, "the larger of two; NaN wins", common, binary, e.nan_of(a[0], e.max2(a[0], a[1])),
      extremum_grad(b, in, dy, "lt", "gt"))
ARITH(minimum, 0.02, "the smaller of two; NaN wins", common, binary, e.nan_of(a[0], e.min2(a[0], a[1])),
      extremum_grad(b, in, dy, "gt", "lt"))
ARITH(neg, 0.02, "-x", first, numbers, e.neg(a[0]), {b.neg(dy)})
ARITH(abs, 0.02, "|x|", first, numbers, e.abs(a[0]), {b.mul(dy, b("sign", {in[0]}))})
ARITH(sign, 0.04, "-1, 0 or 1", first, numbers, sign(e, a[0]), {b.zeros(dy)})
ARITH(copysign, 0.02, "|x| with the sign of y", floating, binary, e.copysign(a[0], a[1]),
      {b.mul(dy, b.mul(b("sign", {in[0]}), b("sign", {out}))), b.zeros(dy)})
ARITH(floor, 0.02, "the largest integer not above x", floating, floats, e.floor(a[0]), {b.zeros(dy)})
ARITH(ceil, 0.02, "the smallest integer not below x", floating, floats, e.ceil(a[0]), {b.zeros(dy)})
ARITH(trunc, 0.02, "x without its fraction", floating, floats, e.trunc(a[0]), {b.zeros(dy)})
ARITH(round, 0.02, "to the nearest integer, ties to even", floating, floats, e.round(a[0]), {b.zeros(dy)})
ARITH(relu, 0.02, "max(x, 0); NaN stays", first, numbers, e.max2(e.like(a[0], 0), a[0]),
      {b.where(b("le", {out, b.number(0, out)}), b.number(0, dy), dy)})
ARITH(where, 0.02, "condition ? x : y", second, selections, e.select(a[0], a[1], a[2]),
      {nullptr, b.where(in[0], dy, b.number(0, dy)), b.where(in[0], b.number(0, dy), dy)})
#undef ARITH

namespace {
// The driver narrows after every op, so a cast is a change of register type. As in eager, floats reach u8 by way of i64, i8 and i16 by i32.
Val cast_to(Emitter& e, Val x, DType to) { return e.cast(is_float(x.ty) && to == DType::u8 ? e.cast(x, Ty::i64) : x, reg(to)); }
}  // namespace
const OpDef op_cast = {.name = "cast",
                       .doc = "to another dtype. ints: the dtype",
                       .dtype = attr0,
                       .shape = same,
                       .body = EMIT(0.02, cast_to(e, a[0], n.dtype)),
                       .samples = casts,
                       .vjp = GRAD({b.cast(dy, in[0]->dtype)})};

}  // namespace framejit
