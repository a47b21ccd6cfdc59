// The rules and samples that many ops share.
#include "src/ops/rules.h"

namespace framejit::rules {

DType common(In in, const Attrs&, DType) {
    for (Ref n : in)
        if (n->dtype != in[0]->dtype) throw GraphError("operands must have one dtype");
    return in[0]->dtype;
}
DType floating(In in, const Attrs& at, DType hint) {
    const DType d = common(in, at, hint);
    if (!is_float(d)) throw GraphError("operands must be floating");
    return d;
}
DType integral(In in, const Attrs& at, DType hint) {
    const DType d = common(in, at, hint);
    if (is_float(d)) throw GraphError("operands must be integers or booleans");
    return d;
}

Shape same(In in, const Attrs&, const Shape&) {
    for (Ref n : in)
        if (n->shape != in[0]->shape) throw GraphError("operands must have one shape");
    return in[0]->shape;
}
Shape keepdim(In in, const Attrs& at, const Shape&) {
    Shape s = in[0]->shape;
    if (at.i.empty() || at.i[0] < 0 || at.i[0] >= int64_t(s.size())) throw GraphError("no such dimension");
    s[at.i[0]] = 1;
    return s;
}

std::vector<Sample> none() { return {}; }
std::vector<Sample> unary() {
    return {{{{DType::f32, {3, 37}}}}, {{{DType::bf16, {5, 16}}}}, {{{DType::f16, {5, 19}}}}, {{{DType::f64, {2, 9}}}}};
}
std::vector<Sample> positive() {
    return {{{{DType::f32, {3, 37}}}, {}, 0.01, 9}, {{{DType::bf16, {5, 16}}}, {}, 0.01, 9}, {{{DType::f64, {2, 9}}}, {}, 0.01, 9}};
}
std::vector<Sample> binary() {
    return {{{{DType::f32, {3, 37}}, {DType::f32, {37}}}},
            {{{DType::bf16, {2, 5, 16}}, {DType::bf16, {5, 1}}}},
            {{{DType::f32, {4}}, {DType::f32, {}}}}};
}
std::vector<Sample> rows() {
    return {{{{DType::f32, {5, 37}}}, {{1}, {}}},
            {{{DType::f32, {3, 200}}}, {{1}, {}}},
            {{{DType::bf16, {4, 64}}}, {{1}, {}}},
            {{{DType::f32, {5, 6, 7}}}, {{1}, {}}}};
}

std::vector<int64_t> inverse(std::span<const int64_t> permutation) {
    std::vector<int64_t> out(permutation.size());
    for (size_t d = 0; d < out.size(); d++) out[permutation[d]] = int64_t(d);
    return out;
}

}  // namespace framejit::rules
