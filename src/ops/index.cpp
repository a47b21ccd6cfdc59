// Index ops: never a kernel of their own, only a map from output coordinates to coordinates of in[0].
// `slice`, `diagonal`, `unfold` and `as_strided` stay affine; `view` may split a coordinate (divmod); `gather` and `index` read integers.
// `window` is the inverse of `slice`: it says where an element of a part lies, and the user selects away what lies outside (cat, pad).
#include "src/ops/rules.h"

namespace framejit {
using namespace rules;

namespace {

Coord number(int64_t v) {
    Coord c;
    c.c = v;
    return c;
}

Shape permuted(In in, const Attrs& at, const Shape&) {
    if (at.i.size() != in[0]->shape.size()) throw GraphError("a permutation has one number per dimension");
    Shape s;
    for (int64_t d : at.i) s.push_back(in[0]->shape.at(d));
    return s;
}
Shape resized(In in, const Attrs& at, const Shape&) {  // ints: dim, -, length
    if (at.i.size() != 4) throw GraphError("dim, start, length, step");
    Shape s = in[0]->shape;
    s.at(at.i[0]) = at.i[2];
    return s;
}
Shape viewed(In in, const Attrs& at, const Shape&) {
    if (numel(at.i) != numel(in[0]->shape)) throw GraphError("a view keeps the number of elements");
    return at.i;
}
Shape expanded(In in, const Attrs& at, const Shape&) {
    const Shape& from = in[0]->shape;
    if (at.i.size() < from.size()) throw GraphError("expand cannot drop dimensions");
    const size_t lead = at.i.size() - from.size();
    for (size_t d = 0; d < from.size(); d++)
        if (from[d] != 1 && from[d] != at.i[lead + d]) throw GraphError("expand changes only extents of 1");
    return at.i;
}
Shape without_diagonal(In in, const Attrs& at, const Shape&) {  // ints: offset, dim1, dim2, length
    Shape s = in[0]->shape;
    s.erase(s.begin() + std::max(at.i[1], at.i[2]));
    s.erase(s.begin() + std::min(at.i[1], at.i[2]));
    s.push_back(at.i[3]);
    return s;
}
Shape unfolded(In in, const Attrs& at, const Shape&) {  // ints: dim, size, step
    Shape s = in[0]->shape;
    s.at(at.i[0]) = (s[at.i[0]] - at.i[1]) / at.i[2] + 1;
    s.push_back(at.i[1]);
    return s;
}
Shape strided(In in, const Attrs& at, const Shape&) {  // ints: offset, sizes.., strides..
    if (in[0]->shape.size() != 1 || at.i.size() % 2 == 0) throw GraphError("as_strided looks at a flat value");
    return Shape(at.i.begin() + 1, at.i.begin() + 1 + int64_t(at.i.size()) / 2);
}
Shape indexed(In in, const Attrs& at, const Shape&) {
    const Shape& x = in[0]->shape;
    if (in.size() < 2 || at.i[0] + int64_t(in.size()) - 1 > int64_t(x.size())) throw GraphError("more index tensors than dimensions");
    for (Ref n : in.subspan(1))
        if (n->shape != in[1]->shape || !is_int(n->dtype)) throw GraphError("index tensors are integers of one shape");
    Shape s(x.begin(), x.begin() + at.i[0]);
    s.insert(s.end(), in[1]->shape.begin(), in[1]->shape.end());
    s.insert(s.end(), x.begin() + at.i[0] + int64_t(in.size()) - 1, x.end());
    return s;
}
constexpr ShapeRule second_shape = [](In in, const Attrs&, const Shape&) { return in[1]->shape; };

Coords map_expand(const Node& n, const Coords& out, IndexEnv&) {
    const Shape& shape = n.in[0]->shape;
    Coords c(shape.size());
    const size_t lead = out.size() - shape.size();
    for (size_t d = 0; d < shape.size(); d++)
        if (shape[d] != 1 || n.shape[lead + d] == 1) c[d] = out[lead + d];
    return c;
}

// Groups of dimensions with equal products, from the right; inside a group the position is linearised and split again.
Coords map_view(const Node& n, const Coords& out, IndexEnv& env) {
    const Shape& to = n.shape;
    const Shape& from = n.in[0]->shape;
    Coords c(from.size());
    if (numel(to) == 0) return c;
    int a = int(to.size()), z = int(from.size());
    while (a > 0 || z > 0) {
        const int a_end = a, z_end = z;
        int64_t pa = a > 0 ? to[--a] : 1, pz = z > 0 ? from[--z] : 1;
        while (pa != pz) {
            if (pa < pz)
                pa *= to[--a];
            else
                pz *= from[--z];
        }
        Coord position;
        int64_t step = 1;
        for (int d = a_end - 1; d >= a; d--) {
            if (to[d] != 1) position = env.sum(position, env.scaled(out[d], step));
            step *= to[d];
        }
        for (int d = z_end - 1; d > z; d--) {
            if (from[d] == 1) continue;
            step /= from[d];
            if (step == 1)
                c[d] = position, position = Coord{};  // nothing above: not a split
            else
                position = env.divmod(position, from[d], &c[d]);
        }
        if (z_end > z && from[z] != 1) c[z] = position;
    }
    return c;
}

Coords map_transpose(const Node& n, const Coords& out, IndexEnv&) {
    Coords c(out.size());
    for (size_t d = 0; d < out.size(); d++) c[n.at.i[d]] = out[d];
    return c;
}
Coords map_slice(const Node& n, const Coords& out, IndexEnv& env) {
    const int64_t dim = n.at.i[0];
    Coords c = out;
    c[dim] = env.sum(env.scaled(out[dim], n.at.i[3]), number(n.at.i[1]));
    return c;
}
Coords map_window(const Node& n, const Coords& out, IndexEnv& env) {
    const int64_t dim = n.at.i[0], step = n.at.i[3];
    Coord distance = env.sum(out[dim], number(-n.at.i[1]));
    if (step < 0) distance = env.scaled(distance, -1);
    Coord rest;
    if (step != 1 && step != -1) distance = env.divmod(distance, step < 0 ? -step : step, &rest);
    Coords c = out;
    c[dim] = env.clamped(distance, n.in[0]->shape[dim]);
    return c;
}
Coords map_diagonal(const Node& n, const Coords& out, IndexEnv& env) {
    const int64_t offset = n.at.i[0], row = n.at.i[1], column = n.at.i[2];
    Coords c(n.in[0]->shape.size());
    size_t next = 0;
    for (int64_t d = 0; d < int64_t(c.size()); d++) {
        if (d == row)
            c[d] = env.sum(out.back(), number(offset < 0 ? -offset : 0));
        else if (d == column)
            c[d] = env.sum(out.back(), number(offset > 0 ? offset : 0));
        else
            c[d] = out[next++];
    }
    return c;
}
Coords map_unfold(const Node& n, const Coords& out, IndexEnv& env) {
    Coords c(out.begin(), out.end() - 1);
    Coord& x = c[n.at.i[0]];
    x = env.sum(env.scaled(x, n.at.i[2]), out.back());
    return c;
}
Coords map_as_strided(const Node& n, const Coords& out, IndexEnv& env) {
    Coord position = number(n.at.i[0]);
    for (size_t d = 0; d < out.size(); d++) position = env.sum(position, env.scaled(out[d], n.at.i[1 + out.size() + d]));
    return {position};
}
Coords map_gather(const Node& n, const Coords& out, IndexEnv& env) {
    const int64_t dim = n.at.i[0];
    Coords c = out;
    c[dim] = env.checked(env.value(n.in[1], out), n.in[0]->shape[dim]);
    return c;
}
Coords map_index(const Node& n, const Coords& out, IndexEnv& env) {
    const auto begin = out.begin() + n.at.i[0], end = begin + int64_t(n.in[1]->shape.size());
    const Coords at(begin, end);
    Coords c(out.begin(), begin);
    for (size_t k = 1; k < n.in.size(); k++) c.push_back(env.checked(env.value(n.in[k], at), n.in[0]->shape[c.size()]));
    c.insert(c.end(), end, out.end());
    return c;
}

// Zeros, except where a slice of the value came from: what the gradient of a slice is.
Ref unslice(Build b, const Node& n, Ref dy, const Shape& whole) {
    return b.put(b.expand(b.number(0, dy), whole), n.at.i[0], n.at.i[1], n.at.i[3], dy);
}

// What an element gives to several places, they give back: dx[v] = sum over k of dy[k] where index[k] is v. One place (a loss that picks a
// class) needs no sum.
Ref ungather(Build b, const Node& n, In in, Ref dy) {
    const int64_t dim = n.at.i[0];
    const Shape& shape = in[0]->shape;
    Ref index = in[1], grad = b.up(dy);
    Shape spread = index->shape;  // [.., extent, k, ..]
    spread.insert(spread.begin() + dim, shape[dim]);
    Shape lifted = index->shape;
    lifted.insert(lifted.begin() + dim, 1);
    auto beside = [&](Ref v) { return b.expand(b.view(v, lifted), spread); };
    Ref hit = b("eq", {b.cast(beside(index), DType::i64), b.positions(spread, dim)});
    Ref part = b.reduce("sum", b.where(hit, beside(grad), b.number(0, grad)), dim + 1);
    Shape merged = index->shape;
    merged[dim] = shape[dim];
    return b.cast(b.pad_to(b.view(part, merged), shape), dy->dtype);
}

template <class... S> std::vector<Sample> samples(S... s) { return {s...}; }
Sample f32(Shape shape, std::vector<int64_t> ints) { return {{{DType::f32, std::move(shape)}}, {std::move(ints), {}}}; }
Sample picks(Shape shape, std::vector<Shape> indices, int64_t dim, double extent) {
    Sample s{{{DType::f32, std::move(shape)}}, {{dim}, {}}, 0, extent};
    for (Shape& i : indices) s.in.push_back({DType::i64, i});
    return s;
}

}  // namespace

#define INDEX(word, text, shape_rule, values, ...)                                                                                         \
    const OpDef op_##word = {.name = #word, .doc = text, .dtype = first, .shape = shape_rule, .body = Index{map_##word}, .samples = [] {   \
                                 return values;                                                                                            \
                             } __VA_OPT__(, .vjp = GRAD(__VA_ARGS__))};

