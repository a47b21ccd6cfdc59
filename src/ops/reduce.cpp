// Reductions over dimension at.i[0], which stays with extent 1. Accumulators are tuples: argmax keeps (value, index).
// A reduction over several dimensions is one over a merged dimension, or several in a row (see Build::reduce).
#include <limits>

#include "src/ops/rules.h"

namespace framejit {
using namespace rules;

namespace {
constexpr double kInf = std::numeric_limits<double>::infinity();

Val lowest(Emitter& e, Ty t) {
    if (is_float(t)) return e.constant(t, -kInf);
    return e.integer(t, t == Ty::b1 ? 0 : t == Ty::i32 ? std::numeric_limits<int32_t>::min() : std::numeric_limits<int64_t>::min());
}
Val highest(Emitter& e, Ty t) {
    if (is_float(t)) return e.constant(t, kInf);
    return e.integer(t, t == Ty::b1 ? 1 : t == Ty::i32 ? std::numeric_limits<int32_t>::max() : std::numeric_limits<int64_t>::max());
}
Val larger(Emitter& e, Val a, Val b) { return is_float(a.ty) ? e.nan_of(a, e.max2(a, b)) : e.max2(a, b); }
Val smaller(Emitter& e, Val a, Val b) { return is_float(a.ty) ? e.nan_of(a, e.min2(a, b)) : e.min2(a, b); }
Val is_nan(Emitter& e, Val x) { return is_float(x.ty) ? e.cmp(Cmp::ne, x, x) : e.integer(Ty::b1, 0); }
Val invert(Emitter& e, Val x) { return e.bit_xor(x, e.integer(Ty::b1, 1)); }
Val only(Emitter&, const Val* acc, const Node&) { return acc[0]; }

// One accumulator that combines with elements as with other accumulators.
template <Val (*neutral)(Emitter&, Ty), Val (*combine)(Emitter&, Val, Val)> constexpr Reduce fold() {
    return {1, [](Emitter& e, Ty t, Val* acc) { acc[0] = neutral(e, t); },
            [](Emitter& e, Val* acc, Val x, Val) { acc[0] = combine(e, acc[0], x); },
            [](Emitter& e, Val* acc, const Val* other) { acc[0] = combine(e, acc[0], other[0]); }, only};
}
Val zero(Emitter& e, Ty t) { return e.constant(t, 0); }
Val one(Emitter& e, Ty t) { return e.constant(t, 1); }
Val add(Emitter& e, Val a, Val b) { return e.add(a, b); }
Val mul(Emitter& e, Val a, Val b) { return e.mul(a, b); }
constexpr Reduce total() {
    Reduce r = fold<zero, add>();
    r.step = [](Emitter& e, Val* acc, Val x, Val) { acc[0] = e.accumulate(acc[0], x); };
    return r;
}
Val either(Emitter& e, Val a, Val b) { return e.bit_or(a, b); }
Val both(Emitter& e, Val a, Val b) { return e.bit_and(a, b); }

// (value, index) pairs: does `x` at `i` beat the best so far? The first NaN beats everything, then the better value, then the lower index.
template <Cmp better> Val beats(Emitter& e, const Val* best, Val x, Val i) {
    Val first = e.cmp(Cmp::lt, i, best[1]);
    Val best_nan = is_nan(e, best[0]), x_nan = is_nan(e, x);
    Val tie = e.bit_or(e.cmp(Cmp::eq, x, best[0]), e.bit_and(x_nan, best_nan));
    Val wins = e.bit_or(e.cmp(better, x, best[0]), x_nan);
    return e.bit_or(e.bit_and(wins, invert(e, best_nan)), e.bit_and(tie, first));
}
template <Cmp better> void take(Emitter& e, Val* acc, Val x, Val i) {
    Val wins = beats<better>(e, acc, x, i);
    acc[0] = e.select(wins, x, acc[0]);
    acc[1] = e.select(wins, i, acc[1]);
}
template <Val (*worst)(Emitter&, Ty), Cmp better> constexpr Reduce arg() {
    return {2,
            [](Emitter& e, Ty t, Val* acc) {
                acc[0] = worst(e, t);
                acc[1] = e.integer(Ty::i64, std::numeric_limits<int64_t>::max());
            },
            take<better>,
            [](Emitter& e, Val* acc, const Val* other) { take<better>(e, acc, other[0], other[1]); },
            [](Emitter&, const Val* acc, const Node&) { return acc[1]; },
            true};
}

// The elements that are the extremum share its gradient.
Ref extremum_grad(Build b, const Node& n, Ref x, Ref out, Ref dy) {
    Ref hit = b.cast(b("eq", {x, out}), dy->dtype);
    return b.mul(hit, b.div(dy, b.sum(hit, n.at.i[0])));
}

std::vector<Sample> numbers() {
    std::vector<Sample> out = rows();
    out.push_back({{{DType::i64, {5, 6, 7}}}, {{1}, {}}});
    out.push_back({{{DType::f64, {6, 7}}}, {{0}, {}}});
    return out;
}
std::vector<Sample> truths() { return {{{{DType::b1, {5, 3}}}, {{1}, {}}, 0, 2}, {{{DType::b1, {4, 50}}}, {{0}, {}}, 0, 2}}; }
}  // namespace

#define REDUCE(word, text, type, values, how, ...)                                                                                         \
    const OpDef op_##word = {.name = #word,                                                                                                \
                             .doc = text,                                                                                                  \
                             .dtype = type,                                                                                                \
                             .shape = keepdim,                                                                                             \
                             .body = how,                                                                                                  \
                             .samples = values __VA_OPT__(, .vjp = GRAD(__VA_ARGS__))};

REDUCE(sum, "ints: dim", first, numbers, total(), {b.expand(dy, in[0]->shape)})
REDUCE(prod, "ints: dim", first, numbers, (fold<one, mul>()))
REDUCE(amax, "the largest; NaN wins. ints: dim", first, numbers, (fold<lowest, larger>()), {extremum_grad(b, n, in[0], out, dy)})
REDUCE(amin, "the smallest; NaN wins. ints: dim", first, numbers, (fold<highest, smaller>()), {extremum_grad(b, n, in[0], out, dy)})
REDUCE(any, "is one true? ints: dim", integral, truths, (fold<zero, either>()))
REDUCE(all, "are all true? ints: dim", integral, truths, (fold<one, both>()))
REDUCE(argmax, "index of the first largest; NaN is largest. ints: dim", int64, numbers, (arg<lowest, Cmp::gt>()))
REDUCE(argmin, "index of the first smallest; NaN is smallest. ints: dim", int64, numbers, (arg<highest, Cmp::lt>()))
#undef REDUCE

}  // namespace framejit
