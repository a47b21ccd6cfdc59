#include "tests/cpp/support/random_graph.h"

#include <algorithm>

namespace framejit::test {
namespace {

class Maker {
public:
    Maker(uint64_t seed, int ops) : random_(seed), ops_(ops) {}

    Graph run() {
        graph_.name = "random";
        base_ = random_shape();
        for (int i = 0, n = 1 + pick(3); i < n; i++) values_.push_back(random_input(i ? broadcastable() : base_));
        for (int i = 0; i < ops_; i++) add_op();
        for (int i = 0, n = 1 + pick(3); i < n; i++)
            graph_.outputs.push_back({values_[values_.size() - 1 - size_t(pick(int(values_.size())))]});
        graph_.outputs.push_back({values_.back()});
        return std::move(graph_);
    }

private:
    int pick(int n) { return int(random_() % uint64_t(n)); }
    int64_t extent() {
        constexpr int64_t kExtents[] = {1, 2, 3, 5, 7, 8, 9, 16, 17, 33, 64, 100};
        return kExtents[pick(12)];
    }
    Shape random_shape() {
        Shape s;
        for (int d = 0, n = pick(4); d < n; d++) s.push_back(extent());
        while (numel(s) > 20000) s.pop_back();
        return s;
    }
    Shape broadcastable() {
        Shape s = base_;
        for (int64_t& n : s)
            if (pick(3) == 0) n = 1;
        return s;
    }
    DType dtype() { return pick(5) ? DType::f32 : pick(2) ? DType::bf16 : DType::f64; }
    Ref random_input(const Shape& s) {
        Shape strides(s.size());
        std::vector<size_t> order(s.size());
        for (size_t d = 0; d < s.size(); d++) order[d] = d;
        if (pick(3) == 0) std::shuffle(order.begin(), order.end(), random_);
        int64_t step = pick(4) ? 1 : 2;
        for (size_t k = s.size(); k-- > 0;) {
            strides[order[k]] = step;
            step *= s[order[k]];
        }
        for (size_t d = 0; d < s.size(); d++)
            if (pick(8) == 0) strides[d] = 0;
        return as_f32(graph_.input(dtype(), s, strides));
    }
    Ref as_f32(Ref n) { return n->dtype == DType::f32 ? n : graph_.op("cast", {n}, {{int64_t(DType::f32)}, {}}); }
    Ref any() { return values_[size_t(pick(int(values_.size())))]; }

