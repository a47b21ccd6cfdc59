// What op definitions share: type rules, shape rules, samples, and `Build`, the shorthand in which decompositions and VJPs are written.
#pragma once
#include "framejit/op.h"

namespace framejit::rules {

using In = std::span<const Ref>;
using Vals = std::span<const Val>;

// ---- dtype ----
inline constexpr TypeRule first = [](In in, const Attrs&, DType) { return in[0]->dtype; };
inline constexpr TypeRule second = [](In in, const Attrs&, DType) { return in[1]->dtype; };
inline constexpr TypeRule boolean = [](In, const Attrs&, DType) { return DType::b1; };
inline constexpr TypeRule int64 = [](In, const Attrs&, DType) { return DType::i64; };
inline constexpr TypeRule given = [](In, const Attrs&, DType hint) { return hint; };
inline constexpr TypeRule attr0 = [](In, const Attrs& at, DType) { return DType(at.i[0]); };
DType common(In, const Attrs&, DType);    // all operands have one dtype: promotion is the lowering's business
DType integral(In, const Attrs&, DType);  // common, and an integer or boolean dtype
DType floating(In, const Attrs&, DType);  // common, and a floating dtype

// ---- shape ----
Shape same(In, const Attrs&, const Shape&);  // all operands have one shape
inline constexpr ShapeRule first_shape = [](In in, const Attrs&, const Shape&) { return in[0]->shape; };
inline constexpr ShapeRule hinted = [](In, const Attrs&, const Shape& hint) { return hint; };
Shape keepdim(In, const Attrs&, const Shape&);  // dimension at.i[0] becomes 1

// ---- samples ----
std::vector<Sample> none();
std::vector<Sample> unary();
std::vector<Sample> positive();
std::vector<Sample> binary();
std::vector<Sample> rows();

// ---- graph shorthand ----
struct Build {
    Graph& g;
    Ref operator()(std::string_view op, std::vector<Ref> in, Attrs at = {}) { return g.op(op, std::move(in), std::move(at)); }
    Ref number(double v, Ref like) { return g.scalar(v, like->dtype); }
    Ref zeros(Ref like) { return expand(number(0, like), like->shape); }
    Ref add(Ref a, Ref b) { return g.op("add", {a, b}); }
    Ref add(Ref a, double b) { return add(a, number(b, a)); }
    Ref sub(Ref a, Ref b) { return g.op("sub", {a, b}); }
    Ref mul(Ref a, Ref b) { return g.op("mul", {a, b}); }
    Ref mul(Ref a, double b) { return mul(a, number(b, a)); }
    Ref div(Ref a, Ref b) { return g.op("div", {a, b}); }
    Ref div(Ref a, double b) { return div(a, number(b, a)); }
    Ref neg(Ref a) { return g.op("neg", {a}); }
    Ref exp(Ref a) { return g.op("exp", {a}); }
    Ref where(Ref mask, Ref a, Ref b) { return g.op("where", {mask, a, b}); }
    Ref compare(std::string_view how, Ref a, double b) { return g.op(how, {a, number(b, a)}); }
    Ref cast(Ref a, DType d) { return a->dtype == d ? a : g.op("cast", {a}, {{int64_t(d)}, {}}); }
    Ref up(Ref a) { return a->dtype == DType::bf16 || a->dtype == DType::f16 ? cast(a, DType::f32) : a; }  // what eager computes in

    Ref view(Ref a, Shape s) { return a->shape == s ? a : g.op("view", {a}, {std::move(s), {}}); }
    Ref expand(Ref a, Shape s) { return a->shape == s ? a : g.op("expand", {a}, {std::move(s), {}}); }
    Ref transpose(Ref a, std::vector<int64_t> order);  // order[d]: which dimension of a comes to d
    Ref slice(Ref a, int64_t dim, int64_t start, int64_t length, int64_t step = 1);

    Ref reduce(std::string_view op, Ref a, int64_t dim, std::vector<double> floats = {}) {
        return g.op(op, {a}, {{dim}, std::move(floats)});
    }
    Ref sum(Ref a, int64_t dim) { return reduce("sum", a, dim); }
    // Over several dimensions (ascending), which stay with extent 1: adjacent ones are merged, the others follow one after another.
    Ref reduce_all(std::string_view op, Ref a, std::span<const int64_t> dims);
    Ref sum_to(Ref a, const Shape& shape);  // undoes a broadcast
    struct Moments {
        Ref mean, squares;  // squares: the sum of the squared deviations from the mean
    };
    Moments moments(Ref a, int64_t dim);

    Ref positions(const Shape& shape, int64_t dim);  // i64, expanded: each element's coordinate along a dimension
    // Where along `dim` of `shape` an element of a part lies that was laid out from `start` in steps.
    Ref inside(const Shape& shape, int64_t dim, int64_t start, int64_t length, int64_t step);
    Ref put(Ref base, int64_t dim, int64_t start, int64_t step, Ref part);  // base with a slice replaced
    // b1 [.., extent, k, ..]: is the k-th index along `dim` this position?
    Ref places(Ref index, int64_t dim, int64_t extent);
    Ref beside_positions(Ref v, int64_t dim, int64_t extent);  // a value of the index's shape, spread in the same way
    Ref pad_to(Ref a, const Shape& shape);                     // zeros after the end
    Ref concat(std::span<const Ref> parts, int64_t dim);
};
std::vector<int64_t> inverse(std::span<const int64_t> permutation);

}  // namespace framejit::rules

// A pointwise body, written as the expression that it computes. In scope: e (Emitter), a (operands), n (the node).
#define EMIT(cost, expr)                                                                                                                   \
    Pointwise {                                                                                                                            \
        []([[maybe_unused]] Emitter& e, [[maybe_unused]] rules::Vals a, [[maybe_unused]] const Node& n) -> Val { return expr; }, cost      \
    }
// One gradient per operand. In scope: b (Build), n, in, out, dy.
#define GRAD(...)                                                                                                                          \
    [](Graph& g, [[maybe_unused]] const Node& n, [[maybe_unused]] rules::In in, [[maybe_unused]] Ref out,                                  \
       [[maybe_unused]] Ref dy) -> std::vector<Ref> {                                                                                      \
        [[maybe_unused]] rules::Build b{g};                                                                                                \
        return __VA_ARGS__;                                                                                                                \
    }
