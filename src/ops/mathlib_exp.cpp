// Exponentials, logarithms and what is made of them. Every function keeps NaN and gets infinities and zeros right.
#include <cmath>
#include <limits>

#include "src/ops/coeffs.inc"
#include "src/ops/mathlib.h"

namespace framejit {

// x * 2^n in two exact steps, so that the exponent range is not left on the way.
Val Emitter::scale2(Val x, Val n) {
    Val whole = cast(n, Ty::i32);
    Val half = shr(whole, 1);
    auto power = [&](Val k) { return bitcast(shl(add(k, integer(Ty::i32, 127)), 23), Ty::f32); };
    return mul(mul(x, power(half)), power(sub(whole, half)));
}

std::pair<Val, Val> Emitter::split2(Val x) {
    Val tiny = cmp(Cmp::lt, x, f(1.17549435e-38));  // denormals: scale up first
    Val scaled = select(tiny, mul(x, f(8388608.0)), x);
    Val bits = bitcast(scaled, Ty::i32);
    Val k = bit_and(sub(bits, integer(Ty::i32, 0x3f400000)), integer(Ty::i32, int32_t(0xff800000)));
    Val exponent = mul(cast(k, Ty::f32), f(1.1920928955078125e-7));
    return {bitcast(sub(bits, k), Ty::f32), add(exponent, select(tiny, f(-23), f(0)))};
}

namespace mathlib {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kLn2 = 0.69314718055994530942;

Val clamp(Emitter& e, Val x, double lo, double hi) {  // NaN passes: the constant is the first operand
    x = e.select(e.cmp(Cmp::gt, x, e.like(x, hi)), e.like(x, hi), x);
    return e.select(e.cmp(Cmp::lt, x, e.like(x, lo)), e.like(x, lo), x);
}

// e^x = 2^n (1 + p)
struct Reduced {
    Val n, p;
};
Reduced reduce_exp(Emitter& e, Val x) {
    Val n = e.round(e.mul(x, e.f(1.44269504088896341)));
    Val r = e.fma(n, e.f(-0.693145751953125), x);
    r = e.fma(n, e.f(-1.42860682030941723212e-6), r);
    return {n, e.fma(e.poly(r, kExp), e.mul(r, r), r)};
}

// log(1 + f) - f + f^2 / 2 for the mantissa 1 + f; works in f32 and in f64
Val log_tail(Emitter& e, Val f, Val z) { return e.mul(e.mul(e.poly(f, kLog), f), z); }

// What every logarithm answers at 0, infinity, below 0 and for NaN.
Val log_edges(Emitter& e, Val x, Val p) {
    p = e.select(e.cmp(Cmp::eq, x, e.f(0)), e.f(-kInf), p);
    p = e.select(e.cmp(Cmp::eq, x, e.f(kInf)), x, p);
    p = e.select(e.cmp(Cmp::lt, x, e.f(0)), e.f(NAN), p);
    return e.nan_of(x, p);
}

// From `bound` on the function is 1 exactly: what remains to 1 would otherwise be multiplied by a large x (gelu).
Val saturated(Emitter& e, Val x, double bound, Val y) { return e.select(e.cmp(Cmp::ge, e.abs(x), e.f(bound)), e.copysign(e.f(1), x), y); }

}  // namespace

Val everywhere(Emitter& e, Val x, CFunction fn) { return e.libm(e.integer(Ty::b1, 1), x, x, x, fn); }
Val everywhere(Emitter& e, Val x, Val y, CFunction fn) { return e.libm(e.integer(Ty::b1, 1), x, y, x, fn); }

Val exp(Emitter& e, Val x) {
    if (x.ty == Ty::f64) return everywhere(e, x, [](double v, double) { return std::exp(v); });
    auto [n, p] = reduce_exp(e, clamp(e, x, -104.0, 89.0));
    return e.scale2(e.add(p, e.f(1)), n);
}

Val exp2(Emitter& e, Val x0) {
    if (x0.ty == Ty::f64) return everywhere(e, x0, [](double v, double) { return std::exp2(v); });
    Val x = clamp(e, x0, -151.0, 129.0);
    Val n = e.round(x);
    Val r = e.mul(e.sub(x, n), e.f(kLn2));
    Val p = e.fma(e.poly(r, kExp), e.mul(r, r), r);
    return e.scale2(e.add(p, e.f(1)), n);
}

// 2^n p + (2^n - 1) keeps the digits near 0; above 20 the 1 does not count, and 2^n alone may overflow before the result does.
Val expm1(Emitter& e, Val x) {
    if (x.ty == Ty::f64) return everywhere(e, x, [](double v, double) { return std::expm1(v); });
    auto [n, p] = reduce_exp(e, clamp(e, x, -104.0, 89.0));
    Val low = e.add(e.scale2(p, n), e.sub(e.scale2(e.f(1), n), e.f(1)));
    Val high = e.scale2(e.add(p, e.f(1)), n);
    Val y = e.select(e.cmp(Cmp::gt, x, e.f(20)), high, low);
    return e.select(e.cmp(Cmp::eq, x, e.f(0)), x, y);  // -0
}

Val log(Emitter& e, Val x) {
    if (x.ty == Ty::f64) return everywhere(e, x, [](double v, double) { return std::log(v); });
    auto [m, k] = e.split2(x);
    Val f = e.sub(m, e.f(1));
    Val z = e.mul(f, f);
    Val p = e.fma(k, e.f(-2.12194440e-4), log_tail(e, f, z));
    p = e.fma(z, e.f(-0.5), p);
    p = e.fma(k, e.f(0.693359375), e.add(f, p));
    return log_edges(e, x, p);
}

Val log2(Emitter& e, Val x) {  // exact for powers of 2: the exponent is added last
    if (x.ty == Ty::f64) return everywhere(e, x, [](double v, double) { return std::log2(v); });
    auto [m, k] = e.split2(x);
    Val f = e.sub(m, e.f(1));
    Val z = e.mul(f, f);
    Val p = e.add(f, e.fma(z, e.f(-0.5), log_tail(e, f, z)));
    return log_edges(e, x, e.fma(p, e.f(1.44269504088896341), k));
}

Val log10(Emitter& e, Val x) {
    if (x.ty == Ty::f64) return everywhere(e, x, [](double v, double) { return std::log10(v); });
    return e.mul(log(e, x), e.f(0.43429448190325182765));
}

// log(1 + x) = log(u) + (x - (u - 1)) / u with u = 1 + x rounded
Val log1p(Emitter& e, Val x) {
    if (x.ty == Ty::f64) return everywhere(e, x, [](double v, double) { return std::log1p(v); });
    Val u = e.add(x, e.f(1));
    Val lost = e.sub(x, e.sub(u, e.f(1)));
    Val y = e.add(log(e, u), e.div(lost, u));
    Val edge = e.bit_or(e.cmp(Cmp::eq, u, e.f(0)), e.cmp(Cmp::eq, u, e.f(kInf)));  // the correction is NaN there
    y = e.select(edge, log(e, u), y);
    return e.select(e.cmp(Cmp::eq, x, e.f(0)), x, y);  // -0
}

namespace {

// |x| ** y with the exponent y log|x| in f64, so that large exponents keep their digits. Neither NaN nor sign handling.
Val power_of_magnitude(Emitter& e, Val x, Val y) {
    auto [m, k] = e.split2(x);
    Val f = e.cast(e.sub(m, e.f(1)), Ty::f64);
    Val z = e.mul(f, f);
    Val log_m = e.add(f, e.fma(z, e.like(z, -0.5), log_tail(e, f, z)));
    Val log_x = e.fma(e.cast(k, Ty::f64), e.constant(Ty::f64, kLn2), log_m);
    Val zero = e.cmp(Cmp::eq, x, e.f(0)), infinite = e.cmp(Cmp::eq, x, e.f(kInf));
    log_x = e.select(zero, e.constant(Ty::f64, -kInf), e.select(infinite, e.constant(Ty::f64, kInf), log_x));
    Val t = clamp(e, e.mul(e.cast(y, Ty::f64), log_x), -104.0, 89.0);
    Val n = e.round(e.mul(t, e.like(t, 1 / kLn2)));
    Val r = e.fma(n, e.like(n, -kLn2), t);
    Val p = e.fma(e.poly(r, kExp), e.mul(r, r), r);
    return e.scale2(e.cast(e.add(p, e.like(p, 1)), Ty::f32), e.cast(n, Ty::f32));
}

}  // namespace

Val power(Emitter& e, Val x, Val y) {
    if (x.ty == Ty::f64) return everywhere(e, x, y, [](double a, double b) { return std::pow(a, b); });
    Val size = e.abs(x);
    Val r = power_of_magnitude(e, size, y);
    Val integral = e.cmp(Cmp::eq, e.trunc(y), y);
    Val half = e.mul(y, e.f(0.5));
    Val odd = e.bit_and(integral, e.cmp(Cmp::ne, e.trunc(half), half));
    r = e.select(odd, e.copysign(r, x), r);
    Val negative = e.bit_and(e.cmp(Cmp::lt, x, e.f(0)), e.cmp(Cmp::lt, size, e.f(kInf)));
    r = e.select(e.bit_and(negative, e.cmp(Cmp::ne, e.trunc(y), y)), e.f(NAN), r);
    r = e.nan_of(y, e.nan_of(x, r));
    Val unit = e.bit_and(e.cmp(Cmp::eq, size, e.f(1)), e.cmp(Cmp::eq, e.abs(y), e.f(kInf)));
    Val one = e.bit_or(unit, e.bit_or(e.cmp(Cmp::eq, x, e.f(1)), e.cmp(Cmp::eq, y, e.f(0))));
    return e.select(one, e.f(1), r);
}

Val sigmoid(Emitter& e, Val x) {  // exp may be infinite: no `quotient`
    Val one = e.like(x, 1);
    return e.div(one, e.add(one, exp(e, e.neg(x))));
}

Val tanh(Emitter& e, Val x0) {
    if (x0.ty == Ty::f64) return everywhere(e, x0, [](double v, double) { return std::tanh(v); });
    Val x = clamp(e, x0, -9.01, 9.01);
    Val s = e.mul(x, x);
    Val r = e.quotient(e.mul(e.poly(s, kTanhP), x), e.poly(s, kTanhQ));
    return e.select(e.cmp(Cmp::lt, e.abs(x0), e.f(4e-4)), x0, saturated(e, x0, 9.01, r));
}

// Above 1: e^(a/2) squared, which overflows where the result does.
Val sinh(Emitter& e, Val x) {
    if (x.ty == Ty::f64) return everywhere(e, x, [](double v, double) { return std::sinh(v); });
    Val a = e.abs(x);
    Val t = expm1(e, a);
    Val small = e.mul(e.f(0.5), e.add(t, e.div(t, e.add(t, e.f(1)))));
    Val h = exp(e, e.mul(a, e.f(0.5)));
    Val large = e.sub(e.mul(e.mul(e.f(0.5), h), h), e.div(e.f(0.5), e.mul(h, h)));
    return e.copysign(e.select(e.cmp(Cmp::lt, a, e.f(1)), small, large), x);
}

Val cosh(Emitter& e, Val x) {
    if (x.ty == Ty::f64) return everywhere(e, x, [](double v, double) { return std::cosh(v); });
    Val h = exp(e, e.mul(e.abs(x), e.f(0.5)));
    return e.add(e.mul(e.mul(e.f(0.5), h), h), e.div(e.f(0.5), e.mul(h, h)));
}

Val erf(Emitter& e, Val x0) {
    if (x0.ty == Ty::f64) return everywhere(e, x0, [](double v, double) { return std::erf(v); });
    Val x = clamp(e, x0, -3.92, 3.92);
    Val s = e.mul(x, x);
    return saturated(e, x0, 3.92, e.quotient(e.mul(e.poly(s, kErfP), x), e.poly(s, kErfQ)));
}

// e^-a^2 times a smooth function of a; the square's own rounding error is put back into the exponential.
Val erfc(Emitter& e, Val x) {
    if (x.ty == Ty::f64) return everywhere(e, x, [](double v, double) { return std::erfc(v); });
    Val a = clamp(e, e.abs(x), 0, 10.5);
    Val q = e.div(e.sub(a, e.f(4)), e.add(a, e.f(4)));
    Val square = e.mul(a, a);
    Val power = exp(e, e.neg(square));
    power = e.fma(e.neg(power), e.fma(a, a, e.neg(square)), power);
    Val r = e.mul(e.div(e.poly(q, kErfc), e.fma(a, e.f(2), e.f(1))), power);
    return e.select(e.cmp(Cmp::lt, x, e.f(0)), e.sub(e.f(2), r), r);
}

// ---- inverse hyperbolic functions: log1p of what is left beside 1; beyond 1e9 the logarithm of 2x ----

namespace {
Val log_of_double(Emitter& e, Val a) { return e.add(log(e, a), e.f(kLn2)); }
}  // namespace

Val asinh(Emitter& e, Val x) {
    if (x.ty == Ty::f64) return everywhere(e, x, [](double v, double) { return std::asinh(v); });
    Val a = e.abs(x), one = e.f(1);
    Val square = e.mul(a, a);
    Val y = log1p(e, e.add(a, e.div(square, e.add(one, e.sqrt(e.add(square, one))))));
    return e.copysign(e.select(e.cmp(Cmp::gt, a, e.f(1e9)), log_of_double(e, a), y), x);
}

Val acosh(Emitter& e, Val x) {
    if (x.ty == Ty::f64) return everywhere(e, x, [](double v, double) { return std::acosh(v); });
    Val t = e.sub(x, e.f(1));
    Val y = log1p(e, e.add(t, e.mul(e.sqrt(t), e.sqrt(e.add(x, e.f(1))))));  // NaN below 1
    return e.select(e.cmp(Cmp::gt, x, e.f(1e9)), log_of_double(e, x), y);
}

Val atanh(Emitter& e, Val x) {
    if (x.ty == Ty::f64) return everywhere(e, x, [](double v, double) { return std::atanh(v); });
    Val a = e.abs(x);
    Val y = e.mul(e.f(0.5), log1p(e, e.div(e.add(a, a), e.sub(e.f(1), a))));
    return e.copysign(y, x);
}

// Below 2^22 the rounded quotient is at most one off, x - q y is exact, and one correction is enough; everything else, NaN and infinities
// included, is the C library's.
Val remainder(Emitter& e, Val x, Val y) {
    Val size = e.abs(y);
    Val q = e.trunc(e.div(e.abs(x), size));
    Val r = e.fma(e.neg(q), size, e.abs(x));
    r = e.select(e.cmp(Cmp::lt, r, e.like(r, 0)), e.add(r, size), r);
    r = e.select(e.cmp(Cmp::ge, r, size), e.sub(r, size), r);
    Val near = e.bit_and(e.cmp(Cmp::lt, q, e.like(q, 4194304)), e.cmp(Cmp::lt, size, e.like(size, kInf)));
    Val far = e.bit_xor(near, e.integer(Ty::b1, 1));
    return e.libm(far, x, y, e.copysign(r, x), [](double a, double b) { return std::fmod(a, b); });
}

}  // namespace mathlib
}  // namespace framejit
