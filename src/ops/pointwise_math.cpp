// Elementary functions. bf16 and f16 live in registers as f32 (mathlib.h).
#include <cmath>

#include "src/ops/mathlib.h"
#include "src/ops/rules.h"

namespace framejit {
using namespace rules;

namespace {
constexpr double kLn2 = 0.69314718055994530942, kLn10 = 2.30258509299404568402;

Val power_number(Emitter& e, Val x, double p) {  // the exponents that eager treats apart
    if (p == 0) return e.like(x, 1);
    if (p == 1) return x;
    if (p == 2) return e.mul(x, x);
    if (p == 3) return e.mul(e.mul(x, x), x);
    if (p == 0.5) return e.sqrt(x);
    if (p == -0.5) return e.div(e.like(x, 1), e.sqrt(x));
    if (p == -1) return e.div(e.like(x, 1), x);
    if (p == -2) return e.div(e.like(x, 1), e.mul(x, x));
    return mathlib::power(e, x, e.like(x, p));
}

std::vector<Sample> within_one() {
    return {{{{DType::f32, {3, 37}}}, {}, -1, 1}, {{{DType::bf16, {5, 16}}}, {}, -1, 1}, {{{DType::f64, {2, 9}}}, {}, -1, 1}};
}
std::vector<Sample> above_one() { return {{{{DType::f32, {3, 37}}}, {}, 1, 9}, {{{DType::f64, {2, 9}}}, {}, 1, 9}}; }
std::vector<Sample> powers() {
    return {{{{DType::f32, {3, 37}}, {DType::f32, {37}}}, {}, 0.1, 4},
            {{{DType::f64, {9}}, {DType::f64, {9}}}, {}, 0.1, 4},
            {{{DType::bf16, {9}}, {DType::bf16, {9}}}, {}, 0.1, 4}};
}
std::vector<Sample> number_powers() {
    return {{{{DType::f32, {3, 37}}}, {{}, {2}}},
            {{{DType::f32, {3, 37}}}, {{}, {-0.5}}, 0.1, 4},
            {{{DType::bf16, {3, 37}}}, {{}, {3}}},
            {{{DType::f32, {37}}}, {{}, {1.7}}, 0.1, 4},
            {{{DType::f64, {7}}}, {{}, {-2}}, 1, 4}};
}
}  // namespace

// Gradients compute in f32 as eager's backward kernels do. In scope in them: b, in, out, dy, all at least f32.
namespace {
using Gradient = std::vector<Ref> (*)(Build b, In in, Ref out, Ref dy);
std::vector<Ref> in_f32(Gradient gradient, Build b, In in, Ref out, Ref dy) {
    std::vector<Ref> wide;
    for (Ref x : in) wide.push_back(b.up(x));
    std::vector<Ref> grads = gradient(b, wide, b.up(out), b.up(dy));
    for (size_t k = 0; k < grads.size(); k++) grads[k] = b.cast(grads[k], in[k]->dtype);
    return grads;
}
}  // namespace

#define FUNCTION(word, cost, text, values, expr, ...)                                                                                      \
    const OpDef op_##word = {.name = #word,                                                                                                \
                             .doc = text,                                                                                                  \
                             .dtype = floating,                                                                                            \
                             .shape = same,                                                                                                \
                             .body = EMIT(cost, expr),                                                                                     \
                             .samples = values,                                                                                            \
                             .vjp = [](Graph& g, const Node&, In in, Ref out, Ref dy) {                                                    \
                                 return in_f32([]([[maybe_unused]] Build b, [[maybe_unused]] In in, [[maybe_unused]] Ref out,              \
                                                  Ref dy) -> std::vector<Ref> { return {__VA_ARGS__}; },                                   \
                                               Build{g}, in, out, dy);                                                                     \
                             }};

FUNCTION(exp, 0.19, "e ** x", unary, mathlib::exp(e, a[0]), b.mul(dy, out))
FUNCTION(exp2, 0.19, "2 ** x", unary, mathlib::exp2(e, a[0]), b.mul(dy, b.mul(out, kLn2)))
FUNCTION(expm1, 0.3, "e ** x - 1, exact near 0", unary, mathlib::expm1(e, a[0]), b.mul(dy, b.add(out, 1)))
FUNCTION(log, 0.33, "natural logarithm", positive, mathlib::log(e, a[0]), b.div(dy, in[0]))
FUNCTION(log2, 0.33, "logarithm to base 2", positive, mathlib::log2(e, a[0]), b.div(dy, b.mul(in[0], kLn2)))
FUNCTION(log10, 0.35, "logarithm to base 10", positive, mathlib::log10(e, a[0]), b.div(dy, b.mul(in[0], kLn10)))
FUNCTION(log1p, 0.5, "log(1 + x), exact near 0", positive, mathlib::log1p(e, a[0]), b.div(dy, b.add(in[0], 1)))
FUNCTION(tanh, 0.26, "hyperbolic tangent", unary, mathlib::tanh(e, a[0]), b.mul(dy, b.sub(b.number(1, out), b.mul(out, out))))
FUNCTION(sinh, 0.6, "hyperbolic sine", unary, mathlib::sinh(e, a[0]), b.mul(dy, b("cosh", {in[0]})))
FUNCTION(cosh, 0.4, "hyperbolic cosine", unary, mathlib::cosh(e, a[0]), b.mul(dy, b("sinh", {in[0]})))
FUNCTION(erf, 0.35, "error function", unary, mathlib::erf(e, a[0]),
         b.mul(dy, b.mul(b("exp", {b.neg(b.mul(in[0], in[0]))}), 1.1283791670955126)))
