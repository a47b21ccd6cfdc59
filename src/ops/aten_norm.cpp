// Softmax and normalisations. Statistics that are results of their own are written as the composite writes them, so that both are
// one computation after decomposition.
#include <limits>

#include "src/ops/aten.h"

namespace framejit::aten {
namespace {

// Softmax of a 0-dim tensor is that of one element.
template <const OpDef& op> Ref over(Call& c, Ref x, size_t dim_at) {
    require(is_float(x->dtype));
    const int64_t d = c.dim(dim_at, x);
    return c.view(c.reduce(op.name, x->shape.empty() ? c.view(x, {1}) : x, d), x->shape);
}
template <const OpDef& op> Results softmax(Call& c) { return {over<op>(c, c.cast(c.tensor(0), c.out[0].dtype), 1)}; }
// A row of -inf alone gives 0, not NaN.
Results safe_softmax(Call& c) {
    Ref x = c.cast(c.tensor(0), c.out[0].dtype);
    require(is_float(x->dtype) && !x->shape.empty());
    Ref top = c.reduce("amax", x, c.dim(1, x));
    Ref dead = c.compare("eq", top, -std::numeric_limits<double>::infinity());
    return {c.where(c.expand(dead, x->shape), c.number(0, x), over<op_softmax>(c, x, 1))};
}

struct Statistics {
    Ref mean, rstd;
};
// Of the last dimension of x, as in the composite layer_norm.
Statistics statistics(Call& c, Ref x, double eps) {
    const int64_t d = int64_t(x->shape.size()) - 1;
    const double count = double(x->shape.back());
    auto [mean, squares] = c.moments(x, d);
    return {mean, c("rsqrt", {c.add(c.div(squares, count), eps)})};
}
// Of the last two dimensions: the mean of the means, and the squares around it.
Statistics statistics_of_columns(Call& c, Ref x, double eps) {
    const int64_t d = int64_t(x->shape.size()) - 2;
    const double columns = double(x->shape[d]), count = columns * double(x->shape[d + 1]);
    auto [means, squares] = c.moments(x, d + 1);
    auto [mean, between] = c.moments(means, d);
    Ref all = c.add(c.sum(squares, d), c.mul(between, double(x->shape[d + 1])));
    return {mean, c("rsqrt", {c.add(c.div(all, count), eps)})};
}
Ref recorded_statistic(Call& c, Ref s, size_t k) { return c.view(c.as_recorded(s, k), c.out[k].shape); }

Results layer_norm(Call& c) {
    Ref x = c.tensor(0);
    const int64_t inner = int64_t(c.integers(1).size()), outer = int64_t(x->shape.size()) - inner;
    require(is_float(x->dtype) && inner > 0 && outer >= 0 && numel(x->shape) > 0);
    const int64_t extent = numel(std::span(x->shape).subspan(outer));
    Shape rows(x->shape.begin(), x->shape.begin() + outer);
    rows.push_back(extent);
    Ref flat = c.view(x, rows);
    std::vector<Ref> operands{flat};
    if (c.given(2) || c.given(3)) operands.push_back(c.given(2) ? c.view(c.tensor(2), {extent}) : c.expand(c.number(1, x), {extent}));
    if (c.given(3)) operands.push_back(c.view(c.tensor(3), {extent}));
    Ref y = c.view(c("layer_norm", operands, {{}, {c.real(4)}}), x->shape);
    auto [mean, rstd] = statistics(c, c.up(flat), c.real(4));
    return {y, recorded_statistic(c, mean, 1), recorded_statistic(c, rstd, 2)};
}

Results rms_norm(Call& c) {
    Ref x = c.tensor(0);
    const int64_t inner = int64_t(c.integers(1).size()), outer = int64_t(x->shape.size()) - inner;
    require(is_float(x->dtype) && inner > 0 && outer >= 0 && numel(x->shape) > 0 && c.given(3));
    Shape rows(x->shape.begin(), x->shape.begin() + outer);
    rows.push_back(numel(std::span(x->shape).subspan(outer)));
    Ref flat = c.view(x, rows), wide = c.up(flat);
    std::vector<Ref> operands{flat};
    if (c.given(2)) operands.push_back(c.view(c.tensor(2), {rows.back()}));
    Ref square = c.div(c.sum(c.mul(wide, wide), outer), double(rows.back()));
    Ref y = c.view(c("rms_norm", operands, {{}, {c.real(3)}}), x->shape);
    return {y, recorded_statistic(c, c("rsqrt", {c.add(square, c.real(3))}), 1)};
}

// [C] as [1, C, 1, ..], to stand beside x of [N, C, ..]
Ref per_channel(Call& c, Ref v, Ref x) {
    Shape shape(x->shape.size(), 1);
    shape.at(1) = numel(v->shape);
    return c.view(c.up(v), shape);
}
// Whether the channels of [N, C, ..] lie beside each other in memory.
bool channels_last(Ref x) { return x->op == &op_input && x->shape[1] > 1 && x->at.i[2] == 1 && x->shape.size() > 2; }

// Each group of channels is a row. Where channels are last, a column for every channel is summed first, and applied to.
Results group_norm(Call& c) {
    Ref x = c.tensor(0);
    const int64_t n = c.integer(3), channels = c.integer(4), extent = c.integer(5), groups = c.integer(6), each = channels / groups;
    require(is_float(x->dtype) && x->shape.size() >= 2 && numel(x->shape) > 0);
    const bool last = channels_last(x);
    Ref flat = c.up(c.view(x, last ? Shape{n, groups, each, extent} : Shape{n, groups, each * extent}));
    auto [mean, rstd] = last ? statistics_of_columns(c, flat, c.real(7)) : statistics(c, flat, c.real(7));
    auto beside = [&](Ref s) { return last ? c.view(c.expand(s, {n, groups, each, 1}), {n, channels, 1}) : s; };
    if (last) flat = c.view(flat, {n, channels, extent});
    Ref y = c.view(c.mul(c.sub(flat, beside(mean)), beside(rstd)), x->shape);
    if (c.given(1)) y = c.mul(y, per_channel(c, c.tensor(1), x));
    if (c.given(2)) y = c.add(y, per_channel(c, c.tensor(2), x));
    return {c.as_recorded(y), recorded_statistic(c, mean, 1), recorded_statistic(c, rstd, 2)};
}

// Inference: the running statistics make one scale and one shift per channel, and the rest is one fma. The saved statistics are empty.
Results batch_norm_inference(Call& c, size_t mean_at, double eps) {
    Ref x = c.tensor(0);
    require(is_float(x->dtype) && x->shape.size() >= 2 && numel(x->shape) > 0);
    Ref mean = c.up(c.tensor(mean_at)), var = c.up(c.tensor(mean_at + 1));
    Ref scale = c("reciprocal", {c("sqrt", {c.add(var, eps)})});
    if (c.given(1)) scale = c.mul(scale, c.up(c.tensor(1)));
    Ref shift = c.given(2) ? c("fma", {c.neg(mean), scale, c.up(c.tensor(2))})
                           : c.add(c.neg(c.mul(mean, scale)), 0.0);  // + 0: eager subtracts from 0
    Ref y = c("fma", {c.up(x), per_channel(c, scale, x), per_channel(c, shift, x)});
    Results out{c.as_recorded(y)};
    for (size_t k = 1; k < c.out.size(); k++) {
        require(numel(c.out[k].shape) == 0);
        out.push_back(c.expand(c.g.scalar(0, c.out[k].dtype), c.out[k].shape));
    }
    return out;
}
Results batch_norm(Call& c) {  // training writes the running statistics: torch does that
    require(!c.flag(5) && c.given(3) && c.given(4));
    return batch_norm_inference(c, 3, c.real(7));
}
Results batch_norm_no_training(Call& c) { return batch_norm_inference(c, 3, c.real(6)); }

constexpr Row kRules[] = {
    {"aten::_softmax", rule<softmax<op_softmax>>}, {"aten::_log_softmax", rule<softmax<op_log_softmax>>},
    {"aten::_safe_softmax", rule<safe_softmax>},   {"aten::native_layer_norm", rule<layer_norm>},
    {"aten::_fused_rms_norm", rule<rms_norm>},     {"aten::native_group_norm", rule<group_norm>},
    {"aten::native_batch_norm", rule<batch_norm>}, {"aten::_native_batch_norm_legit_no_training", rule<batch_norm_no_training>},
};

}  // namespace

std::span<const Row> norm_rules() { return kRules; }

}  // namespace framejit::aten
