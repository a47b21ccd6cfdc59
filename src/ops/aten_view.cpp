// Views. The recorded result's shape says what a reshaping view makes, so all of them are one rule.
#include <algorithm>

#include "src/ops/aten.h"

namespace framejit::aten {
namespace {

Results identity(Call& c) { return {c.tensor(0)}; }
Results reshaped(Call& c) { return {c.view(c.tensor(0), c.out[0].shape)}; }
Results expand(Call& c) { return {c.expand(c.tensor(0), c.out[0].shape)}; }

Ref swapped(Call& c, Ref x, int64_t a, int64_t b) {
    std::vector<int64_t> order(x->shape.size());
    for (size_t d = 0; d < order.size(); d++) order[d] = int64_t(d);
    if (!order.empty()) std::swap(order[a], order[b]);
    return c.transpose(x, order);
}
Results transpose(Call& c) {
    Ref x = c.tensor(0);
    return {swapped(c, x, c.dim(1, x), c.dim(2, x))};
}
Results t(Call& c) {
    Ref x = c.tensor(0);
    return {x->shape.size() < 2 ? x : swapped(c, x, 0, 1)};
}
Results permute(Call& c) {
    Ref x = c.tensor(0);
    std::vector<int64_t> order = c.integers(1);
    for (int64_t& d : order) d = Call::wrap_dim(d, x);
    return {c.transpose(x, order)};
}

Results select(Call& c) {
    Ref x = c.tensor(0);
    const int64_t d = c.dim(1, x), i = c.integer(2);
    return {c.view(c.slice(x, d, i < 0 ? i + x->shape.at(d) : i, 1), c.out[0].shape)};
}
struct Range {
    int64_t start, length, step;
};
Range range_of(Call& c, int64_t extent, size_t start_at, size_t end_at, size_t step_at) {
    auto bound = [&](size_t i, int64_t otherwise) {
        int64_t v = c.given(i) ? c.integer(i) : otherwise;
        return std::clamp<int64_t>(v < 0 ? v + extent : v, 0, extent);
    };
    const int64_t start = bound(start_at, 0), end = std::max(start, bound(end_at, extent)),
                  step = c.given(step_at) ? c.integer(step_at) : 1;
    return {start, (end - start + step - 1) / step, step};
}
Results slice(Call& c) {
    Ref x = c.tensor(0);
    const int64_t d = c.given(1) ? c.dim(1, x) : 0;
    const Range r = range_of(c, x->shape.at(d), 2, 3, 4);
    return {c.slice(x, d, r.start, r.length, r.step)};
}

Results pieces(Call& c, int64_t d, std::span<const int64_t> sizes) {
    Results out;
    int64_t start = 0;
    for (int64_t size : sizes) {
        out.push_back(c.slice(c.tensor(0), d, start, size));
        start += size;
    }
    return out;
}
// However the sizes were asked for, the recorded results have them.
Results split(Call& c) {
    Ref x = c.tensor(0);
    const int64_t d = c.given(2) ? c.dim(2, x) : 0;
    std::vector<int64_t> sizes;
    for (const Meta& m : c.out) sizes.push_back(m.shape.at(d));
    return pieces(c, d, sizes);
}
Results unbind(Call& c) {
    Ref x = c.tensor(0);
    const int64_t d = c.given(1) ? c.dim(1, x) : 0;
    Results out = pieces(c, d, std::vector<int64_t>(c.out.size(), 1));
    for (size_t k = 0; k < out.size(); k++) out[k] = c.view(out[k], c.out[k].shape);
    return out;
}

Results diagonal(Call& c) {
    Ref x = c.tensor(0);
    const int64_t offset = c.given(1) ? c.integer(1) : 0;
    const int64_t row = Call::wrap_dim(c.given(2) ? c.integer(2) : 0, x), column = Call::wrap_dim(c.given(3) ? c.integer(3) : 1, x);
    return {c("diagonal", {x}, {{offset, row, column, c.out[0].shape.back()}, {}})};
}
Results unfold(Call& c) {
    Ref x = c.tensor(0);
    require(!x->shape.empty());
    return {c("unfold", {x}, {{c.dim(1, x), c.integer(2), c.integer(3)}, {}})};
}
// A value with a part replaced: what a write through a view leaves in its base.
Results slice_scatter(Call& c) {
    Ref x = c.tensor(0);
    const int64_t d = c.given(2) ? c.dim(2, x) : 0;
    const Range r = range_of(c, x->shape.at(d), 3, 4, 5);
    Shape part = x->shape;
    part[d] = r.length;
    return {c.put(x, d, r.start, r.step, c.expand(c.cast(c.tensor(1), x->dtype), part))};
}
Results select_scatter(Call& c) {
    Ref x = c.tensor(0);
    const int64_t d = c.dim(2, x), i = c.integer(3);
    Shape part = x->shape;
    part.at(d) = 1;
    require(numel(part) == numel(c.tensor(1)->shape));
    return {c.put(x, d, i < 0 ? i + x->shape[d] : i, 1, c.view(c.cast(c.tensor(1), x->dtype), part))};
}

constexpr Row kRules[] = {
    {"aten::alias", rule<identity>, true},
    {"aten::detach", rule<identity>, true},
    {"aten::lift_fresh", rule<identity>, true},
    {"aten::view", rule<reshaped>, true},
    {"aten::_reshape_alias", rule<reshaped>, true},
    {"aten::unsqueeze", rule<reshaped>, true},
    {"aten::squeeze", rule<reshaped>, true},
    {"aten::squeeze.dim", rule<reshaped>, true},
    {"aten::squeeze.dims", rule<reshaped>, true},
    {"aten::expand", rule<expand>, true},
    {"aten::transpose.int", rule<transpose>, true},
    {"aten::t", rule<t>, true},
    {"aten::permute", rule<permute>, true},
    {"aten::select.int", rule<select>, true},
    {"aten::slice.Tensor", rule<slice>, true},
    {"aten::split.Tensor", rule<split>, true},
    {"aten::split_with_sizes", rule<split>, true},
    {"aten::unbind.int", rule<unbind>, true},
    {"aten::diagonal", rule<diagonal>, true},
    {"aten::unfold", rule<unfold>, true},
    {"aten::clone", rule<identity>},
    {"aten::_unsafe_view", rule<reshaped>},
    {"aten::unsafe_split.Tensor", rule<split>},
    {"aten::split_with_sizes_copy", rule<split>},
    {"aten::slice_scatter", rule<slice_scatter>},
    {"aten::select_scatter", rule<select_scatter>},
};

}  // namespace

std::span<const Row> view_rules() { return kRules; }

}  // namespace framejit::aten