FUNCTION(erfc, 0.5, "1 - erf(x)", unary, mathlib::erfc(e, a[0]),
         b.mul(dy, b.mul(b("exp", {b.neg(b.mul(in[0], in[0]))}), -1.1283791670955126)))
FUNCTION(sin, 0.3, "sine", unary, mathlib::sin(e, a[0]), b.mul(dy, b("cos", {in[0]})))
FUNCTION(cos, 0.3, "cosine", unary, mathlib::cos(e, a[0]), b.neg(b.mul(dy, b("sin", {in[0]}))))
FUNCTION(tan, 0.6, "tangent", within_one, mathlib::tan(e, a[0]), b.mul(dy, b.add(b.mul(out, out), 1)))
FUNCTION(asin, 0.4, "arc sine", within_one, mathlib::asin(e, a[0]), b.mul(dy, b("rsqrt", {b.sub(b.number(1, in[0]), b.mul(in[0], in[0]))})))
FUNCTION(acos, 0.4, "arc cosine", within_one, mathlib::acos(e, a[0]),
         b.neg(b.mul(dy, b("rsqrt", {b.sub(b.number(1, in[0]), b.mul(in[0], in[0]))}))))
FUNCTION(atan, 0.3, "arc tangent", unary, mathlib::atan(e, a[0]), b.div(dy, b.add(b.mul(in[0], in[0]), 1)))
FUNCTION(asinh, 0.8, "inverse hyperbolic sine", unary, mathlib::asinh(e, a[0]), b.mul(dy, b("rsqrt", {b.add(b.mul(in[0], in[0]), 1)})))
FUNCTION(acosh, 0.6, "inverse hyperbolic cosine", above_one, mathlib::acosh(e, a[0]),
         b.mul(dy, b("rsqrt", {b.add(b.mul(in[0], in[0]), -1)})))
FUNCTION(atanh, 0.6, "inverse hyperbolic tangent", within_one, mathlib::atanh(e, a[0]),
         b.div(dy, b.sub(b.number(1, in[0]), b.mul(in[0], in[0]))))
FUNCTION(atan2, 0.5, "angle of the point (x: second, y: first)", binary, mathlib::atan2(e, a[0], a[1]),
         b.div(b.mul(dy, in[1]), b.add(b.mul(in[0], in[0]), b.mul(in[1], in[1]))),
         b.neg(b.div(b.mul(dy, in[0]), b.add(b.mul(in[0], in[0]), b.mul(in[1], in[1])))))
FUNCTION(sigmoid, 0.26, "1 / (1 + exp(-x))", unary, mathlib::sigmoid(e, a[0]), b.mul(dy, b.mul(out, b.sub(b.number(1, out), out))))
FUNCTION(sqrt, 0.05, "square root", positive, e.sqrt(a[0]), b.div(b.mul(dy, 0.5), out))
FUNCTION(rsqrt, 0.1, "1 / sqrt(x)", positive, e.div(e.like(a[0], 1), e.sqrt(a[0])), b.mul(b.mul(dy, -0.5), b("pow", {out}, {{}, {3}})))
FUNCTION(reciprocal, 0.05, "1 / x", positive, e.div(e.like(a[0], 1), a[0]), b.neg(b.mul(dy, b.mul(out, out))))
// Gradients at x = 0 as eager: y == 0 gives no gradient to x; 0 ** y gives none to y for y >= 0.
FUNCTION(power, 0.5, "x ** y", powers, mathlib::power(e, a[0], a[1]),
         b.where(b("eq", {in[1], b.number(0, dy)}), b.number(0, dy), b.mul(dy, b.mul(in[1], b("power", {in[0], b.add(in[1], -1)})))),
         b.mul(dy, b.where(b("eq", {in[0], b.number(0, dy)}),
                           b.where(b("ge", {in[1], b.number(0, dy)}), b.number(0, dy), b.number(-INFINITY, dy)),
                           b.mul(out, b("log", {in[0]})))))
#undef FUNCTION

const OpDef op_pow = {.name = "pow",
                      .doc = "x ** number. floats: the exponent",
                      .dtype = first,
                      .shape = same,
                      .body = EMIT(0.5, power_number(e, a[0], n.at.f[0])),
                      .samples = number_powers,
                      .vjp = GRAD({n.at.f[0] == 0 ? b.zeros(dy) : b.mul(dy, b.mul(b("pow", {in[0]}, {{}, {n.at.f[0] - 1}}), n.at.f[0]))})};

}  // namespace framejit