    void add_op() {
        Ref x = any();
        switch (pick(14)) {
        case 10: return expand(x);
        case 11: return index(x);
        case 12: return place(x);
        case 13: return best(x);
        case 0:
        case 1: return unary(x);
        case 2:
        case 3:
        case 4: return binary(x);
        case 5:
        case 6: return reduce(x);
        case 7: return transpose(x);
        case 8: return view(x);
        default: return slice(x);
        }
    }
    void keep(Ref n) { values_.push_back(n); }
    void unary(Ref x) {
        constexpr const char* kOps[] = {"neg", "abs", "tanh", "relu", "sigmoid", "gelu"};
        keep(graph_.op(kOps[pick(6)], {x}));
    }
    void binary(Ref x) {
        constexpr const char* kOps[] = {"add", "sub", "mul", "maximum"};
        std::vector<Ref> partners;
        for (Ref y : values_)
            if (compatible(x->shape, y->shape)) partners.push_back(y);
        Ref y = partners.empty() ? graph_.scalar(0.5, DType::f32) : partners[size_t(pick(int(partners.size())))];
        keep(graph_.op(kOps[pick(4)], {x, y}));
    }
    static bool compatible(const Shape& a, const Shape& b) {
        for (size_t i = 1; i <= std::min(a.size(), b.size()); i++) {
            const int64_t m = a[a.size() - i], n = b[b.size() - i];
            if (m != n && m != 1 && n != 1) return false;
        }
        return true;
    }
    void reduce(Ref x) {
        if (x->shape.empty()) return unary(x);
        constexpr const char* kOps[] = {"sum", "amax", "softmax", "mean"};
        keep(graph_.op(kOps[pick(4)], {x}, {{pick(int(x->shape.size()))}, {}}));
    }
    void transpose(Ref x) {
        Attrs order;
        for (size_t d = 0; d < x->shape.size(); d++) order.i.push_back(int64_t(d));
        std::shuffle(order.i.begin(), order.i.end(), random_);
        keep(graph_.op("transpose", {x}, order));
    }
    void view(Ref x) {
        Shape s = x->shape;
        if (s.size() > 1 && pick(2)) {  // merge two neighbours, perhaps split elsewhere
            const size_t d = size_t(pick(int(s.size()) - 1));
            s[d] *= s[d + 1];
            s.erase(s.begin() + int64_t(d) + 1);
        }
        for (size_t d = 0; d < s.size(); d++)
            for (int64_t f : {2, 3, 5})
                if (s[d] % f == 0 && s[d] > f && pick(3) == 0) {
                    s[d] /= f;
                    s.insert(s.begin() + int64_t(d) + 1, f);
                    break;
                }
        keep(graph_.op("view", {x}, {s, {}}));
    }
    void expand(Ref x) {
        Shape s = x->shape;
        for (int64_t& n : s)
            if (n == 1 && pick(2)) n = extent();
        if (pick(3) == 0) s.insert(s.begin(), 1 + pick(4));
        if (numel(s) > 50000) return unary(x);
        keep(graph_.op("expand", {x}, {s, {}}));
    }
    void index(Ref x) {  // rows picked by a computed index, negative ones included
        if (x->shape.empty()) return unary(x);
        const int64_t dim = pick(int(x->shape.size())), extent = x->shape[size_t(dim)];
        const Shape shape = pick(2) ? Shape{int64_t(1 + pick(9))} : Shape{int64_t(1 + pick(3)), int64_t(1 + pick(3))};
        Ref i = graph_.op("view", {graph_.make(op_iota, {}, {{-1, 1}, {}}, DType::i64, {numel(shape)})}, {shape, {}});
        i = graph_.op("mod", {i, graph_.integer(extent, DType::i64)});
        Ref y = graph_.op("index", {x, i}, {{dim}, {}});
        if (numel(y->shape) < 50000) keep(y);
    }
    void place(Ref x) {  // as in cat and pad: outside of the window another value is selected
        if (x->shape.empty()) return unary(x);
        const int64_t dim = pick(int(x->shape.size())), n = x->shape[size_t(dim)], start = pick(5), length = start + n + pick(4);
        Shape along(x->shape.size(), 1);
        along[size_t(dim)] = length;
        Ref at = graph_.op("view", {graph_.make(op_iota, {}, {{0, 1}, {}}, DType::i64, {length})}, {along, {}});
        Ref in = graph_.op("bit_and", {graph_.op("ge", {at, graph_.integer(start, DType::i64)}),
                                       graph_.op("lt", {at, graph_.integer(start + n, DType::i64)})});
        keep(graph_.op("where", {in, graph_.op("window", {x}, {{dim, start, length, 1}, {}}), graph_.scalar(0.25, DType::f32)}));
    }
    void best(Ref x) {
        if (x->shape.empty()) return unary(x);
        keep(as_f32(graph_.op(pick(2) ? "argmax" : "argmin", {x}, {{pick(int(x->shape.size()))}, {}})));
    }
    void slice(Ref x) {
        if (x->shape.empty()) return unary(x);
        const int64_t d = pick(int(x->shape.size())), n = x->shape[size_t(d)];
        const int64_t step = pick(4) ? 1 : 2, length = std::max<int64_t>(1, (n / step) - pick(3));
        if ((length - 1) * step >= n) return unary(x);
        const int64_t start = n - 1 - (length - 1) * step;
        if (pick(3) == 0) return keep(graph_.op("slice", {x}, {{d, n - 1, length, -step}, {}}));
        keep(graph_.op("slice", {x}, {{d, start, length, step}, {}}));
    }

    std::mt19937_64 random_;
    int ops_;
    Graph graph_;
    Shape base_;
    std::vector<Ref> values_;
};

}  // namespace

Graph random_graph(uint64_t seed, int ops) { return Maker(seed, ops).run(); }

}  // namespace framejit::test
