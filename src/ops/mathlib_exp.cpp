// Exponentials, logarithms and what is made of them. Every function keeps NaN and gets infinities and zeros right.
#include <cmath>
#include <limits>

#include "src/ops/coeffs.inc"
#include "src/ops/mathlib.h"

namespace framejit {
namespace {
// 2^n, a normal number
Val power_of_two(Emitter& e, Val n) {
    const bool wide = n.ty == Ty::f64;
    return e.bitcast(e.shl(mathlib::low_bits(e, n, wide ? 1023 : 127), wide ? 52 : 23), n.ty);
}
}  // namespace

// x * 2^n in two exact steps, so that the exponent range is not left on the way.
Val Emitter::scale2(Val x, Val n) {
    Val half = round(mul(n, like(n, 0.5)));
    return mul(mul(x, power_of_two(*this, half)), power_of_two(*this, sub(n, half)));
}

std::pair<Val, Val> Emitter::split2(Val x) {
    const bool wide = x.ty == Ty::f64;
    const Ty whole = wide ? Ty::i64 : Ty::i32;
    Val tiny = cmp(Cmp::lt, x, like(x, wide ? 2.2250738585072014e-308 : 1.17549435e-38));  // denormals: scale up first
    Val scaled = select(tiny, mul(x, like(x, wide ? 18014398509481984.0 : 8388608.0)), x);
    Val bits = bitcast(scaled, whole);
    Val above = sub(bits, integer(whole, wide ? 0x3fe8000000000000 : 0x3f400000));
    Val k = bit_and(above, integer(whole, wide ? int64_t(0xfff0000000000000) : int32_t(0xff800000)));
    Val exponent = wide ? sub(bitcast(add(shr(k, 52), integer(whole, 0x4338000000000000)), Ty::f64), like(x, 6755399441055744.0))
                        : mul(cast(k, Ty::f32), f(1.1920928955078125e-7));
    return {bitcast(sub(bits, k), x.ty), add(exponent, select(tiny, like(x, wide ? -54 : -23), like(x, 0)))};
}

namespace mathlib {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kLn2 = 0.69314718055994530942;
constexpr double kLn2Head = 6.93147180369123816490e-01, kLn2Rest = 1.90821492927058770002e-10;  // n * head is exact in f64

Val clamp(Emitter& e, Val x, double lo, double hi) {  // NaN passes: the constant is the first operand
    x = e.select(e.cmp(Cmp::gt, x, e.like(x, hi)), e.like(x, hi), x);
    return e.select(e.cmp(Cmp::lt, x, e.like(x, lo)), e.like(x, lo), x);
}

// e^x = 2^n (1 + p)
struct Reduced {
    Val n, p;
};
Val exp_tail(Emitter& e, Val r) { return e.fma(poly(e, r, kExp, kExpD), e.mul(r, r), r); }
Reduced reduce_exp(Emitter& e, Val x) {
    Val n = e.round(e.mul(x, e.like(x, 1 / kLn2)));
    Val r = e.fma(n, by_type(e, x, -0.693145751953125, -kLn2Head), x);
    return {n, exp_tail(e, e.fma(n, by_type(e, x, -1.42860682030941723212e-6, -kLn2Rest), r))};
}
// Beyond these bounds e^x is 0 and infinite.
Val within_exp(Emitter& e, Val x) { return x.ty == Ty::f64 ? clamp(e, x, -746, 710) : clamp(e, x, -104, 89); }
Val scaled_up(Emitter& e, Reduced x) { return e.scale2(e.add(x.p, e.like(x.p, 1)), x.n); }

// log(1 + f) - f + f^2 / 2 for the mantissa 1 + f; works in f32 and in f64, with the digits of f32
Val log_tail(Emitter& e, Val f, Val z) { return e.mul(e.mul(e.poly(f, kLog), f), z); }

// What every logarithm answers at 0, infinity, below 0 and for NaN.
Val log_edges(Emitter& e, Val x, Val p) {
    p = e.select(e.cmp(Cmp::eq, x, e.like(x, 0)), e.like(x, -kInf), p);
    p = e.select(e.cmp(Cmp::eq, x, e.like(x, kInf)), x, p);
    p = e.select(e.cmp(Cmp::lt, x, e.like(x, 0)), e.like(x, NAN), p);
    return e.nan_of(x, p);
}

// f64: log x = k log 2 + f + low with f exact
struct Logarithm {
    Val k, f, low;
};
Logarithm split_log(Emitter& e, Val x) {
    auto [m, k] = e.split2(x);
    Val f = e.sub(m, e.like(x, 1));
    Val s = e.div(f, e.add(f, e.like(x, 2)));
    Val z = e.mul(s, s), half = e.mul(e.mul(f, f), e.like(x, 0.5));
    return {k, f, e.fma(s, e.fma(z, e.poly(z, kLogD), half), e.neg(half))};
}
// A logarithm to another base: f times a constant in two parts, and the exponent times another one.
Val rebased(Emitter& e, Logarithm l, double factor, double factor_rest, double step, double step_rest) {
    Val c = e.like(l.f, factor);
    Val head = e.mul(l.f, c), whole = e.mul(l.k, e.like(l.k, step));
    Val rest = e.add(e.fma(l.f, c, e.neg(head)), e.fma(l.f, e.like(l.f, factor_rest), e.mul(l.low, c)));
    Val sum = e.add(whole, head);
    return e.add(sum, e.add(e.add(e.sub(whole, sum), head), e.fma(l.k, e.like(l.k, step_rest), rest)));
}

}  // namespace

Val exp(Emitter& e, Val x) { return scaled_up(e, reduce_exp(e, within_exp(e, x))); }

Val exp2(Emitter& e, Val x0) {
    Val x = x0.ty == Ty::f64 ? clamp(e, x0, -1076, 1025) : clamp(e, x0, -151, 129);
    Val n = e.round(x);
    return scaled_up(e, {n, exp_tail(e, e.mul(e.sub(x, n), e.like(x, kLn2)))});
}

// 2^n p + (2^n - 1) keeps the digits near 0; above 40 the 1 does not count, and 2^n alone may overflow before the result does.
Val expm1(Emitter& e, Val x) {
    Reduced r = reduce_exp(e, within_exp(e, x));
    Val low = e.add(e.scale2(r.p, r.n), e.sub(e.scale2(e.like(x, 1), r.n), e.like(x, 1)));
    Val y = e.select(e.cmp(Cmp::gt, x, e.like(x, 40)), scaled_up(e, r), low);
    return e.select(e.cmp(Cmp::eq, x, e.like(x, 0)), x, y);  // -0
}

Val log(Emitter& e, Val x) {
    if (x.ty == Ty::f64) {
        Logarithm l = split_log(e, x);
        return log_edges(e, x, e.fma(l.k, e.like(x, kLn2Head), e.add(l.f, e.fma(l.k, e.like(x, kLn2Rest), l.low))));
    }
    auto [m, k] = e.split2(x);
    Val f = e.sub(m, e.f(1));
    Val z = e.mul(f, f);
    Val p = e.fma(k, e.f(-2.12194440e-4), log_tail(e, f, z));
    p = e.fma(z, e.f(-0.5), p);
    p = e.fma(k, e.f(0.693359375), e.add(f, p));
    return log_edges(e, x, p);
}

Val log2(Emitter& e, Val x) {  // exact for powers of 2: the exponent is added last
    if (x.ty == Ty::f64) return log_edges(e, x, rebased(e, split_log(e, x), 1.4426950408889634, 2.0355273740931033e-17, 1, 0));
    auto [m, k] = e.split2(x);
    Val f = e.sub(m, e.f(1));
    Val z = e.mul(f, f);
    Val p = e.add(f, e.fma(z, e.f(-0.5), log_tail(e, f, z)));
    return log_edges(e, x, e.fma(p, e.f(1 / kLn2), k));
}

Val log10(Emitter& e, Val x) {
    constexpr double kLog2Head = 3.01029995663611771306e-01, kLog2Rest = 3.69423907715893078616e-13;
    if (x.ty == Ty::f64)
        return log_edges(e, x, rebased(e, split_log(e, x), 0.4342944819032518, 1.098319650216765e-17, kLog2Head, kLog2Rest));
    return e.mul(log(e, x), e.f(0.43429448190325182765));
}

// log(1 + x) = log(u) + (x - (u - 1)) / u with u = 1 + x rounded
Val log1p(Emitter& e, Val x) {
    Val u = e.add(x, e.like(x, 1));
    Val lost = e.sub(x, e.sub(u, e.like(x, 1)));
    Val main = log(e, u);
    Val edge = e.bit_or(e.cmp(Cmp::eq, u, e.like(x, 0)), e.cmp(Cmp::eq, u, e.like(x, kInf)));  // the correction is NaN there
    Val y = e.select(edge, main, e.add(main, e.div(lost, u)));
    return e.select(e.cmp(Cmp::eq, x, e.like(x, 0)), x, y);  // -0
}

// ---- powers ----

namespace {

// |x| ** y with the exponent y log|x| in f64, so that large exponents keep their digits. Neither NaN nor sign handling.
Val power_in_f32(Emitter& e, Val x, Val y) {
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

// Numbers of twice the digits of f64: an exact sum or product of two, the head being what f64 makes of it.
struct Double {
    Val head, rest;
};
Double exact_sum(Emitter& e, Val large, Val small) {
    Val sum = e.add(large, small);
    return {sum, e.add(e.sub(large, sum), small)};
}
Double product(Emitter& e, Double a, Double b) {
    Val head = e.mul(a.head, b.head);
    return {head, e.add(e.fma(a.head, b.head, e.neg(head)), e.fma(a.head, b.rest, e.mul(a.rest, b.head)))};
}

// log x = k log 2 + 2 s + s^3 (2/3 + s^2 Q(s^2)) with s = (m - 1) / (m + 1)
Double log_in_double(Emitter& e, Val x) {
    auto [m, k] = e.split2(x);
    Val one = e.like(x, 1);
    Val f = e.sub(m, one), d = e.add(m, one), inverse = e.div(one, d);
    Val s = e.mul(f, inverse);
    Val left = e.sub(e.fma(e.neg(s), d, f), e.mul(s, e.sub(m, e.sub(d, one))));  // of f, after s times m + 1
    Double ratio{s, e.mul(left, inverse)};
    Double square = product(e, ratio, ratio);
    Double factor = exact_sum(e, e.like(x, 0.66666666666666663), e.mul(square.head, e.poly(square.head, kPowerD)));
    factor.rest = e.add(factor.rest, e.like(x, 3.700743415417188e-17));
    Double cubic = product(e, product(e, square, ratio), factor);
    Double sum = exact_sum(e, e.mul(k, e.like(x, kLn2Head)), e.add(s, s));
    Double all = exact_sum(e, sum.head, cubic.head);
    Val rest = e.fma(k, e.like(x, kLn2Rest), e.add(e.add(ratio.rest, ratio.rest), cubic.rest));
    return {all.head, e.add(e.add(all.rest, sum.rest), rest)};
}
Val power_in_f64(Emitter& e, Val x, Val y) {
    Double l = log_in_double(e, x);
    Val zero = e.cmp(Cmp::eq, x, e.like(x, 0)), infinite = e.cmp(Cmp::eq, x, e.like(x, kInf));
    l.head = e.select(zero, e.like(x, -kInf), e.select(infinite, x, l.head));
    Double t = product(e, {y, e.like(y, 0)}, l);
    t.rest = e.select(e.cmp(Cmp::lt, e.abs(t.head), e.like(x, 800)), t.rest, e.like(x, 0));
    t.head = within_exp(e, t.head);
    Val n = e.round(e.mul(t.head, e.like(x, 1 / kLn2)));
    Val r = e.fma(n, e.like(n, -kLn2Rest), e.fma(n, e.like(n, -kLn2Head), t.head));
    return scaled_up(e, {n, exp_tail(e, e.add(r, t.rest))});
}

}  // namespace

Val power(Emitter& e, Val x, Val y) {
    Val size = e.abs(x);
    Val r = x.ty == Ty::f64 ? power_in_f64(e, size, y) : power_in_f32(e, size, y);
    Val integral = e.cmp(Cmp::eq, e.trunc(y), y);
    Val half = e.mul(y, e.like(y, 0.5));
    Val odd = e.bit_and(integral, e.cmp(Cmp::ne, e.trunc(half), half));
    r = e.select(odd, e.copysign(r, x), r);
    Val negative = e.bit_and(e.cmp(Cmp::lt, x, e.like(x, 0)), e.cmp(Cmp::lt, size, e.like(x, kInf)));
    r = e.select(e.bit_and(negative, e.cmp(Cmp::ne, e.trunc(y), y)), e.like(x, NAN), r);
    r = e.nan_of(y, e.nan_of(x, r));
    Val unit = e.bit_and(e.cmp(Cmp::eq, size, e.like(x, 1)), e.cmp(Cmp::eq, e.abs(y), e.like(y, kInf)));
    Val one = e.bit_or(unit, e.bit_or(e.cmp(Cmp::eq, x, e.like(x, 1)), e.cmp(Cmp::eq, y, e.like(y, 0))));
    return e.select(one, e.like(x, 1), r);
}

// ---- sigmoid, hyperbolic functions, error function ----

Val sigmoid(Emitter& e, Val x) {  // exp may be infinite: no `quotient`
    Val one = e.like(x, 1);
    return e.div(one, e.add(one, exp(e, e.neg(x))));
}

// t / (t + 2) with t = e^2|x| - 1 >= 0: never beyond 1
Val tanh(Emitter& e, Val x) {
    Val a = e.min2(by_type(e, x, 10, 20), e.abs(x));
    Reduced r = reduce_exp(e, e.add(a, a));
    Val power = power_of_two(e, r.n);
    Val t = e.fma(power, r.p, e.sub(power, e.like(x, 1)));
    return e.copysign(e.quotient(t, e.add(t, e.like(x, 2))), x);
}

namespace {
// e^|x| / 2, which overflows where sinh and cosh do
Val half_exp(Emitter& e, Val a) {
    Reduced r = reduce_exp(e, e.min2(by_type(e, a, 91, 712), a));
    return scaled_up(e, {e.sub(r.n, e.like(a, 1)), r.p});
}
}  // namespace

Val sinh(Emitter& e, Val x) {
    Val a = e.abs(x), s = e.mul(x, x);
    Val small = e.fma(e.mul(poly(e, s, kSinh, kSinhD), s), x, x);
    Val h = half_exp(e, a);
    Val large = e.copysign(e.sub(h, e.div(e.like(x, 0.25), h)), x);
    return e.select(e.cmp(Cmp::lt, a, e.like(x, 1)), small, large);
}

Val cosh(Emitter& e, Val x) {
    Val h = half_exp(e, e.abs(x));
    return e.add(h, e.div(e.like(x, 0.25), h));
}

// 1 - 2^y from 0.85 on, where the power is small and positive: never beyond 1, and 1 from the bound on
Val erf(Emitter& e, Val x) {
    Val a = e.abs(x), s = e.mul(x, x);
    Val near = e.fma(poly(e, s, kErfNear, kErfNearD), x, x);
    Val t = e.min2(by_type(e, x, 4, 6), a);
    Val y = e.mul(poly(e, t, kErfFar, kErfFarD), t), n = e.round(y);
    Val far = e.fma(e.neg(power_of_two(e, n)), poly(e, e.sub(y, n), kExp2, kExp2D), e.like(x, 1));
    return e.select(e.cmp(Cmp::lt, a, e.like(x, 0.85)), near, e.copysign(far, x));
}

// Up to 1/2 what erf leaves of 1; then e^-a^2 times a smooth function of a, the square's own rounding error being part of the exponent.
Val erfc(Emitter& e, Val x) {
    Val s = e.mul(x, x);
    Val near = e.sub(e.like(x, 1), e.fma(poly(e, s, kErfNear, kErfNearD), x, x));
    Val a = x.ty == Ty::f64 ? clamp(e, e.abs(x), 0, 27.3) : clamp(e, e.abs(x), 0, 10.5);
    Val q = e.div(e.sub(a, e.like(x, 4)), e.add(a, e.like(x, 4)));
    Val square = e.mul(a, a);
    Val power = exp(e, e.neg(square));
    power = e.fma(e.neg(power), e.fma(a, a, e.neg(square)), power);
    Val r = e.mul(e.div(poly(e, q, kErfc, kErfcD), e.fma(a, e.like(x, 2), e.like(x, 1))), power);
    r = e.select(e.cmp(Cmp::lt, x, e.like(x, 0)), e.sub(e.like(x, 2), r), r);
    return e.select(e.cmp(Cmp::lt, a, e.like(x, 0.5)), near, r);
}

// ---- inverse hyperbolic functions: log1p of what is left beside 1; beyond 1e9 the logarithm of 2x ----

namespace {
Val log_of_double(Emitter& e, Val a) { return e.add(log(e, a), e.like(a, kLn2)); }
}  // namespace

Val asinh(Emitter& e, Val x) {
    Val a = e.abs(x), one = e.like(x, 1);
    Val square = e.mul(a, a);
    Val y = log1p(e, e.add(a, e.div(square, e.add(one, e.sqrt(e.add(square, one))))));
    return e.copysign(e.select(e.cmp(Cmp::gt, a, e.like(x, 1e9)), log_of_double(e, a), y), x);
}

Val acosh(Emitter& e, Val x) {
    Val t = e.sub(x, e.like(x, 1));
    Val y = log1p(e, e.add(t, e.mul(e.sqrt(t), e.sqrt(e.add(x, e.like(x, 1))))));  // NaN below 1
    return e.select(e.cmp(Cmp::gt, x, e.like(x, 1e9)), log_of_double(e, x), y);
}

Val atanh(Emitter& e, Val x) {
    Val a = e.abs(x);
    Val y = e.mul(e.like(x, 0.5), log1p(e, e.div(e.add(a, a), e.sub(e.like(x, 1), a))));
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
