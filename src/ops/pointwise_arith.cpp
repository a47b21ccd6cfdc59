// Arithmetic and selection.
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
}  // namespace

const OpDef op_add = {.name = "add",
                      .doc = "x + y",
                      .dtype = common,
                      .shape = same,
                      .body = EMIT(0.02, e.add(a[0], a[1])),
                      .samples = binary,
                      .vjp = GRAD({dy, dy})};
const OpDef op_sub = {.name = "sub",
                      .doc = "x - y",
                      .dtype = common,
                      .shape = same,
                      .body = EMIT(0.02, e.sub(a[0], a[1])),
                      .samples = binary,
                      .vjp = GRAD({dy, b.neg(dy)})};
const OpDef op_mul = {.name = "mul",
                      .doc = "x * y",
                      .dtype = common,
                      .shape = same,
                      .body = EMIT(0.02, e.mul(a[0], a[1])),
                      .samples = binary,
                      .vjp = GRAD({b.mul(dy, in[1]), b.mul(dy, in[0])})};
const OpDef op_div = {.name = "div",
                      .doc = "x / y, true division",
                      .dtype = floating,
                      .shape = same,
                      .body = EMIT(0.05, e.div(a[0], a[1])),
                      .samples = binary,
                      .vjp = GRAD({b.div(dy, in[1]), b.neg(b.div(b.mul(dy, out), in[1]))})};
const OpDef op_maximum = {.name = "maximum",
                          .doc = "the larger of two; NaN wins",
                          .dtype = common,
                          .shape = same,
                          .body = EMIT(0.02, e.nan_of(a[0], e.max2(a[0], a[1]))),
                          .samples = binary,
                          .vjp = GRAD(extremum_grad(b, in, dy, "lt", "gt"))};
const OpDef op_minimum = {.name = "minimum",
                          .doc = "the smaller of two; NaN wins",
                          .dtype = common,
                          .shape = same,
                          .body = EMIT(0.02, e.nan_of(a[0], e.min2(a[0], a[1]))),
                          .samples = binary,
                          .vjp = GRAD(extremum_grad(b, in, dy, "gt", "lt"))};
const OpDef op_neg = {
    .name = "neg", .doc = "-x", .dtype = first, .shape = same, .body = EMIT(0.02, e.neg(a[0])), .samples = unary, .vjp = GRAD({b.neg(dy)})};
const OpDef op_abs = {.name = "abs",
                      .doc = "|x|",
                      .dtype = first,
                      .shape = same,
                      .body = EMIT(0.02, e.abs(a[0])),
                      .samples = unary,
                      .vjp = GRAD({b.mul(dy, b.where(b("lt", {in[0], b.number(0, in[0])}), b.number(-1, dy), b.number(1, dy)))})};
const OpDef op_relu = {.name = "relu",
                       .doc = "max(x, 0); NaN stays",
                       .dtype = first,
                       .shape = same,
                       .body = EMIT(0.02, e.max2(e.like(a[0], 0), a[0])),
                       .samples = unary,
                       .vjp = GRAD({b.where(b("le", {out, b.number(0, out)}), b.number(0, dy), dy)})};
const OpDef op_where = {.name = "where",
                        .doc = "condition ? x : y",
                        .dtype = second,
                        .shape = same,
                        .body = EMIT(0.02, e.select(a[0], a[1], a[2])),
                        .samples = none,
                        .vjp = GRAD({nullptr, b.where(in[0], dy, b.number(0, dy)), b.where(in[0], b.number(0, dy), dy)})};
// The driver narrows after every op, so a cast is only a change of register type.
const OpDef op_cast = {.name = "cast",
                       .doc = "to another dtype. ints: the dtype",
                       .dtype = attr0,
                       .shape = same,
                       .body = EMIT(0.02, e.cast(a[0], reg(n.dtype))),
                       .samples =
                           [] {
                               auto to = [](DType from, DType to) { return Sample{{{from, {3, 37}}}, {{int64_t(to)}, {}}}; };
                               return std::vector<Sample>{to(DType::f32, DType::bf16), to(DType::bf16, DType::f32),
                                                          to(DType::f32, DType::i64), to(DType::f32, DType::f16),
                                                          to(DType::i64, DType::u8)};
                           },
                       .vjp = GRAD({b.cast(dy, in[0]->dtype)})};

}  // namespace framejit
