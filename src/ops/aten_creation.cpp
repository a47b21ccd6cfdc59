// Tensors from nothing. Dtype and shape are the recorded result's, so defaults and `like` arguments need no rule.
// Memory that eager leaves uninitialised is 0 here: any value is right.
#include "src/ops/aten.h"

namespace framejit::aten {
namespace {

const Meta& made(Call& c) {
    require(!c.out.empty() && computable(c.out[0].dtype));
    return c.out[0];
}
Results filled(Call& c, Ref value) { return {c.expand(value, made(c).shape)}; }
template <int number> Results constant(Call& c) { return filled(c, c.g.integer(number, made(c).dtype)); }
template <size_t position> Results full(Call& c) { return filled(c, c.scalar_of(c.at(position), made(c).dtype)); }

Ref count(Call& c, int64_t start, int64_t step, int64_t length) { return c.g.make(op_iota, {}, {{start, step}, {}}, DType::i64, {length}); }

// Floats: computed in f64 and rounded once.
Ref arange(Call& c, const Arg& start, const Arg& step) {
    const DType d = made(c).dtype;
    const int64_t length = made(c).shape.at(0);
    auto whole = [](const Arg& a) { return a.as<int64_t>(); };
    if (whole(start) && whole(step)) {
        const bool exact = !is_float(d) || (std::abs(*whole(start)) < (1 << 24) && std::abs(*whole(step)) * length < (1 << 24));
        if (exact) return c.cast(count(c, *whole(start), *whole(step), length), d);
    }
    require(is_float(d));
    Ref k = c.cast(count(c, 0, 1, length), DType::f64);
    return c.cast(c.add(c.scalar_of(start, DType::f64), c.mul(k, c.scalar_of(step, DType::f64))), d);
}
Results arange_end(Call& c) { return {arange(c, Arg{int64_t(0)}, Arg{int64_t(1)})}; }
Results arange_start(Call& c) { return {arange(c, c.at(0), Arg{int64_t(1)})}; }
Results arange_step(Call& c) { return {arange(c, c.at(0), c.at(2))}; }

// From both ends towards the middle, as eager, so that both ends are exact.
Results linspace(Call& c) {
    const DType d = made(c).dtype;
    const int64_t steps = c.integer(2);
    require(is_float(d) && steps > 1);
    const DType type = d == DType::f64 ? DType::f64 : DType::f32;
    Ref start = c.scalar_of(c.at(0), type), end = c.scalar_of(c.at(1), type);
    Ref step = c.div(c.sub(end, start), double(steps - 1));
    Ref k = count(c, 0, 1, steps), back = count(c, steps - 1, -1, steps);
    Ref up = c("fma", {step, c.cast(k, type), start}), down = c("fma", {c.neg(step), c.cast(back, type), end});
    return {c.cast(c.where(c("lt", {k, c.g.integer(steps / 2, DType::i64)}), up, down), d)};
}

Results eye(Call& c) {
    const Shape& shape = made(c).shape;
    return {c.cast(c("eq", {c.positions(shape, 0), c.positions(shape, 1)}), made(c).dtype)};
}

constexpr Row kRules[] = {
    {"aten::zeros", rule<constant<0>>},
    {"aten::zeros_like", rule<constant<0>>},
    {"aten::new_zeros", rule<constant<0>>},
    {"aten::ones", rule<constant<1>>},
    {"aten::ones_like", rule<constant<1>>},
    {"aten::new_ones", rule<constant<1>>},
    {"aten::empty.memory_format", rule<constant<0>>},
    {"aten::empty_like", rule<constant<0>>},
    {"aten::empty_strided", rule<constant<0>>},
    {"aten::new_empty", rule<constant<0>>},
    {"aten::new_empty_strided", rule<constant<0>>},
    {"aten::full", rule<full<1>>},
    {"aten::full_like", rule<full<1>>},
    {"aten::new_full", rule<full<2>>},
    {"aten::scalar_tensor", rule<full<0>>},
    {"aten::arange", rule<arange_end>},
    {"aten::arange.start", rule<arange_start>},
    {"aten::arange.start_step", rule<arange_step>},
    {"aten::linspace", rule<linspace>},
    {"aten::eye", rule<eye>},
    {"aten::eye.m", rule<eye>},
};

}  // namespace

std::span<const Row> creation_rules() { return kRules; }

}  // namespace framejit::aten