INDEX(expand, "broadcast. ints: shape", expanded, samples(f32({3, 1}, {2, 3, 20}), f32({}, {4})), {b.sum_to(dy, in[0]->shape)})
INDEX(view, "the same elements in another shape. ints: shape", viewed,
      samples(f32({4, 6, 20}, {24, 20}), f32({24, 20}, {4, 6, 20}), f32({6, 20}, {2, 60}), f32({4, 15}, {20, 3}), f32({5, 1}, {1, 5})),
      {b.view(dy, in[0]->shape)})
INDEX(transpose, "permutation. ints: for each output dimension the input's", permuted,
      samples(f32({5, 37}, {1, 0}), f32({3, 4, 20}, {1, 2, 0})), {b.transpose(dy, inverse(n.at.i))})
INDEX(slice, "ints: dim, start, length, step (may be negative)", resized,
      samples(f32({5, 40}, {1, 3, 34, 1}), f32({5, 40}, {1, 39, 20, -2}), f32({9, 20}, {0, 2, 3, 3})), {unslice(b, n, dy, in[0]->shape)})
INDEX(window, "x laid out along a dimension of another length. ints: dim, start, length, step. Values outside are unspecified", resized,
      samples(), {b.slice(dy, n.at.i[0], n.at.i[1], in[0]->shape[n.at.i[0]], n.at.i[3])})
