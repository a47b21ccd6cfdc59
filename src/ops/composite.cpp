// Composites: a decomposition. bf16 and f16 compute in f32 inside and round once, as eager does.
#include "src/ops/rules.h"

namespace framejit {
using namespace rules;

const OpDef op_mean = {
    .name = "mean",
    .doc = "ints: dim",
    .dtype = floating,
    .shape = keepdim,
    .body = COMPOSE(Ref s = b.sum(b.up(in[0]), n.at.i[0]); return b.cast(b.div(s, double(in[0]->shape[n.at.i[0]])), n.dtype);),
    .samples = rows,
    .vjp = GRAD({b.expand(b.mul(dy, 1.0 / double(in[0]->shape[n.at.i[0]])), in[0]->shape)})};
const OpDef op_gelu = {.name = "gelu",
                       .doc = "x * normal cdf(x)",
                       .dtype = floating,
                       .shape = same,
                       .body = COMPOSE(Ref x = b.up(in[0]);
                                       return b.cast(b.mul(b.mul(x, 0.5), b.add(b("erf", {b.mul(x, 0.70710678118654752)}), 1)), n.dtype);),
                       .samples = unary};
const OpDef op_gelu_tanh = {.name = "gelu_tanh",
                            .doc = "the tanh form of gelu",
                            .dtype = floating,
                            .shape = same,
                            .body = COMPOSE(Ref x = b.up(in[0]); Ref cube = b.mul(b.mul(x, b.mul(x, x)), 0.044715);
                                            Ref t = b("tanh", {b.mul(b.add(x, cube), 0.79788456080286536)});
                                            return b.cast(b.mul(b.mul(x, 0.5), b.add(t, 1)), n.dtype);),
                            .samples = unary};
const OpDef op_silu = {.name = "silu",
                       .doc = "x * sigmoid(x)",
                       .dtype = floating,
                       .shape = same,
                       .body = COMPOSE(Ref x = b.up(in[0]); return b.cast(b.div(x, b.add(b("exp", {b.neg(x)}), 1)), n.dtype);),
                       .samples = unary};
const OpDef op_softmax = {.name = "softmax",
                          .doc = "ints: dim",
                          .dtype = floating,
                          .shape = first_shape,
                          .body = COMPOSE(const int64_t d = n.at.i[0]; Ref x = b.up(in[0]);
                                          Ref top = b("exp", {b.sub(x, b("amax", {x}, {{d}, {}}))});
                                          return b.cast(b.div(top, b.sum(top, d)), n.dtype);),
                          .samples = rows,
                          .vjp = GRAD({b.mul(out, b.sub(dy, b.sum(b.mul(dy, out), n.at.i[0])))})};
const OpDef op_log_softmax = {.name = "log_softmax",
                              .doc = "ints: dim",
                              .dtype = floating,
                              .shape = first_shape,
                              .body = COMPOSE(const int64_t d = n.at.i[0]; Ref x = b.up(in[0]); Ref s = b.sub(x, b("amax", {x}, {{d}, {}}));
                                              return b.cast(b.sub(s, b("log", {b.sum(b("exp", {s}), d)})), n.dtype);),
                              .samples = rows,
                              .vjp = GRAD({b.sub(dy, b.mul(b("exp", {out}), b.sum(dy, n.at.i[0])))})};
const OpDef op_layer_norm = {
    .name = "layer_norm",
    .doc = "over the last dimension. operands: x, weight, bias; floats: eps",
    .dtype = first,
    .shape = first_shape,
    .body = COMPOSE(Ref x = b.up(in[0]); const int64_t d = int64_t(x->shape.size()) - 1; const double extent = double(x->shape.back());
                    Ref c = b.sub(x, b.div(b.sum(x, d), extent));
                    Ref r = b("rsqrt", {b.add(b.div(b.sum(b.mul(c, c), d), extent), n.at.f[0])}); Ref y = b.mul(c, r);
                    if (in.size() > 1) y = b.mul(y, b.up(in[1])); if (in.size() > 2) y = b.add(y, b.up(in[2])); return b.cast(y, n.dtype);),
    .samples = [] {
        return std::vector<Sample>{{{{DType::f32, {5, 37}}, {DType::f32, {37}}, {DType::f32, {37}}}, {{}, {1e-5}}},
                                   {{{DType::bf16, {5, 64}}, {DType::bf16, {64}}, {DType::bf16, {64}}}, {{}, {1e-5}}}};
    }};

}  // namespace framejit
