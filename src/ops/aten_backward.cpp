// Backward operators, as they are recorded when a program runs backward itself: the gradients of the op table, given what torch saved.
#include "src/ops/aten.h"

namespace framejit::aten {
namespace {

// dy's share of the first operand of an op, whose gradient needs nothing but its operands (and the result that follows from them).
Ref gradient(Call& c, std::string_view op, Ref x, Ref dy, std::vector<double> floats = {}) {
    require(is_float(x->dtype) && x->dtype == dy->dtype && x->shape == dy->shape);
    Ref y = c(op, {x}, {{}, std::move(floats)});
    return y->op->vjp(c.g, *y, y->in, y, dy)[0];
}
template <const OpDef& op> Results of_input(Call& c) { return {gradient(c, op.name, c.tensor(1), c.tensor(0))}; }
// Of ops whose gradient follows from the result alone.
template <const OpDef& op> Results of_result(Call& c) {
    Ref dy = c.tensor(0), y = c.tensor(1);
    require(is_float(y->dtype) && y->dtype == dy->dtype && y->shape == dy->shape);
    return {op.vjp(c.g, *y, std::vector<Ref>{y}, y, dy)[0]};
}

Results gelu(Call& c) { return {gradient(c, c.text(2) == "tanh" ? "gelu_tanh" : "gelu", c.tensor(1), c.tensor(0))}; }
Results softplus(Call& c) { return {gradient(c, "softplus", c.tensor(1), c.tensor(0), {c.real(2), c.real(3)})}; }
Results leaky_relu(Call& c) {
    require(!c.flag(3));
    return {gradient(c, "leaky_relu", c.tensor(1), c.tensor(0), {c.real(2)})};
}
Results elu(Call& c) {
    require(!c.flag(4));
    return {gradient(c, "elu", c.tensor(5), c.tensor(0), {c.real(1), c.real(2), c.real(3)})};
}
// The buffer holds exp(-|x|).
Results log_sigmoid(Call& c) {
    Ref dy = c.up(c.tensor(0)), x = c.up(c.tensor(1)), e = c.up(c.tensor(2));
    require(is_float(x->dtype) && x->shape == e->shape);
    Ref negative = c.compare("lt", x, 0);
    Ref share = c.div(e, c.add(e, 1));
    Ref slope = c.where(negative, c.sub(c.number(1, x), share), share);
    return {c.as_recorded(c.mul(slope, dy))};
}
Results threshold(Call& c) {
    Ref dy = c.tensor(0), x = c.tensor(1);
    return {c.where(c("le", {x, c.value(2, x->dtype)}), c.number(0, dy), dy)};
}
Results hardtanh(Call& c) {
    Ref dy = c.tensor(0), x = c.tensor(1);
    Ref outside = c("bit_or", {c("le", {x, c.value(2, x->dtype)}), c("ge", {x, c.value(3, x->dtype)})});
    return {c.where(outside, c.number(0, dy), dy)};
}

template <const OpDef& op> Results softmax(Call& c) {
    Ref dy = c.tensor(0), y = c.tensor(1);
    require(is_float(y->dtype) && !y->shape.empty() && y->dtype == c.out[0].dtype);
    Ref node = c.reduce(op.name, y, c.dim(2, y));  // carries the dimension; its value is not asked for
    return {op.vjp(c.g, *node, node->in, y, dy)[0]};
}

// With the saved mean and rstd; see norm_grad in composite.cpp for the formula.
Results layer_norm(Call& c) {
    Ref x = c.up(c.tensor(1)), dy = c.up(c.tensor(0));
    const int64_t inner = int64_t(c.integers(2).size()), outer = int64_t(x->shape.size()) - inner;
    const std::vector<int64_t> wanted = c.integers(7);
    require(outer >= 0 && c.given(5) && c.given(6) && wanted == std::vector<int64_t>{1, 1, 1} && numel(x->shape) > 0);
    const int64_t extent = numel(std::span(x->shape).subspan(outer)), rows = numel(x->shape) / extent;
    auto flat = [&](Ref v, int64_t columns) { return c.view(c.up(v), {rows, columns}); };
    Ref h = c.mul(c.sub(flat(x, extent), flat(c.tensor(3), 1)), flat(c.tensor(4), 1));
    Ref d = flat(dy, extent);
    Ref w = c.mul(d, c.view(c.up(c.tensor(5)), {extent}));
    auto mean = [&](Ref v) { return c.div(c.sum(v, 1), double(extent)); };
    Ref dx = c.mul(c.sub(c.sub(w, mean(w)), c.mul(h, mean(c.mul(w, h)))), flat(c.tensor(4), 1));
    auto result = [&](Ref v, size_t k) { return c.view(c.as_recorded(v, k), c.out[k].shape); };
    return {result(dx, 0), result(c.sum(c.mul(d, h), 0), 1), result(c.sum(d, 0), 2)};
}

// Only the picked class of a row that counts has a gradient.
Results nll_loss(Call& c) {
    Ref dy = c.up(c.tensor(0)), x = c.tensor(1), target = c.tensor(2);
    const int64_t reduction = c.integer(4);
    require(x->shape.size() == 2 && target->shape.size() == 1 && target->dtype == DType::i64 && !c.given(3) &&
            (reduction == 1 || reduction == 2));
    Ref share = c.neg(reduction == 1 ? c.div(dy, c.up(c.tensor(6))) : dy);
    Ref beside = c.view(target, {x->shape[0], 1});
    Ref picked = c("eq", {beside, c.positions(x->shape, 1)});
    Ref counts = c("ne", {beside, c.g.integer(c.integer(5), DType::i64)});
    Ref hit = c("bit_and", {picked, counts});
    return {c.as_recorded(c.where(hit, share, c.number(0, share)))};
}
Results mse_loss(Call& c) {
    Ref dy = c.up(c.tensor(0)), x = c.up(c.tensor(1)), y = c.up(c.tensor(2));
    const double factor = c.integer(3) == 1 ? 2.0 / double(numel(x->shape)) : 2.0;
    require(is_float(x->dtype) && x->shape == y->shape);
    return {c.as_recorded(c.mul(c.mul(c.sub(x, y), factor), dy))};
}

Ref zeros(Call& c) { return c.expand(c.number(0, c.tensor(0)), c.out[0].shape); }
Results slice(Call& c) {
    Ref dy = c.tensor(0);
    require(dy->shape.size() == c.out[0].shape.size() && !dy->shape.empty());
    const int64_t d = c.dim(2, dy), extent = c.out[0].shape.at(d), start = c.integer(3);
    return {c.put(zeros(c), d, std::min(start < 0 ? start + extent : start, extent), c.integer(5), dy)};
}
Results select(Call& c) {
    Shape part = c.out[0].shape;
    const int64_t rank = int64_t(part.size()), given = c.integer(2), i = c.integer(3), d = given < 0 ? given + rank : given;
    const int64_t extent = part.at(d);
    part[d] = 1;
    require(numel(part) == numel(c.tensor(0)->shape));
    return {c.put(zeros(c), d, i < 0 ? i + extent : i, 1, c.view(c.tensor(0), part))};
}

constexpr Row kRules[] = {
    {"aten::sigmoid_backward", rule<of_result<op_sigmoid>>},
    {"aten::tanh_backward", rule<of_result<op_tanh>>},
    {"aten::gelu_backward", rule<gelu>},
    {"aten::silu_backward", rule<of_input<op_silu>>},
    {"aten::mish_backward", rule<of_input<op_mish>>},
    {"aten::hardswish_backward", rule<of_input<op_hardswish>>},
    {"aten::hardsigmoid_backward", rule<of_input<op_hardsigmoid>>},
    {"aten::log_sigmoid_backward", rule<log_sigmoid>},
    {"aten::softplus_backward", rule<softplus>},
    {"aten::leaky_relu_backward", rule<leaky_relu>},
    {"aten::elu_backward", rule<elu>},
    {"aten::threshold_backward", rule<threshold>},
    {"aten::hardtanh_backward", rule<hardtanh>},
    {"aten::_softmax_backward_data", rule<softmax<op_softmax>>},
    {"aten::_log_softmax_backward_data", rule<softmax<op_log_softmax>>},
    {"aten::native_layer_norm_backward", rule<layer_norm>},
    {"aten::nll_loss_backward", rule<nll_loss>},
    {"aten::mse_loss_backward", rule<mse_loss>},
    {"aten::slice_backward", rule<slice>},
    {"aten::select_backward", rule<select>},
};

}  // namespace

std::span<const Row> backward_rules() { return kRules; }

}  // namespace framejit::aten
