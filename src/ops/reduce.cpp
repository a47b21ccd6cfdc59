// Reductions over dimension at.i[0], which stays with extent 1. Accumulators are tuples: argmax keeps (value, index).
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
Val larger(Emitter& e, Val a, Val b) { return is_float(a.ty) ? e.nan_of(a, e.max2(a, b)) : e.max2(a, b); }
Val is_nan(Emitter& e, Val x) { return is_float(x.ty) ? e.cmp(Cmp::ne, x, x) : e.integer(Ty::b1, 0); }
Val invert(Emitter& e, Val x) { return e.bit_xor(x, e.integer(Ty::b1, 1)); }

// (value, index) pairs: does `x` at `i` beat the best so far? The first NaN beats everything, then the larger value, then the lower index.
Val beats(Emitter& e, const Val* best, Val x, Val i) {
    Val first = e.cmp(Cmp::lt, i, best[1]);
    Val best_nan = is_nan(e, best[0]);
    Val x_nan = is_nan(e, x);
    Val tie = e.bit_or(e.cmp(Cmp::eq, x, best[0]), e.bit_and(x_nan, best_nan));
    Val wins = e.bit_or(e.cmp(Cmp::gt, x, best[0]), e.bit_and(x_nan, invert(e, best_nan)));
    return e.bit_or(e.bit_and(wins, invert(e, best_nan)), e.bit_and(tie, first));
}
void take_best(Emitter& e, Val* acc, Val x, Val i) {
    Val better = beats(e, acc, x, i);
    acc[0] = e.select(better, x, acc[0]);
    acc[1] = e.select(better, i, acc[1]);
}
Val only(Emitter&, const Val* acc, const Node&) { return acc[0]; }
}  // namespace

const OpDef op_sum = {.name = "sum",
                      .doc = "ints: dim",
                      .dtype = first,
                      .shape = keepdim,
                      .body = Reduce{1, [](Emitter& e, Ty t, Val* s) { s[0] = e.constant(t, 0); },
                                     [](Emitter& e, Val* s, Val x, Val) { s[0] = e.add(s[0], x); },
                                     [](Emitter& e, Val* s, const Val* o) { s[0] = e.add(s[0], o[0]); }, only},
                      .samples = rows,
                      .vjp = GRAD({b.expand(dy, in[0]->shape)})};
const OpDef op_amax = {.name = "amax",
                       .doc = "the largest; NaN wins. ints: dim",
                       .dtype = first,
                       .shape = keepdim,
                       .body = Reduce{1, [](Emitter& e, Ty t, Val* s) { s[0] = lowest(e, t); },
                                      [](Emitter& e, Val* s, Val x, Val) { s[0] = larger(e, s[0], x); },
                                      [](Emitter& e, Val* s, const Val* o) { s[0] = larger(e, s[0], o[0]); }, only},
                       .samples = rows,
                       .vjp = GRAD({[&] {
                           Ref hit = b.cast(b("eq", {in[0], out}), dy->dtype);
                           return b.mul(hit, b.div(dy, b.sum(hit, n.at.i[0])));
                       }()})};
const OpDef op_argmax = {
    .name = "argmax",
    .doc = "index of the first largest; NaN is largest. ints: dim",
    .dtype = int64,
    .shape = keepdim,
    .body = Reduce{2, [](Emitter& e, Ty t, Val* s) { s[0] = lowest(e, t), s[1] = e.integer(Ty::i64, std::numeric_limits<int64_t>::max()); },
                   take_best, [](Emitter& e, Val* s, const Val* o) { take_best(e, s, o[0], o[1]); },
                   [](Emitter&, const Val* s, const Node&) { return s[1]; }, true},
    .samples = rows};

}  // namespace framejit
