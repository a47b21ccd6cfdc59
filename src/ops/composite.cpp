// Composites: a decomposition. bf16 and f16 compute in f32 inside and round once, as eager does.
// A composite has a VJP of its own where the gradient of its parts would not be finite, or would do needless work.
#include <limits>

#include "src/ops/rules.h"

namespace framejit {
using namespace rules;

namespace {

double extent(const Node& n, In in) { return double(in[0]->shape[n.at.i[0]]); }
Ref magnitude(Build b, Ref x) { return b("abs", {x}); }
Ref infinity(Build b, Ref like) { return b.number(std::numeric_limits<double>::infinity(), like); }

Ref mean(Build b, const Node& n, In in) { return b.div(b.sum(b.up(in[0]), n.at.i[0]), extent(n, in)); }

Ref var(Build b, const Node& n, In in) {
    return b.div(b.moments(b.up(in[0]), n.at.i[0]).squares, std::max(0.0, extent(n, in) - n.at.f[0]));
}

// An infinite maximum is not subtracted: inf - inf would be NaN.
Ref logsumexp(Build b, const Node& n, In in) {
    Ref x = b.up(in[0]);
    Ref top = b.reduce("amax", x, n.at.i[0]);
    top = b.where(b("eq", {magnitude(b, top), infinity(b, top)}), b.number(0, top), top);
    return b.add(b("log", {b.sum(b.exp(b.sub(x, top)), n.at.i[0])}), top);
}

Ref softmax(Build b, const Node& n, In in) {
    Ref x = b.up(in[0]);
    Ref e = b.exp(b.sub(x, b.reduce("amax", x, n.at.i[0])));
    return b.div(e, b.sum(e, n.at.i[0]));
}
Ref softmax_grad(Build b, const Node& n, Ref out, Ref dy) {
    Ref y = b.up(out), d = b.up(dy);
    return b.mul(y, b.sub(d, b.sum(b.mul(d, y), n.at.i[0])));
}

Ref log_softmax(Build b, const Node& n, In in) {
    Ref x = b.up(in[0]);
    Ref s = b.sub(x, b.reduce("amax", x, n.at.i[0]));
    return b.sub(s, b("log", {b.sum(b.exp(s), n.at.i[0])}));
}
Ref log_softmax_grad(Build b, const Node& n, Ref out, Ref dy) {
    Ref d = b.up(dy);
    return b.sub(d, b.mul(b.exp(b.up(out)), b.sum(d, n.at.i[0])));
}

// Weight and bias, as far as they are there.
Ref scaled_and_shifted(Build b, Ref y, In in) {
    if (in.size() > 1) y = b.mul(y, b.up(in[1]));
    if (in.size() > 2) y = b.add(y, b.up(in[2]));
    return y;
}
Ref layer_norm(Build b, const Node& n, In in) {
    Ref x = b.up(in[0]);
    const int64_t d = int64_t(x->shape.size()) - 1;
    const double count = double(x->shape.back());
    auto [mean, squares] = b.moments(x, d);
    Ref r = b("rsqrt", {b.add(b.div(squares, count), n.at.f[0])});
    return scaled_and_shifted(b, b.mul(b.sub(x, mean), r), in);
}
// With h the normalised x and w dy's share of it: dx = rstd (w - mean(w) - h mean(w h)); rms_norm has no mean to take away.
std::vector<Ref> norm_grad(Build b, const Node& n, In in, Ref dy, bool centred) {
    Ref x = b.up(in[0]), d = b.up(dy);
    const int64_t last = int64_t(x->shape.size()) - 1;
    auto mean = [&](Ref v) { return b.div(b.sum(v, last), double(x->shape.back())); };
    Ref c = centred ? b.sub(x, mean(x)) : x;
    Ref r = b("rsqrt", {b.add(mean(b.mul(c, c)), n.at.f[0])});
    Ref h = b.mul(c, r);
    Ref w = in.size() > 1 ? b.mul(d, b.up(in[1])) : d;
    Ref inner = b.sub(w, b.mul(h, mean(b.mul(w, h))));
    if (centred) inner = b.sub(inner, mean(w));
    std::vector<Ref> grads{b.cast(b.mul(inner, r), in[0]->dtype)};
    if (in.size() > 1) grads.push_back(b.cast(b.sum_to(b.mul(d, h), in[1]->shape), in[1]->dtype));
    if (in.size() > 2) grads.push_back(b.cast(b.sum_to(d, in[2]->shape), in[2]->dtype));
    return grads;
}
Ref rms_norm(Build b, const Node& n, In in) {
    Ref x = b.up(in[0]);
    Ref square = b.div(b.sum(b.mul(x, x), int64_t(x->shape.size()) - 1), double(x->shape.back()));
    return scaled_and_shifted(b, b.mul(x, b("rsqrt", {b.add(square, n.at.f[0])})), in);
}

Ref gelu(Build b, const Node&, In in) {
    Ref x = b.up(in[0]);
    return b.mul(b.mul(x, 0.5), b.add(b("erf", {b.mul(x, 0.70710678118654752)}), 1));
}
Ref gelu_grad(Build b, Ref x, Ref dy) {  // cdf + x pdf
    Ref cdf = b.mul(b.add(b("erf", {b.mul(x, 0.70710678118654752)}), 1), 0.5);
    Ref pdf = b.mul(b.exp(b.mul(b.mul(x, x), -0.5)), 0.39894228040143268);
    return b.mul(dy, b.add(cdf, b.mul(x, pdf)));
}
Ref gelu_tanh(Build b, const Node&, In in) {
    Ref x = b.up(in[0]);
    Ref cube = b.mul(b.mul(x, b.mul(x, x)), 0.044715);
    Ref t = b("tanh", {b.mul(b.add(x, cube), 0.79788456080286536)});
    return b.mul(b.mul(x, 0.5), b.add(t, 1));
}
Ref gelu_tanh_grad(Build b, Ref x, Ref dy) {
    constexpr double kSlope = 0.79788456080286536, kCubic = 0.044715;
    Ref square = b.mul(x, x);
    Ref t = b("tanh", {b.mul(b.mul(x, b.add(b.mul(square, kCubic), 1)), kSlope)});
    Ref inner = b.mul(b.add(b.mul(square, 3 * kCubic), 1), kSlope);  // the argument's own slope
    Ref bend = b.mul(b.mul(x, b.sub(b.number(1, t), b.mul(t, t))), inner);
    return b.mul(dy, b.mul(b.add(b.add(t, 1), bend), 0.5));
}
Ref silu(Build b, const Node&, In in) {
    Ref x = b.up(in[0]);
    return b.div(x, b.add(b.exp(b.neg(x)), 1));
}
Ref silu_grad(Build b, Ref x, Ref dy) {
    Ref s = b("sigmoid", {x});
    return b.mul(dy, b.mul(s, b.add(b.mul(x, b.sub(b.number(1, s), s)), 1)));
}

Ref softplus(Build b, const Node& n, In in) {
    Ref x = b.up(in[0]);
    Ref z = b.mul(x, n.at.f[0]);
    return b.where(b.compare("gt", z, n.at.f[1]), x, b.div(b("log1p", {b.exp(z)}), n.at.f[0]));
}
Ref softplus_grad(Build b, const Node& n, Ref x, Ref dy) {
    Ref z = b.mul(x, n.at.f[0]);
    return b.where(b.compare("gt", z, n.at.f[1]), dy, b.mul(dy, b("sigmoid", {z})));
}

Ref elu(Build b, const Node& n, In in) {
    Ref x = b.up(in[0]);
    const double alpha = n.at.f[0], scale = n.at.f[1], input_scale = n.at.f[2];
    Ref negative = b.mul(b("expm1", {b.mul(x, input_scale)}), alpha * scale);
    return b.where(b.compare("lt", x, 0), negative, b.mul(x, scale));
}
Ref elu_grad(Build b, const Node& n, Ref x, Ref dy) {
    const double alpha = n.at.f[0], scale = n.at.f[1], input_scale = n.at.f[2];
    Ref negative = b.mul(b.mul(dy, b.exp(b.mul(x, input_scale))), input_scale * alpha * scale);
    return b.where(b.compare("le", x, 0), negative, b.mul(dy, scale));
}

Ref mish(Build b, const Node&, In in) {
    Ref x = b.up(in[0]);
    return b.mul(x, b("tanh", {b("log1p", {b.exp(x)})}));
}
Ref mish_grad(Build b, Ref x, Ref dy) {
    Ref t = b("tanh", {b("softplus", {x}, {{}, {1, 20}})});
    Ref slope = b.mul(b("sigmoid", {x}), b.sub(b.number(1, t), b.mul(t, t)));
    return b.mul(dy, b.add(t, b.mul(x, slope)));
}

Ref log_sigmoid(Build b, const Node&, In in) {
    Ref x = b.up(in[0]);
    return b.sub(b("minimum", {b.number(0, x), x}), b("log1p", {b.exp(b.neg(magnitude(b, x)))}));
}

Ref ramp(Build b, Ref x) {  // min(max(x + 3, 0), 6)
    return b("minimum", {b("maximum", {b.add(x, 3), b.number(0, x)}), b.number(6, x)});
}
Ref hardswish(Build b, const Node&, In in) {
    Ref x = b.up(in[0]);
    return b.div(b.mul(x, ramp(b, x)), 6);
}
Ref hardswish_grad(Build b, Ref x, Ref dy) {
    Ref middle = b.mul(dy, b.add(b.div(x, 3), 0.5));
    return b.where(b.compare("le", x, -3), b.number(0, dy), b.where(b.compare("lt", x, 3), middle, dy));
}
Ref hardsigmoid(Build b, const Node&, In in) { return b.div(ramp(b, b.up(in[0])), 6); }
Ref hardsigmoid_grad(Build b, Ref x, Ref dy) {
    Ref middle = b("bit_and", {b.compare("gt", x, -3), b.compare("lt", x, 3)});
    return b.where(middle, b.div(dy, 6), b.number(0, dy));
}

Ref leaky_relu(Build b, const Node& n, In in) {
    Ref x = b.up(in[0]);
    return b.where(b.compare("gt", x, 0), x, b.mul(x, n.at.f[0]));
}

// The form that is exact at both ends.
Ref lerp(Build b, const Node& n, In in) {
    Ref x = b.up(in[0]), y = b.up(in[1]);
    const double w = n.at.f[0];
    Ref d = b.sub(y, x);
    return std::abs(w) < 0.5 ? b.add(x, b.mul(d, w)) : b.sub(y, b.mul(d, 1 - w));
}

// samples
std::vector<Sample> with(std::vector<Sample> list, std::vector<double> floats) {
    for (Sample& s : list) s.at.f = floats;
    return list;
}
std::vector<Sample> norms() {
    return {{{{DType::f32, {5, 37}}, {DType::f32, {37}}, {DType::f32, {37}}}, {{}, {1e-5}}},
            {{{DType::bf16, {5, 64}}, {DType::bf16, {64}}, {DType::bf16, {64}}}, {{}, {1e-5}}},
            {{{DType::f32, {2, 3, 20}}}, {{}, {1e-5}}},
            {{{DType::f64, {4, 6}}, {DType::f64, {6}}}, {{}, {1e-5}}}};
}
std::vector<Sample> pairs() {
    return {{{{DType::f32, {3, 37}}, {DType::f32, {3, 37}}}},
            {{{DType::f64, {9}}, {DType::f64, {9}}}},
            {{{DType::bf16, {9}}, {DType::bf16, {9}}}}};
}

}  // namespace

// The expansion ends with the one rounding; gradients compute in f32 as well. In scope in `grad`: b, n, in, out, x, d (x and dy in f32).
#define COMPOSITE(word, text, shape_rule, values, ...)                                                                                     \
    const OpDef op_##word = {                                                                                                              \
        .name = #word,                                                                                                                     \
        .doc = text,                                                                                                                       \
        .dtype = floating,                                                                                                                 \
        .shape = shape_rule,                                                                                                               \
        .body = Composite{[](Graph& g, const Node& n, In in) -> Ref {                                                                      \
            Build b{g};                                                                                                                    \
            return b.cast(word(b, n, in), n.dtype);                                                                                        \
        }},                                                                                                                                \
        .samples = [] { return values; } __VA_OPT__(                                                                                       \
                       ,                                                                                                                   \
                       .vjp = [](Graph& g, [[maybe_unused]] const Node& n, In in, [[maybe_unused]] Ref out, Ref dy) -> std::vector<Ref> {  \
                           Build b{g};                                                                                                     \
                           [[maybe_unused]] Ref x = b.up(in[0]);                                                                           \
                           [[maybe_unused]] Ref d = b.up(dy);                                                                              \
                           return {b.cast(__VA_ARGS__, in[0]->dtype)};                                                                     \
                       })};

