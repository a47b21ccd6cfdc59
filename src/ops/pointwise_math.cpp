// Elementary functions. bf16 and f16 live in registers as f32; f64 goes to the C library (mathlib.h).
#include "src/ops/mathlib.h"
#include "src/ops/rules.h"

namespace framejit {
using namespace rules;

const OpDef op_exp = {.name = "exp",
                      .doc = "e ** x",
                      .dtype = floating,
                      .shape = same,
                      .body = EMIT(0.19, mathlib::exp(e, a[0])),
                      .samples = unary,
                      .vjp = GRAD({b.mul(dy, out)})};
const OpDef op_log = {.name = "log",
                      .doc = "natural logarithm",
                      .dtype = floating,
                      .shape = same,
                      .body = EMIT(0.33, mathlib::log(e, a[0])),
                      .samples = positive,
                      .vjp = GRAD({b.div(dy, in[0])})};
const OpDef op_tanh = {.name = "tanh",
                       .doc = "hyperbolic tangent",
                       .dtype = floating,
                       .shape = same,
                       .body = EMIT(0.26, mathlib::tanh(e, a[0])),
                       .samples = unary,
                       .vjp = GRAD({b.mul(dy, b.sub(b.number(1, out), b.mul(out, out)))})};
const OpDef op_erf = {.name = "erf",
                      .doc = "error function",
                      .dtype = floating,
                      .shape = same,
                      .body = EMIT(0.26, mathlib::erf(e, a[0])),
                      .samples = unary,
                      .vjp = GRAD({b.mul(dy, b.mul(b("exp", {b.neg(b.mul(in[0], in[0]))}), 1.1283791670955126))})};
const OpDef op_sin = {.name = "sin",
                      .doc = "sine",
                      .dtype = floating,
                      .shape = same,
                      .body = EMIT(0.3, mathlib::sin(e, a[0])),
                      .samples = unary,
                      .vjp = GRAD({b.mul(dy, b("cos", {in[0]}))})};
const OpDef op_cos = {.name = "cos",
                      .doc = "cosine",
                      .dtype = floating,
                      .shape = same,
                      .body = EMIT(0.3, mathlib::cos(e, a[0])),
                      .samples = unary,
                      .vjp = GRAD({b.neg(b.mul(dy, b("sin", {in[0]})))})};
const OpDef op_sigmoid = {.name = "sigmoid",
                          .doc = "1 / (1 + exp(-x))",
                          .dtype = floating,
                          .shape = same,
                          .body = EMIT(0.26, mathlib::sigmoid(e, a[0])),
                          .samples = unary,
                          .vjp = GRAD({b.mul(dy, b.mul(out, b.sub(b.number(1, out), out)))})};
const OpDef op_sqrt = {.name = "sqrt",
                       .doc = "square root",
                       .dtype = floating,
                       .shape = same,
                       .body = EMIT(0.05, e.sqrt(a[0])),
                       .samples = positive,
                       .vjp = GRAD({b.div(b.mul(dy, 0.5), out)})};
const OpDef op_rsqrt = {.name = "rsqrt",
                        .doc = "1 / sqrt(x)",
                        .dtype = floating,
                        .shape = same,
                        .body = EMIT(0.1, e.div(e.like(a[0], 1), e.sqrt(a[0]))),
                        .samples = positive,
                        .vjp = GRAD({b.mul(b.mul(dy, -0.5), b("pow", {out}, {{}, {3}}))})};
const OpDef op_reciprocal = {.name = "reciprocal",
                             .doc = "1 / x",
                             .dtype = floating,
                             .shape = same,
                             .body = EMIT(0.05, e.div(e.like(a[0], 1), a[0])),
                             .samples = positive,
                             .vjp = GRAD({b.neg(b.mul(dy, b.mul(out, out)))})};

namespace {
Val power(Emitter& e, Val x, double p) {
    if (p == 0) return e.like(x, 1);
    if (p == 1) return x;
    if (p == 2) return e.mul(x, x);
    if (p == 3) return e.mul(e.mul(x, x), x);
    if (p == 0.5) return e.sqrt(x);
    if (p == -0.5) return e.div(e.like(x, 1), e.sqrt(x));
    if (p == -1) return e.div(e.like(x, 1), x);
    return mathlib::exp(e, e.mul(e.like(x, p), mathlib::log(e, x)));
}
}  // namespace
const OpDef op_pow = {.name = "pow",
                      .doc = "x ** number. floats: the exponent",
                      .dtype = first,
                      .shape = same,
                      .body = EMIT(0.05, power(e, a[0], n.at.f[0])),
                      .samples =
                          [] {
                              return std::vector<Sample>{{{{DType::f32, {3, 37}}}, {{}, {2}}},
                                                         {{{DType::f32, {3, 37}}}, {{}, {-0.5}}, 0.1, 4},
                                                         {{{DType::bf16, {3, 37}}}, {{}, {3}}}};
                          },
                      .vjp = GRAD({b.mul(dy, b.mul(b("pow", {in[0]}, {{}, {n.at.f[0] - 1}}), n.at.f[0]))})};

}  // namespace framejit
