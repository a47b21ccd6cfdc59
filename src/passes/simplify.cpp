// Exact algebra, rule by rule: every rewrite keeps every bit of the result, for NaN, infinities and both zeros.
// Not here because not exact: x + 0 (turns -0 into 0), x * 0 (NaN), x - x, a sum over one element (-0), reassociation of floats.
// Each rule looks at one node, whose operands are already simple, and answers with a simpler value or nothing.
#include <algorithm>
#include <cmath>

#include "src/ir/scalar_emitter.h"
#include "src/ops/rules.h"
#include "src/passes/passes.h"
#include "src/passes/rebuild.h"

namespace framejit {
namespace {

using rules::Build;

bool is(Ref n, const OpDef& op) { return n->op == &op; }

// The number that every element is, if that is known: a constant, or one that was only spread.
Ref uniform(Ref n) {
    while (is(n, op_expand) || is(n, op_view)) n = n->in[0];
    return is(n, op_constant) ? n : nullptr;
}
bool is_number(Ref n, double v) {
    Ref c = uniform(n);
    if (!c) return false;
    if (is_float(c->dtype)) return c->at.f[0] == v && std::signbit(c->at.f[0]) == std::signbit(v);
    return c->at.i[0] == int64_t(v);
}

// ---- index ops ----

// view(view(x)) = view(x); view(x) = x of the same shape
Ref view(Build b, Ref n) {
    if (!is(n, op_view)) return nullptr;
    Ref x = n->in[0];
    if (x->shape == n->shape) return x;
    return is(x, op_view) ? b.view(x->in[0], n->shape) : nullptr;
}
// expand(expand(x)) = expand(x); expand(x) = x of the same shape
Ref expand(Build b, Ref n) {
    if (!is(n, op_expand)) return nullptr;
    Ref x = n->in[0];
    if (x->shape == n->shape) return x;
    return is(x, op_expand) ? b.expand(x->in[0], n->shape) : nullptr;
}
// transpose(transpose(x, p), q) = transpose(x, p[q])
Ref transpose(Build b, Ref n) {
    if (!is(n, op_transpose)) return nullptr;
    if (std::is_sorted(n->at.i.begin(), n->at.i.end())) return n->in[0];
    if (!is(n->in[0], op_transpose)) return nullptr;
    std::vector<int64_t> order;
    for (int64_t d : n->at.i) order.push_back(n->in[0]->at.i[d]);
    return b.transpose(n->in[0]->in[0], order);
}
// x[a::s][b::t] = x[a + b s::s t]; a slice of everything is x
Ref slice(Build b, Ref n) {
    if (!is(n, op_slice)) return nullptr;
    Ref x = n->in[0];
    const auto& outer = n->at.i;
    if (outer[1] == 0 && outer[2] == x->shape[outer[0]] && outer[3] == 1) return x;
    if (!is(x, op_slice) || x->at.i[0] != outer[0]) return nullptr;
    const auto& inner = x->at.i;
    return b.slice(x->in[0], outer[0], inner[1] + outer[1] * inner[3], outer[2], outer[3] * inner[3]);
}
// Where all elements are one number, it does not matter which are read.
Ref index_of_number(Build b, Ref n) {
    constexpr const OpDef* kMovers[] = {&op_view, &op_transpose, &op_slice, &op_window, &op_diagonal, &op_unfold, &op_as_strided};
    if (std::find(std::begin(kMovers), std::end(kMovers), n->op) == std::end(kMovers)) return nullptr;
    Ref c = uniform(n->in[0]);
    return c ? b.expand(c, n->shape) : nullptr;
}

// ---- casts ----

bool keeps_every_value(DType from, DType to) {
    auto digits = [](DType d) {
        switch (d) {
        case DType::b1: return 1;
        case DType::u8: return 8;
        case DType::i8: return 7;
        case DType::i16: return 15;
        case DType::i32: return 31;
        case DType::i64: return 63;
        case DType::bf16: return 8;
        case DType::f16: return 11;
        case DType::f32: return 24;
        default: return 53;
        }
    };
    if (from == to) return true;
    if (is_float(from)) return is_float(to) && size_of(to) > size_of(from);
    if (to == DType::b1 || (to == DType::u8 && from != DType::b1)) return false;
    return digits(from) <= digits(to);
}
// cast(cast(x)) = cast(x) when the inner one loses nothing; cast to the same dtype = x
Ref cast(Build b, Ref n) {
    if (!is(n, op_cast)) return nullptr;
    Ref x = n->in[0];
    if (x->dtype == n->dtype) return x;
    if (!is(x, op_cast) || !keeps_every_value(x->in[0]->dtype, x->dtype)) return nullptr;
    return b.cast(x->in[0], n->dtype);
}

// ---- arithmetic ----

// x * 1 = x / 1 = x; x - 0 = x; x + -0 = x, for integers x + 0 = x
Ref neutral(Build, Ref n) {
    if (n->in.size() != 2) return nullptr;
    const double zero = is_float(n->dtype) ? -0.0 : 0.0;
    Ref x = n->in[0], y = n->in[1];
    if (is(n, op_mul)) return is_number(y, 1) ? x : is_number(x, 1) ? y : nullptr;
    if (is(n, op_div)) return is_number(y, 1) ? x : nullptr;
    if (is(n, op_sub)) return is_number(y, 0) ? x : nullptr;
    if (is(n, op_add)) return is_number(y, zero) ? x : is_number(x, zero) ? y : nullptr;
    return nullptr;
}
// --x = x; ~~x = x; ||x|| = |x|; |-x| = |x|
Ref twice(Build b, Ref n) {
    if (n->in.size() != 1) return nullptr;
    Ref x = n->in[0];
    if ((is(n, op_neg) && is(x, op_neg)) || (is(n, op_bit_not) && is(x, op_bit_not))) return x->in[0];
    if (is(n, op_abs) && is(x, op_abs)) return x;
    if (is(n, op_abs) && is(x, op_neg)) return b("abs", {x->in[0]});
    return nullptr;
}
// x & true = x; x & false = false; x | false = x; x | true = true; x & x = x | x = x
Ref truth(Build, Ref n) {
    if (n->dtype != DType::b1 || (!is(n, op_bit_and) && !is(n, op_bit_or))) return nullptr;
    if (n->in[0] == n->in[1]) return n->in[0];
    const double neutral = is(n, op_bit_and);
    for (int k : {0, 1}) {
        if (is_number(n->in[k], neutral)) return n->in[1 - k];
        if (is_number(n->in[k], 1 - neutral)) return n->in[k];
    }
    return nullptr;
}
// where(true, x, y) = x; where(false, x, y) = y; where(m, x, x) = x
Ref where(Build, Ref n) {
    if (!is(n, op_where)) return nullptr;
    if (n->in[1] == n->in[2]) return n->in[1];
    return is_number(n->in[0], 1) ? n->in[1] : is_number(n->in[0], 0) ? n->in[2] : nullptr;
}

// A pointwise op of numbers is a number: computed by the oracle.
Ref fold(Build b, Ref n) {
    auto* p = n->op->as<Pointwise>();
    if (!p || n->in.empty() || !std::all_of(n->in.begin(), n->in.end(), uniform)) return nullptr;
    ScalarEmitter e;
    std::vector<Val> operands;
    for (Ref x : n->in) {
        Ref c = uniform(x);
        operands.push_back(is_float(c->dtype) ? e.constant(reg(c->dtype), c->at.f[0]) : e.integer(reg(c->dtype), c->at.i[0]));
    }
    const Val v = e.narrow(p->emit(e, operands, *n), n->dtype);
    return b.expand(is_float(n->dtype) ? b.g.scalar(v.f, n->dtype) : b.g.integer(v.i, n->dtype), n->shape);
}

constexpr Ref (*kRules[])(Build, Ref) = {view, expand, transpose, slice, index_of_number, cast, neutral, twice, truth, where, fold};

Ref simplest(Build b, Ref n) {
    for (bool again = true; again;) {
        again = false;
        for (auto rule : kRules) {
            Ref simpler = rule(b, n);
            if (!simpler) continue;
            n = simpler;
            again = true;
        }
    }
    return n;
}

}  // namespace

Graph simplify(const Graph& g) {
    Graph r = rebuild(g, [](Graph& to, const Node& n, std::span<const Ref> in) -> Ref {
        return simplest(Build{to}, to.make(*n.op, {in.begin(), in.end()}, n.at, n.dtype, n.shape));
    });
    return dead_code(r);
}

}  // namespace framejit