COMPOSITE(mean, "ints: dim", keepdim, rows(), b.expand(b.div(d, extent(n, in)), in[0]->shape))
COMPOSITE(var, "ints: dim; floats: correction", keepdim, with(rows(), {1}),
          b.mul(b.sub(x, b.div(b.sum(x, n.at.i[0]), extent(n, in))), b.div(b.mul(d, 2), std::max(0.0, extent(n, in) - n.at.f[0]))))
COMPOSITE(logsumexp, "ints: dim", keepdim, rows(), b.mul(d, b.exp(b.sub(x, b.up(out)))))
COMPOSITE(softmax, "ints: dim", first_shape, rows(), softmax_grad(b, n, out, dy))
COMPOSITE(log_softmax, "ints: dim", first_shape, rows(), log_softmax_grad(b, n, out, dy))
COMPOSITE(gelu, "x * normal cdf(x)", same, unary(), gelu_grad(b, x, d))
COMPOSITE(gelu_tanh, "the tanh form of gelu", same, unary(), gelu_tanh_grad(b, x, d))
COMPOSITE(silu, "x * sigmoid(x)", same, unary(), silu_grad(b, x, d))
COMPOSITE(softplus, "log(1 + exp(beta x)) / beta, x above the threshold. floats: beta, threshold", same, with(unary(), {1, 2}),
          softplus_grad(b, n, x, d))
