// Writes through views: what a contiguous value becomes when a strided window of it is overwritten.
// A window is a box when each of its dimensions steps along one dimension of the value and stays inside: then the write is one `put` per
// dimension. If it is no box of the value's own shape (a view had split or merged dimensions), the value is first viewed in a shape whose
// strides are those of the window.
#include <algorithm>

#include "src/ops/rules.h"

namespace framejit {
namespace {

using rules::Build;

struct Step {
    int64_t start = 0, length = 1, step = 1;
    int from = -1;  // the dimension of the window that moves along here
};

std::optional<std::vector<Step>> box_of(const Window& w, const Shape& shape) {
    const Shape strides = contiguous_strides(shape);
    std::vector<Step> steps(shape.size());
    int64_t rest = w.offset;
    for (size_t d = 0; d < shape.size(); d++) {
        if (shape[d] == 1) continue;
        steps[d].start = rest / strides[d];
        rest %= strides[d];
        if (steps[d].start >= shape[d]) return std::nullopt;
    }
    for (size_t k = 0; k < w.sizes.size(); k++) {
        if (w.sizes[k] == 1) continue;
        auto fits = [&](size_t d) {
            const int64_t step = w.strides[k] / strides[d];
            return shape[d] > 1 && steps[d].from < 0 && step > 0 && w.strides[k] % strides[d] == 0 &&
                   steps[d].start + step * (w.sizes[k] - 1) < shape[d];
        };
        size_t d = 0;
        while (d < shape.size() && !fits(d)) d++;
        if (d == shape.size()) return std::nullopt;
        steps[d] = {steps[d].start, w.sizes[k], w.strides[k] / strides[d], int(k)};
    }
    return steps;
}

// The shape of `count` elements whose contiguous strides are these, largest first; nothing when they do not divide one another.
std::optional<Shape> shape_with(std::vector<int64_t> strides, int64_t count) {
    strides.push_back(1);
    std::sort(strides.rbegin(), strides.rend());
    strides.erase(std::unique(strides.begin(), strides.end()), strides.end());
    Shape shape;
    int64_t above = count;
    for (int64_t s : strides) {
        if (s <= 0 || above % s != 0) return std::nullopt;
        shape.push_back(above / s);
        above = s;
    }
    return shape;
}

std::vector<int64_t> moving_strides(const Window& w) {
    std::vector<int64_t> out;
    for (size_t k = 0; k < w.sizes.size(); k++)
        if (w.sizes[k] > 1) out.push_back(w.strides[k]);
    return out;
}

// The dimensions of the value in the order of the base's, with extent 1 where the window stands still.
Ref in_base_order(Build b, Ref value, std::span<const Step> steps) {
    std::vector<int64_t> order;
    Shape shape;
    for (const Step& s : steps) {
        if (s.from >= 0) order.push_back(s.from);
        shape.push_back(s.length);
    }
    for (size_t k = 0; k < value->shape.size(); k++)
        if (std::find(order.begin(), order.end(), int64_t(k)) == order.end()) order.push_back(int64_t(k));
    return b.view(b.transpose(value, order), shape);
}

Ref put_box(Build b, Ref base, std::span<const Step> steps, size_t d, Ref value) {
    if (d == steps.size()) return value;
    const Step& s = steps[d];
    Ref inner = b.slice(base, int64_t(d), s.start, s.length, s.step);
    return b.put(base, int64_t(d), s.start, s.step, put_box(b, inner, steps, d + 1, value));
}

}  // namespace

std::optional<Ref> put_window(Graph& g, Ref base, const Window& w, Ref value) {
    if (value->shape != w.sizes || value->dtype != base->dtype) throw GraphError("put_window: the value does not fit the window");
    if (numel(w.sizes) == 0) return base;
    const int64_t count = numel(base->shape);
    const std::vector<int64_t> own = moving_strides(w);
    std::vector<int64_t> all = own;
    for (int64_t s : contiguous_strides(base->shape)) all.push_back(s);
    Build b{g};
    for (const std::optional<Shape>& shape : {std::optional(base->shape), shape_with(all, count), shape_with(own, count)}) {
        if (!shape) continue;
        const auto steps = box_of(w, *shape);
        if (!steps) continue;
        Ref written = put_box(b, b.view(base, *shape), *steps, 0, in_base_order(b, value, *steps));
        return b.view(written, base->shape);
    }
    return std::nullopt;
}

}  // namespace framejit
