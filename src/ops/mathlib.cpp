// Range reduction and polynomials. Every function keeps NaN and gets infinities and zeros right; the traps of fitting are in fit.py.
#include "src/ops/mathlib.h"

#include <cmath>
#include <limits>

#include "src/ops/coeffs.inc"

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

Val clamp(Emitter& e, Val x, double lo, double hi) {  // NaN passes: the constant is the first operand
    x = e.select(e.cmp(Cmp::gt, x, e.f(hi)), e.f(hi), x);
    return e.select(e.cmp(Cmp::lt, x, e.f(lo)), e.f(lo), x);
}

// x - n pi with pi as three full floats, each step one fma
Val minus_pi(Emitter& e, Val x, Val n) {
    Val r = e.fma(n, e.f(-3.1415927410125732), x);
    r = e.fma(n, e.f(8.742277657347586e-08), r);
    return e.fma(n, e.f(3.4302490200117637e-15), r);
}
// sin(r) for |r| <= pi / 2, negated where `odd` is
Val sin_reduced(Emitter& e, Val r, Val odd) {
    Val s = e.mul(r, r);
    Val p = e.fma(e.mul(e.poly(s, kSin), s), r, r);
    return e.bitcast(e.bit_xor(e.bitcast(p, Ty::i32), e.shl(odd, 31)), Ty::f32);
}
Val beyond(Emitter& e, Val x) { return e.cmp(Cmp::gt, e.abs(x), e.f(2e4)); }  // the reduction loses its digits there

}  // namespace

Val everywhere(Emitter& e, Val x, CFunction fn) { return e.libm(e.integer(Ty::b1, 1), x, x, x, fn); }
Val everywhere(Emitter& e, Val x, Val y, CFunction fn) { return e.libm(e.integer(Ty::b1, 1), x, y, x, fn); }

Val exp(Emitter& e, Val x0) {
    if (x0.ty == Ty::f64) return everywhere(e, x0, [](double x, double) { return std::exp(x); });
    Val x = clamp(e, x0, -104.0, 89.0);
    Val n = e.round(e.mul(x, e.f(1.44269504088896341)));
    Val r = e.fma(n, e.f(-0.693145751953125), x);
    r = e.fma(n, e.f(-1.42860682030941723212e-6), r);
    Val p = e.fma(e.poly(r, kExp), e.mul(r, r), r);
    return e.scale2(e.add(p, e.f(1)), n);
}

Val log(Emitter& e, Val x) {
    if (x.ty == Ty::f64) return everywhere(e, x, [](double v, double) { return std::log(v); });
    auto [m, k] = e.split2(x);
    Val f = e.sub(m, e.f(1));
    Val z = e.mul(f, f);
    Val p = e.mul(e.mul(e.poly(f, kLog), f), z);
    p = e.fma(k, e.f(-2.12194440e-4), p);
    p = e.fma(z, e.f(-0.5), p);
    p = e.fma(k, e.f(0.693359375), e.add(f, p));
    p = e.select(e.cmp(Cmp::eq, x, e.f(0)), e.f(-kInf), p);
    p = e.select(e.cmp(Cmp::eq, x, e.f(kInf)), x, p);
    p = e.select(e.cmp(Cmp::lt, x, e.f(0)), e.f(NAN), p);
    return e.nan_of(x, p);
}

Val tanh(Emitter& e, Val x0) {
    if (x0.ty == Ty::f64) return everywhere(e, x0, [](double x, double) { return std::tanh(x); });
    Val x = clamp(e, x0, -9.01, 9.01);
    Val s = e.mul(x, x);
    Val r = e.quotient(e.mul(e.poly(s, kTanhP), x), e.poly(s, kTanhQ));
    return e.select(e.cmp(Cmp::lt, e.abs(x0), e.f(4e-4)), x0, r);
}

Val erf(Emitter& e, Val x0) {
    if (x0.ty == Ty::f64) return everywhere(e, x0, [](double x, double) { return std::erf(x); });
    Val x = clamp(e, x0, -3.92, 3.92);
    Val s = e.mul(x, x);
    return e.quotient(e.mul(e.poly(s, kErfP), x), e.poly(s, kErfQ));
}

Val sigmoid(Emitter& e, Val x) {  // exp may be infinite: no `quotient`
    Val one = e.like(x, 1);
    return e.div(one, e.add(one, exp(e, e.neg(x))));
}

Val sin(Emitter& e, Val x) {
    if (x.ty == Ty::f64) return everywhere(e, x, [](double v, double) { return std::sin(v); });
    Val n = e.round(e.mul(x, e.f(0.318309886183790671538)));
    Val y = sin_reduced(e, minus_pi(e, x, n), e.cast(n, Ty::i32));
    return e.libm(beyond(e, x), x, x, y, [](double v, double) { return std::sin(v); });
}

// cos(x) = sin(x + pi/2): with n = round(x/pi - 1/2) + 1/2 half-integral, x - n pi is in [-pi/2, pi/2] and the sign follows n - 1/2.
Val cos(Emitter& e, Val x) {
    if (x.ty == Ty::f64) return everywhere(e, x, [](double v, double) { return std::cos(v); });
    Val k = e.round(e.fma(x, e.f(0.318309886183790671538), e.f(-0.5)));
    Val r = minus_pi(e, x, e.add(k, e.f(0.5)));
    Val y = e.neg(sin_reduced(e, r, e.cast(k, Ty::i32)));
    return e.libm(beyond(e, x), x, x, y, [](double v, double) { return std::cos(v); });
}

}  // namespace mathlib
}  // namespace framejit