COMPOSITE(elu, "floats: alpha, scale, input scale", same, with(unary(), {1.5, 1, 1}), elu_grad(b, n, x, d))
COMPOSITE(mish, "x * tanh(softplus(x))", same, unary(), mish_grad(b, x, d))
COMPOSITE(log_sigmoid, "log(sigmoid(x))", same, unary(), b.mul(d, b("sigmoid", {b.neg(x)})))
COMPOSITE(hardswish, "x * min(max(x + 3, 0), 6) / 6", same, unary(), hardswish_grad(b, x, d))
COMPOSITE(hardsigmoid, "min(max(x + 3, 0), 6) / 6", same, unary(), hardsigmoid_grad(b, x, d))
COMPOSITE(leaky_relu, "floats: slope below 0", same, with(unary(), {0.01}), b.where(b.compare("gt", x, 0), d, b.mul(d, n.at.f[0])))
COMPOSITE(lerp, "x + w (y - x). floats: w", same, with(pairs(), {0.1}))
#undef COMPOSITE

#define NORM(word, text, centred)                                                                                                          \
    const OpDef op_##word = {.name = #word,                                                                                                \
                             .doc = text,                                                                                                  \
                             .dtype = first,                                                                                               \
                             .shape = first_shape,                                                                                         \
                             .body = Composite{[](Graph& g, const Node& n, In in) -> Ref {                                                 \
                                 Build b{g};                                                                                               \
                                 return b.cast(word(b, n, in), n.dtype);                                                                   \
                             }},                                                                                                           \
                             .samples = norms,                                                                                             \
                             .vjp = [](Graph& g, const Node& n, In in, Ref, Ref dy) { return norm_grad(Build{g}, n, in, dy, centred); }};
NORM(layer_norm, "over the last dimension. operands: x, weight, bias; floats: eps", true)
NORM(rms_norm, "over the last dimension. operands: x, weight, bias; floats: eps", false)
#undef NORM

}  // namespace framejit
