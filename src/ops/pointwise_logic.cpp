// Comparisons and bits. Comparisons are false for NaN, except ne. Logic on booleans is bit logic; other dtypes are cast to b1 first.
#include "src/ops/rules.h"

namespace framejit {
using namespace rules;

namespace {
// Registers of one bit have no order that C would recognise: true must be above false.
Val compare(Emitter& e, Cmp how, Val x, Val y) {
    if (x.ty == Ty::b1) return e.cmp(how, e.cast(x, Ty::i32), e.cast(y, Ty::i32));
    return e.cmp(how, x, y);
}
int bits_of(const Node& n) { return 8 * size_of(n.dtype); }
Val out_of_width(Emitter& e, Val count, const Node& n) {
    return e.bit_or(e.cmp(Cmp::lt, count, e.integer(count.ty, 0)), e.cmp(Cmp::ge, count, e.integer(count.ty, bits_of(n))));
}
Val shift_left(Emitter& e, Val x, Val count, const Node& n) {
    Val zero = e.integer(x.ty, 0);
    Val bad = out_of_width(e, count, n);
    return e.select(bad, zero, e.shl(x, e.select(bad, zero, count)));
}
Val shift_right(Emitter& e, Val x, Val count, const Node& n) {  // too far: all sign bits, which is 0 for u8
    Val last = e.integer(x.ty, n.dtype == DType::u8 ? bits_of(n) : bits_of(n) - 1);
    return e.shr(x, e.select(out_of_width(e, count, n), last, count));
}
Val invert(Emitter& e, Val x) { return e.bit_xor(x, e.integer(x.ty, x.ty == Ty::b1 ? 1 : -1)); }

std::vector<Sample> comparisons() {
    return {{{{DType::f32, {3, 37}}, {DType::f32, {37}}}},
            {{{DType::bf16, {2, 5, 16}}, {DType::bf16, {5, 1}}}},
            {{{DType::i64, {40}}, {DType::i64, {}}}},
            {{{DType::b1, {40}}, {DType::b1, {40}}}},
            {{{DType::u8, {40}}, {DType::u8, {40}}}, {}, 0, 200}};
}
std::vector<Sample> bits() {
    return {{{{DType::i64, {40}}, {DType::i64, {}}}, {}, -9, 9},
            {{{DType::b1, {3, 7}}, {DType::b1, {7}}}},
            {{{DType::u8, {40}}, {DType::u8, {40}}}, {}, 0, 200}};
}
std::vector<Sample> one_of_bits() {
    return {{{{DType::i64, {40}}}, {}, -9, 9}, {{{DType::b1, {3, 7}}}}, {{{DType::u8, {40}}}, {}, 0, 200}};
}
std::vector<Sample> shifts() {
    return {{{{DType::i64, {40}}, {DType::i64, {40}}}, {}, 0, 70},
            {{{DType::i32, {40}}, {DType::i32, {}}}, {}, -2, 9},
            {{{DType::u8, {40}}, {DType::u8, {40}}}, {}, 0, 10}};
}
}  // namespace

#define LOGIC(word, text, type, values, expr)                                                                                              \
    const OpDef op_##word = {.name = #word, .doc = text, .dtype = type, .shape = same, .body = EMIT(0.02, expr), .samples = values};

LOGIC(lt, "x < y", boolean, comparisons, compare(e, Cmp::lt, a[0], a[1]))
LOGIC(le, "x <= y", boolean, comparisons, compare(e, Cmp::le, a[0], a[1]))
LOGIC(gt, "x > y", boolean, comparisons, compare(e, Cmp::gt, a[0], a[1]))
LOGIC(ge, "x >= y", boolean, comparisons, compare(e, Cmp::ge, a[0], a[1]))
LOGIC(eq, "x == y", boolean, comparisons, compare(e, Cmp::eq, a[0], a[1]))
LOGIC(ne, "x != y; true for NaN", boolean, comparisons, compare(e, Cmp::ne, a[0], a[1]))
LOGIC(bit_and, "x & y", integral, bits, e.bit_and(a[0], a[1]))
LOGIC(bit_or, "x | y", integral, bits, e.bit_or(a[0], a[1]))
LOGIC(bit_xor, "x ^ y", integral, bits, e.bit_xor(a[0], a[1]))
LOGIC(bit_not, "~x", integral, one_of_bits, invert(e, a[0]))
LOGIC(shift_left, "x << y; 0 when y is not a width", integral, shifts, shift_left(e, a[0], a[1], n))
LOGIC(shift_right, "x >> y, arithmetic; all sign bits when y is not a width", integral, shifts, shift_right(e, a[0], a[1], n))
#undef LOGIC

}  // namespace framejit
