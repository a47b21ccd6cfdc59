// Operators that move elements: joining, padding, repeating, triangles, resampling by whole factors.
#include <bit>

#include "src/ops/aten.h"

namespace framejit::aten {
namespace {

DType joined(Call& c, std::span<const Ref> parts) {
    std::vector<Arg> args(parts.begin(), parts.end());
    std::vector<const Arg*> operands;
    for (const Arg& a : args) operands.push_back(&a);
    return result_type(operands, c.default_float());
}

// Every element asks which part it is of: of more parts than these, torch's own copy is faster.
constexpr size_t kMostParts = 4;

Results cat(Call& c) {
    std::vector<Ref> parts;
    const std::vector<Ref> given = c.tensors(0);
    const DType d = joined(c, given);
    for (Ref p : given)  // torch skips tensors of shape [0] whatever the others' rank is
        if (p->shape != Shape{0} || c.out[0].shape.size() == 1) parts.push_back(c.cast(p, d));
    if (parts.empty()) return {c.cast(given.at(0), d)};
    require(parts.size() <= kMostParts);
    return {c.concat(parts, c.given(1) ? c.dim(1, parts[0]) : 0)};
}
Results stack(Call& c) {
    std::vector<Ref> parts = c.tensors(0);
    require(!parts.empty() && parts.size() <= kMostParts);
    const DType type = joined(c, parts);
    const int64_t rank = int64_t(parts[0]->shape.size()) + 1, given = c.given(1) ? c.integer(1) : 0;
    const int64_t d = given < 0 ? given + rank : given;
    for (Ref& p : parts) {
        Shape lifted = p->shape;
        lifted.insert(lifted.begin() + d, 1);
        p = c.view(c.cast(p, type), lifted);
    }
    return {c.concat(parts, d)};
}

// Pairs (before, after) from the last dimension on; negative ones cut.
Results constant_pad_nd(Call& c) {
    Ref x = c.tensor(0);
    const std::vector<int64_t> pad = c.integers(1);
    Ref fill = c.given(2) ? c.value(2, x->dtype) : c.number(0, x);
    for (size_t k = 0; k < pad.size() / 2; k++) {
        const int64_t d = int64_t(x->shape.size()) - 1 - int64_t(k), cut_left = std::max<int64_t>(0, -pad[2 * k]),
                      cut_right = std::max<int64_t>(0, -pad[2 * k + 1]);
        x = c.slice(x, d, cut_left, x->shape.at(d) - cut_left - cut_right);
    }
    const Shape& whole = c.out[0].shape;
    if (numel(x->shape) == 0) return {c.expand(fill, whole)};
    for (size_t k = 0; k < pad.size() / 2; k++) {
        const int64_t d = int64_t(x->shape.size()) - 1 - int64_t(k), left = std::max<int64_t>(0, pad[2 * k]);
        if (x->shape[d] == whole[d]) continue;
        Shape wider = x->shape;
        wider[d] = whole[d];
        x = c.put(c.expand(fill, wider), d, left, 1, x);
    }
    return {x};
}

// Pairs (before, after) from the last dimension on: what lies beyond an end is `edge` of the elements next to it.
Results padded(Call& c, Ref (*edge)(Call&, Ref x, int64_t dim, int64_t count, bool front)) {
    Ref x = c.tensor(0);
    const std::vector<int64_t> pad = c.integers(1);
    for (size_t k = 0; k < pad.size() / 2; k++) {
        const int64_t d = int64_t(x->shape.size()) - 1 - int64_t(k), before = pad[2 * k], after = pad[2 * k + 1];
        require(before >= 0 && after >= 0 && numel(x->shape) > 0);
        std::vector<Ref> parts;
        if (before > 0) parts.push_back(edge(c, x, d, before, true));
        parts.push_back(x);
        if (after > 0) parts.push_back(edge(c, x, d, after, false));
        x = c.concat(parts, d);
    }
    return {x};
}
Results reflection_pad(Call& c) {
    return padded(
        c, [](Call& c, Ref x, int64_t d, int64_t count, bool front) { return c.slice(x, d, front ? count : x->shape[d] - 2, count, -1); });
}
Results replication_pad(Call& c) {
    return padded(c, [](Call& c, Ref x, int64_t d, int64_t count, bool front) {
        Shape shape = x->shape;
        shape[d] = count;
        return c.expand(c.slice(x, d, front ? 0 : x->shape[d] - 1, 1), shape);
    });
}

Results flip(Call& c) {
    Ref x = c.tensor(0);
    for (int64_t d : c.integers(1)) {
        d = Call::wrap_dim(d, x);
        if (!x->shape.empty() && x->shape[d] > 1) x = c.slice(x, d, x->shape[d] - 1, x->shape[d], -1);
    }
    return {x};
}

Ref rolled(Call& c, Ref x, int64_t shift, int64_t d) {
    const int64_t n = x->shape[d];
    if (n == 0) return x;
    const int64_t front = ((shift % n) + n) % n;  // how many come from the end
    if (front == 0) return x;
    const Ref parts[] = {c.slice(x, d, n - front, front), c.slice(x, d, 0, n - front)};
    return c.concat(parts, d);
}
Results roll(Call& c) {
    Ref x = c.tensor(0);
    const std::vector<int64_t> shifts = c.integers(1), dims = c.given(2) ? c.integers(2) : std::vector<int64_t>{};
    if (dims.empty()) return {c.view(rolled(c, c.view(x, {numel(x->shape)}), shifts.at(0), 0), x->shape)};
    require(shifts.size() == dims.size() && !x->shape.empty());
    for (size_t k = 0; k < dims.size(); k++) x = rolled(c, x, shifts[k], Call::wrap_dim(dims[k], x));
    return {x};
}

// Each repeated dimension is expanded beside itself and merged.
Results repeat(Call& c) {
    Ref x = c.tensor(0);
    const std::vector<int64_t> times = c.integers(1);
    const size_t lead = times.size() - x->shape.size();
    Shape apart, wide;
    for (size_t d = 0; d < times.size(); d++) {
        const int64_t extent = d < lead ? 1 : x->shape[d - lead];
        apart.insert(apart.end(), {1, extent});
        wide.insert(wide.end(), {times[d], extent});
    }
    return {c.view(c.expand(c.view(x, apart), wide), c.out[0].shape)};
}

// `how`: the comparison of column - row with the diagonal that keeps an element
Results triangle(Call& c, std::string_view how) {
    Ref x = c.tensor(0);
    require(x->shape.size() >= 2);
    const int64_t rank = int64_t(x->shape.size());
    Ref distance = c.sub(c.positions(x->shape, rank - 1), c.positions(x->shape, rank - 2));
    return {c.where(c(how, {distance, c.g.integer(c.given(1) ? c.integer(1) : 0, DType::i64)}), x, c.number(0, x))};
}
Results tril(Call& c) { return triangle(c, "le"); }
Results triu(Call& c) { return triangle(c, "ge"); }

// Whole factors that are powers of two: there eager's position floor(i * (in / out)) is exact.
Results upsample_nearest2d(Call& c) {
    Ref x = c.tensor(0);
    const Shape& in = x->shape;
    const Shape& out = c.out[0].shape;
    require(in.size() == 4 && numel(in) > 0);
    const int64_t h = out[2] / in[2], w = out[3] / in[3];
    require(out[2] == h * in[2] && out[3] == w * in[3] && std::has_single_bit(uint64_t(h)) && std::has_single_bit(uint64_t(w)));
    Ref apart = c.view(x, {in[0], in[1], in[2], 1, in[3], 1});
    return {c.view(c.expand(apart, {in[0], in[1], in[2], h, in[3], w}), out)};
}

constexpr Row kRules[] = {
    {"aten::cat", rule<cat>},
    {"aten::stack", rule<stack>},
    {"aten::constant_pad_nd", rule<constant_pad_nd>},
    {"aten::reflection_pad1d", rule<reflection_pad>},
    {"aten::reflection_pad2d", rule<reflection_pad>},
    {"aten::replication_pad1d", rule<replication_pad>},
    {"aten::replication_pad2d", rule<replication_pad>},
    {"aten::flip", rule<flip>},
    {"aten::roll", rule<roll>},
    {"aten::repeat", rule<repeat>},
    {"aten::tril", rule<tril>},
    {"aten::triu", rule<triu>},
    {"aten::upsample_nearest2d", rule<upsample_nearest2d>},
};

}  // namespace

std::span<const Row> layout_rules() { return kRules; }

}  // namespace framejit::aten