INDEX(diagonal, "ints: offset, dim1, dim2, length; the diagonal comes last", without_diagonal,
      samples(f32({5, 7}, {1, 0, 1, 5}), f32({5, 2, 7}, {-2, 0, 2, 3})))
INDEX(unfold, "overlapping windows; they come last. ints: dim, size, step", unfolded,
      samples(f32({3, 20}, {1, 5, 2}), f32({9, 4}, {0, 3, 3})))
INDEX(as_strided, "a strided look at a flat value. ints: offset, sizes.., strides..", strided,
      samples(f32({60}, {2, 4, 5, 12, 1}), f32({60}, {0, 4, 4, 4, 1, 1, 5})))
INDEX(gather, "x[.., index[..], ..]. ints: dim", second_shape,
      samples(picks({5, 7}, {{5, 3}}, 1, 7), picks({5, 7}, {{2, 7}}, 0, 5), picks({5, 7}, {{3, 1}}, 1, 7)),
      {ungather(b, n, in, dy), nullptr})
INDEX(index, "x[:, i, j, ..]: one dimension per index tensor, which share a shape. ints: the first dim", indexed,
      samples(picks({5, 7}, {{3, 2}}, 0, 5), picks({4, 5, 7}, {{6}}, 1, 5), picks({4, 5, 7}, {{6}, {6}}, 0, 4)))
#undef INDEX

}  // namespace framejit
