// Index ops: never a kernel of their own, only a map from output coordinates to coordinates of in[0].
#include "src/ops/rules.h"

namespace framejit {
using namespace rules;

namespace {
Shape from_attr(In, const Attrs& at, const Shape&) { return at.i; }

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
            position = env.divmod(position, from[d], &c[d]);
        }
        if (z_end > z && from[z] != 1) c[z] = position;
    }
    return c;
}
}  // namespace

const OpDef op_expand = {.name = "expand",
                         .doc = "broadcast. ints: shape",
                         .dtype = first,
                         .shape = from_attr,
                         .body = Index{map_expand},
                         .samples = [] { return std::vector<Sample>{{{{DType::f32, {3, 1}}}, {{2, 3, 20}, {}}}}; },
                         .vjp = GRAD({b.sum_to(dy, in[0]->shape)})};
const OpDef op_view = {.name = "view",
                       .doc = "the same elements in another shape. ints: shape",
                       .dtype = first,
                       .shape = from_attr,
                       .body = Index{map_view},
                       .samples =
                           [] {
                               return std::vector<Sample>{{{{DType::f32, {4, 6, 20}}}, {{24, 20}, {}}},
                                                          {{{DType::f32, {24, 20}}}, {{4, 6, 20}, {}}},
                                                          {{{DType::f32, {6, 20}}}, {{2, 60}, {}}}};
                           },
                       .vjp = GRAD({b.view(dy, in[0]->shape)})};
const OpDef op_transpose = {
    .name = "transpose",
    .doc = "permutation. ints: for each output dimension the input's",
    .dtype = first,
    .shape =
        [](In in, const Attrs& at, const Shape&) {
            Shape s;
            for (int64_t d : at.i) s.push_back(in[0]->shape[d]);
            return s;
        },
    .body = Index{[](const Node& n, const Coords& out, IndexEnv&) {
        Coords c(out.size());
        for (size_t d = 0; d < out.size(); d++) c[n.at.i[d]] = out[d];
        return c;
    }},
    .samples = [] { return std::vector<Sample>{{{{DType::f32, {5, 37}}}, {{1, 0}, {}}}, {{{DType::f32, {3, 4, 20}}}, {{1, 0, 2}, {}}}}; },
    .vjp = GRAD({[&] {
        Attrs inverse;
        inverse.i.resize(n.at.i.size());
        for (size_t d = 0; d < n.at.i.size(); d++) inverse.i[n.at.i[d]] = int64_t(d);
        return b("transpose", {dy}, inverse);
    }()})};
const OpDef op_slice = {.name = "slice",
                        .doc = "ints: dim, start, length, step (may be negative)",
                        .dtype = first,
                        .shape =
                            [](In in, const Attrs& at, const Shape&) {
                                Shape s = in[0]->shape;
                                s[at.i[0]] = at.i[2];
                                return s;
                            },
                        .body = Index{[](const Node& n, const Coords& out, IndexEnv& env) {
                            Coords c = out;
                            Coord start;
                            start.c = n.at.i[1];
                            c[n.at.i[0]] = env.sum(env.scaled(out[n.at.i[0]], n.at.i[3]), start);
                            return c;
                        }},
                        .samples =
                            [] {
                                return std::vector<Sample>{{{{DType::f32, {5, 40}}}, {{1, 3, 34, 1}, {}}},
                                                           {{{DType::f32, {5, 40}}}, {{1, 39, 20, -2}, {}}},
                                                           {{{DType::f32, {9, 20}}}, {{0, 2, 3, 3}, {}}}};
                            }};
const OpDef op_gather = {.name = "gather",
                         .doc = "x[.., index[..], ..] along a dimension. ints: dim",
                         .dtype = first,
                         .shape = [](In in, const Attrs&, const Shape&) { return in[1]->shape; },
                         .body = Index{[](const Node& n, const Coords& out, IndexEnv& env) {
                             const int64_t dim = n.at.i[0];
                             Coords c = out;
                             c[dim] = env.checked(env.value(n.in[1], out), n.in[0]->shape[dim]);
                             return c;
                         }},
                         .samples = none};
const OpDef op_index = {.name = "index",
                        .doc = "x[:, i, j, ..]: one dimension per index tensor, which share a shape. ints: the first dim",
                        .dtype = first,
                        .shape =
                            [](In in, const Attrs& at, const Shape&) {
                                const Shape& x = in[0]->shape;
                                Shape s(x.begin(), x.begin() + at.i[0]);
                                s.insert(s.end(), in[1]->shape.begin(), in[1]->shape.end());
                                s.insert(s.end(), x.begin() + at.i[0] + int64_t(in.size()) - 1, x.end());
                                return s;
                            },
                        .body = Index{[](const Node& n, const Coords& out, IndexEnv& env) {
                            const int64_t dim = n.at.i[0];
                            const auto index_end = out.begin() + dim + int64_t(n.in[1]->shape.size());
                            const Coords at(out.begin() + dim, index_end);
                            Coords c(out.begin(), out.begin() + dim);
                            for (size_t k = 1; k < n.in.size(); k++)
                                c.push_back(env.checked(env.value(n.in[k], at), n.in[0]->shape[c.size()]));
                            c.insert(c.end(), index_end, out.end());
                            return c;
                        }},
                        .samples = none};
const OpDef op_window = {
    .name = "window",
    .doc = "x shifted along a dimension; what lies outside is unspecified, the user selects it away. ints: dim, offset, length",
    .dtype = first,
    .shape =
        [](In in, const Attrs& at, const Shape&) {
            Shape s = in[0]->shape;
            s[at.i[0]] = at.i[2];
            return s;
        },
    .body = Index{[](const Node& n, const Coords& out, IndexEnv& env) {
        const int64_t dim = n.at.i[0];
        Coord back;
        back.c = -n.at.i[1];
        Coords c = out;
        c[dim] = env.clamped(env.sum(out[dim], back), n.in[0]->shape[dim]);
        return c;
    }},
    .samples = none};

}  // namespace framejit
