// Reductions over any dimensions. A graph op reduces one dimension and keeps it; here dimensions are merged and dropped.
#include <algorithm>
#include <limits>

#include "src/ops/aten.h"

namespace framejit::aten {
namespace {

// The recorded shape says whether the dimensions were kept.
Ref shaped(Call& c, Ref r, size_t k = 0) { return c.view(r, c.out[k].shape); }

// sum and prod: integers in i64, floats of 16 bits in f32, truths as truths; whatever was asked for is in the recorded dtype.
template <const OpDef& op, const OpDef& of_bools> Ref accumulated(Call& c, std::span<const int64_t> dims) {
    const DType d = c.out[0].dtype;
    Ref x = c.cast(c.tensor(0), d);
    return d == DType::b1 ? c.reduce_all(of_bools.name, x, dims) : c.cast(c.reduce_all(op.name, c.up(x), dims), d);
}
template <const OpDef& op, const OpDef& of_bools> Results fold(Call& c) {
    return {shaped(c, accumulated<op, of_bools>(c, c.dims(1, c.tensor(0))))};
}
template <const OpDef& op, const OpDef& of_bools> Results fold_all(Call& c) {
    return {shaped(c, accumulated<op, of_bools>(c, c.dims(size_t(-1), c.tensor(0))))};
}

Results mean_over(Call& c, std::span<const int64_t> dims) {
    Ref x = c.tensor(0);
    require(is_float(c.out[0].dtype));
    int64_t count = 1;
    for (int64_t d : dims) count *= x->shape[d];
    Ref sum = c.reduce_all("sum", c.up(c.cast(x, c.out[0].dtype)), dims);
    return {shaped(c, c.as_recorded(c.div(sum, double(count))))};
}
Results mean(Call& c) { return mean_over(c, c.dims(1, c.tensor(0))); }
Results mean_all(Call& c) { return mean_over(c, c.dims(size_t(-1), c.tensor(0))); }

template <const OpDef& op, const OpDef& of_bools> Ref extremum(Call& c, std::span<const int64_t> dims) {
    Ref x = c.tensor(0);
    require(numel(x->shape) > 0);
    return c.reduce_all(x->dtype == DType::b1 ? of_bools.name : op.name, x, dims);
}
template <const OpDef& op, const OpDef& of_bools> Results extremum_dims(Call& c) {
    return {shaped(c, extremum<op, of_bools>(c, c.dims(1, c.tensor(0))))};
}
template <const OpDef& op, const OpDef& of_bools> Results extremum_all(Call& c) {
    return {shaped(c, extremum<op, of_bools>(c, c.dims(size_t(-1), c.tensor(0))))};
}

// One dimension, or the whole flattened.
Ref position(Call& c, std::string_view op, Ref x, size_t dim_at) {
    require(x->dtype != DType::b1 && numel(x->shape) > 0);
    if (!c.given(dim_at)) return c.reduce(op, c.view(x, {numel(x->shape)}), 0);
    const int64_t d = c.dim(dim_at, x);
    return c.reduce(op, x->shape.empty() ? c.view(x, {1}) : x, d);
}
template <const OpDef& op> Results arg(Call& c) { return {shaped(c, position(c, op.name, c.tensor(0), 1))}; }
template <const OpDef& op, const OpDef& where> Results with_position(Call& c) {
    Ref x = c.tensor(0);
    Ref index = position(c, where.name, x, 1);
    const int64_t d = c.dim(1, x);
    return {shaped(c, c.reduce(op.name, x->shape.empty() ? c.view(x, {1}) : x, d)), shaped(c, index, 1)};
}
Results aminmax(Call& c) {
    const std::vector<int64_t> dims = c.given(1) ? std::vector<int64_t>{c.dim(1, c.tensor(0))} : std::vector<int64_t>{};
    Ref x = c.tensor(0);
    require(x->dtype != DType::b1 && numel(x->shape) > 0 && !x->shape.empty());
    const std::vector<int64_t> over = dims.empty() ? c.dims(size_t(-1), x) : dims;
    return {shaped(c, c.reduce_all("amin", x, over)), shaped(c, c.reduce_all("amax", x, over), 1)};
}

template <const OpDef& op> Ref truth(Call& c, std::span<const int64_t> dims) {
    return c.as_recorded(c.reduce_all(op.name, c.cast(c.tensor(0), DType::b1), dims));  // u8 gives u8
}
// Unlike everywhere else an empty list means no dimension here.
template <const OpDef& op> Results truth_dims(Call& c) {
    const bool nothing = c.given(1) && c.integers(1).empty();
    return {shaped(c, truth<op>(c, nothing ? std::vector<int64_t>{} : c.dims(1, c.tensor(0))))};
}
template <const OpDef& op> Results truth_all(Call& c) { return {shaped(c, truth<op>(c, c.dims(size_t(-1), c.tensor(0))))}; }

// ---- several passes over the same dimensions: they are brought together into one ----

struct Merged {
    Ref x;
    int64_t dim;
};
Merged merged(Call& c, Ref x, std::span<const int64_t> dims) {
    if (dims.empty()) return {c.view(x, {1}), 0};
    if (dims.back() - dims.front() + 1 != int64_t(dims.size())) {  // bring them to the end
        std::vector<int64_t> order;
        for (int64_t d = 0; d < int64_t(x->shape.size()); d++)
            if (std::find(dims.begin(), dims.end(), d) == dims.end()) order.push_back(d);
        const int64_t kept = int64_t(order.size());
        order.insert(order.end(), dims.begin(), dims.end());
        x = c.transpose(x, order);
        Shape shape(x->shape.begin(), x->shape.begin() + kept);
        shape.push_back(numel(std::span(x->shape).subspan(kept)));
        return {c.view(x, shape), kept};
    }
    Shape shape(x->shape.begin(), x->shape.begin() + dims.front());
    shape.push_back(numel(std::span(x->shape).subspan(dims.front(), dims.size())));
    shape.insert(shape.end(), x->shape.begin() + dims.back() + 1, x->shape.end());
    return {c.view(x, shape), dims.front()};
}

struct Moments {
    Ref var, mean;
};
Moments moments(Call& c) {  // in f64, as eager: the squares of large f32 do not fit into f32
    Ref x = c.tensor(0);
    require(is_float(x->dtype));
    const double correction = c.given(2) ? c.real(2) : 1;
    auto [m, d] = merged(c, c.cast(x, DType::f64), c.dims(1, x));
    return {c.reduce("var", m, d, {correction}), c.reduce("mean", m, d)};
}
Results var(Call& c) { return {shaped(c, c.as_recorded(moments(c).var))}; }
Results std_dev(Call& c) { return {shaped(c, c.as_recorded(c("sqrt", {moments(c).var})))}; }
Results var_mean(Call& c) {
    Moments m = moments(c);
    return {shaped(c, c.as_recorded(m.var)), shaped(c, c.as_recorded(m.mean, 1), 1)};
}
Results std_mean(Call& c) {
    Moments m = moments(c);
    return {shaped(c, c.as_recorded(c("sqrt", {m.var}))), shaped(c, c.as_recorded(m.mean, 1), 1)};
}
Results logsumexp(Call& c) {
    Ref x = c.tensor(0);
    require(is_float(x->dtype) && numel(x->shape) > 0);
    auto [m, d] = merged(c, x, c.dims(1, x));
    return {shaped(c, c.reduce("logsumexp", m, d))};
}

Results norm(Call& c, double order, std::span<const int64_t> dims) {
    Ref x = c.tensor(0);
    require(is_float(x->dtype) && is_float(c.out[0].dtype) && numel(x->shape) > 0);
    Ref a = c("abs", {c.up(c.cast(x, c.out[0].dtype))});
    if (order == 2) return {shaped(c, c.as_recorded(c("sqrt", {c.reduce_all("sum", c.mul(a, a), dims)})))};
    if (order == 1) return {shaped(c, c.as_recorded(c.reduce_all("sum", a, dims)))};
    require(order == std::numeric_limits<double>::infinity());
    return {shaped(c, c.as_recorded(c.reduce_all("amax", a, dims)))};
}
Results vector_norm(Call& c) { return norm(c, c.given(1) ? c.real(1) : 2, c.dims(2, c.tensor(0))); }
Results norm_all(Call& c) { return norm(c, c.given(1) ? c.real(1) : 2, c.dims(size_t(-1), c.tensor(0))); }

Results mse_loss(Call& c) {
    Ref x = c.tensor(0), y = c.tensor(1);
    require(is_float(x->dtype) && x->dtype == y->dtype && x->shape == y->shape);
    Ref d = c.sub(x, y);  // eager rounds after every step here
    Ref square = c.mul(d, d);
    const int64_t reduction = c.given(2) ? c.integer(2) : 1;
    if (reduction == 0) return {square};
    Ref sum = c.reduce_all("sum", c.up(square), c.dims(size_t(-1), x));
    return {shaped(c, c.as_recorded(reduction == 1 ? c.div(sum, double(numel(x->shape))) : sum))};
}

// A short scan of integers is a masked sum per element, which fuses; a long one, or one of floats (whose order of additions shows), is
// torch's.
Results cumsum(Call& c) {
    Ref x = c.tensor(0);
    require(!is_float(x->dtype) && !x->shape.empty() && is_int(c.out[0].dtype));
    const int64_t d = c.dim(1, x), n = x->shape[d];
    require(n > 0 && numel(x->shape) * n <= 1 << 14);
    Shape beside = x->shape, spread = x->shape;  // [.., element, term, ..]
    beside.insert(beside.begin() + d, 1);
    spread.insert(spread.begin() + d, n);
    Ref terms = c.expand(c.view(c.cast(x, c.out[0].dtype), beside), spread);
    Ref counts = c("le", {c.positions(spread, d + 1), c.positions(spread, d)});
    return {shaped(c, c.sum(c.where(counts, terms, c.number(0, terms)), d + 1))};
}

constexpr Row kRules[] = {
    {"aten::sum", rule<fold_all<op_sum, op_any>>},
    {"aten::sum.dim_IntList", rule<fold<op_sum, op_any>>},
    {"aten::prod", rule<fold_all<op_prod, op_all>>},
    {"aten::prod.dim_int", rule<fold<op_prod, op_all>>},
    {"aten::mean", rule<mean_all>},
    {"aten::mean.dim", rule<mean>},
    {"aten::amax", rule<extremum_dims<op_amax, op_any>>},
    {"aten::amin", rule<extremum_dims<op_amin, op_all>>},
    {"aten::max", rule<extremum_all<op_amax, op_any>>},
    {"aten::min", rule<extremum_all<op_amin, op_all>>},
    {"aten::argmax", rule<arg<op_argmax>>},
    {"aten::argmin", rule<arg<op_argmin>>},
    {"aten::max.dim", rule<with_position<op_amax, op_argmax>>},
    {"aten::min.dim", rule<with_position<op_amin, op_argmin>>},
    {"aten::aminmax", rule<aminmax>},
    {"aten::any", rule<truth_all<op_any>>},
    {"aten::any.dim", rule<truth_dims<op_any>>},
    {"aten::any.dims", rule<truth_dims<op_any>>},
    {"aten::all", rule<truth_all<op_all>>},
    {"aten::all.dim", rule<truth_dims<op_all>>},
    {"aten::all.dims", rule<truth_dims<op_all>>},
    {"aten::_is_all_true", rule<truth_all<op_all>>},
    {"aten::_is_any_true", rule<truth_all<op_any>>},
    {"aten::var.correction", rule<var>},
    {"aten::std.correction", rule<std_dev>},
    {"aten::var_mean.correction", rule<var_mean>},
    {"aten::std_mean.correction", rule<std_mean>},
    {"aten::logsumexp", rule<logsumexp>},
    {"aten::linalg_vector_norm", rule<vector_norm>},
    {"aten::norm.ScalarOpt_dim", rule<vector_norm>},
    {"aten::norm.Scalar", rule<norm_all>},
    {"aten::cumsum", rule<cumsum>},
    {"aten::mse_loss", rule<mse_loss>},
};

}  // namespace

std::span<const Row> reduction_rules() { return kRules; }

}  // namespace framejit::aten
