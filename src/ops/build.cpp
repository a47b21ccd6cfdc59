// Graph shorthand for decompositions, VJPs and lowerings.
#include <algorithm>
#include <numeric>

#include "src/ops/rules.h"

namespace framejit::rules {

Ref Build::transpose(Ref a, std::vector<int64_t> order) {
    std::vector<int64_t> identity(order.size());
    std::iota(identity.begin(), identity.end(), 0);
    return order == identity ? a : g.op("transpose", {a}, {std::move(order), {}});
}

Ref Build::slice(Ref a, int64_t dim, int64_t start, int64_t length, int64_t step) {
    if (start == 0 && length == a->shape[dim] && step == 1) return a;
    return g.op("slice", {a}, {{dim, start, length, step}, {}});
}

Ref Build::reduce_all(std::string_view op, Ref a, std::span<const int64_t> dims) {
    Shape kept = a->shape;
    for (int64_t d : dims) kept[d] = 1;
    for (size_t last = dims.size(); last > 0;) {
        size_t first = last - 1;
        while (first > 0 && dims[first - 1] == dims[first] - 1) first--;
        Shape merged = a->shape;
        const int64_t begin = dims[first], end = dims[last - 1] + 1;
        const int64_t extent = numel(std::span(merged).subspan(begin, end - begin));
        merged.erase(merged.begin() + begin, merged.begin() + end);
        merged.insert(merged.begin() + begin, extent);
        a = reduce(op, view(a, merged), begin);
        Shape apart = a->shape;
        apart.insert(apart.begin() + begin, end - begin - 1, 1);
        a = view(a, apart);
        last = first;
    }
    return view(a, kept);
}

// The second pass also finds by how much the mean was off: rounding it would otherwise add to the squares where it is large beside the
// deviations (of a constant row they are 0).
Build::Moments Build::moments(Ref a, int64_t dim) {
    const double count = double(a->shape[dim]);
    Ref first = div(sum(a, dim), count);
    Ref c = sub(a, first);
    Ref left = sum(c, dim), off = div(left, count);
    Ref squares = sub(sum(mul(c, c), dim), mul(off, left));
    return {add(first, off), (*this)("maximum", {squares, number(0, squares)})};
}

Ref Build::sum_to(Ref a, const Shape& shape) {
    const int lead = int(a->shape.size()) - int(shape.size());
    std::vector<int64_t> dims;
    for (int d = 0; d < int(a->shape.size()); d++)
        if (a->shape[d] != 1 && (d < lead || shape[d - lead] == 1)) dims.push_back(d);
    return view(dims.empty() ? a : reduce_all("sum", a, dims), shape);
}

Ref Build::positions(const Shape& shape, int64_t dim) {
    Ref count = g.make(op_iota, {}, {{0, 1}, {}}, DType::i64, {shape[dim]});
    Shape lifted(shape.size(), 1);
    lifted[dim] = shape[dim];
    return expand(view(count, lifted), shape);
}

Ref Build::inside(const Shape& shape, int64_t dim, int64_t start, int64_t length, int64_t step) {
    Ref at = positions(shape, dim);
    const int64_t first = step > 0 ? start : start + step * (length - 1);
    const int64_t last = step > 0 ? start + step * (length - 1) : start;
    Ref mask = nullptr;
    auto also = [&](Ref m) { mask = mask ? g.op("bit_and", {mask, m}) : m; };
    auto integer = [&](int64_t v) { return g.integer(v, DType::i64); };
    if (first > 0) also(g.op("ge", {at, integer(first)}));
    if (last < shape[dim] - 1) also(g.op("le", {at, integer(last)}));
    if (step != 1 && step != -1) also(g.op("eq", {g.op("mod", {g.op("sub", {at, integer(first)}), integer(std::abs(step))}), integer(0)}));
    return mask ? mask : expand(g.integer(1, DType::b1), shape);
}

Ref Build::put(Ref base, int64_t dim, int64_t start, int64_t step, Ref part) {
    const int64_t length = part->shape[dim];
    if (length == 0) return base;
    if (part->shape == base->shape && start == 0 && step == 1) return part;
    Ref laid = g.op("window", {part}, {{dim, start, base->shape[dim], step}, {}});
    return where(inside(base->shape, dim, start, length, step), laid, base);
}

Ref Build::beside_positions(Ref v, int64_t dim, int64_t extent) {
    Shape lifted = v->shape, spread = v->shape;
    lifted.insert(lifted.begin() + dim, 1);
    spread.insert(spread.begin() + dim, extent);
    return expand(view(v, lifted), spread);
}
Ref Build::places(Ref index, int64_t dim, int64_t extent) {
    Ref spread = beside_positions(cast(index, DType::i64), dim, extent);
    return g.op("eq", {spread, positions(spread->shape, dim)});
}

Ref Build::pad_to(Ref a, const Shape& shape) {
    for (size_t d = 0; d < shape.size(); d++) {
        Shape wider = a->shape;
        wider[d] = shape[d];
        if (wider != a->shape) a = put(expand(number(0, a), wider), int64_t(d), 0, 1, a);
    }
    return a;
}

// Parts of one extent lie side by side along a dimension of their own, where a mask by part is uniform; then the two dimensions are merged.
static Ref concat_equal(Build b, std::span<const Ref> parts, int64_t dim) {
    Shape lifted = parts[0]->shape;
    lifted.insert(lifted.begin() + dim, 1);
    Shape apart = lifted;
    apart[dim] = int64_t(parts.size());
    auto beside = [&](Ref p) { return b.expand(b.view(p, lifted), apart); };
    Ref part = b.positions(apart, dim), out = beside(parts[0]);
    for (size_t k = 1; k < parts.size(); k++) out = b.where(b("ge", {part, b.g.integer(int64_t(k), DType::i64)}), beside(parts[k]), out);
    Shape merged = parts[0]->shape;
    merged[dim] *= int64_t(parts.size());
    return b.view(out, merged);
}

// Each part is laid out over the whole; the first one is underneath, so no element is left without a value.
Ref Build::concat(std::span<const Ref> parts, int64_t dim) {
    // Where the dimension varies within a vector, a window would be a gather; where it does not, reading all parts would cost memory
    // traffic.
    constexpr int64_t kVector = 16;
    const int64_t extent = parts[0]->shape[dim], inner = numel(std::span(parts[0]->shape).subspan(dim + 1));
    if (parts.size() > 1 && inner < kVector && std::all_of(parts.begin(), parts.end(), [&](Ref p) { return p->shape[dim] == extent; }))
        return extent == 0 ? parts[0] : concat_equal(*this, parts, dim);
    Shape whole = parts[0]->shape;
    whole[dim] = 0;
    for (Ref p : parts) whole[dim] += p->shape[dim];
    Ref out = nullptr;
    int64_t start = 0;
    for (Ref p : parts) {
        if (p->shape[dim] == 0) continue;
        if (!out)
            out = p->shape[dim] == whole[dim] ? p : g.op("window", {p}, {{dim, start, whole[dim], 1}, {}});
        else {
            Ref laid = g.op("window", {p}, {{dim, start, whole[dim], 1}, {}});
            out = where(g.op("ge", {positions(whole, dim), g.integer(start, DType::i64)}), laid, out);
        }
        start += p->shape[dim];
    }
    return out ? out : parts[0];
}

}  // namespace framejit::rules
