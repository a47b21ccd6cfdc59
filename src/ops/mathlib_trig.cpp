// Trigonometric functions and their inverses.
#include <cmath>
#include <limits>

#include "src/ops/coeffs.inc"
#include "src/ops/mathlib.h"

namespace framejit::mathlib {
namespace {

constexpr double kPi = 3.14159265358979323846;

// x - n pi with pi as three full floats, each step one fma: 2 ulp up to 2e4
Val minus_pi(Emitter& e, Val x, Val n) {
    Val r = e.fma(n, e.f(-3.1415927410125732), x);
    r = e.fma(n, e.f(8.742277657347586e-08), r);
    return e.fma(n, e.f(3.4302490200117637e-15), r);
}
// sin(r) for |r| <= pi / 2, negated where the integer `odd` is odd
Val sin_reduced(Emitter& e, Val r, Val odd) {
    Val s = e.mul(r, r);
    Val p = e.fma(e.mul(e.poly(s, kSin), s), r, r);
    return e.bitcast(e.bit_xor(e.bitcast(p, Ty::i32), e.shl(odd, 31)), Ty::f32);
}
Val beyond(Emitter& e, Val x) { return e.cmp(Cmp::gt, e.abs(x), e.f(2e4)); }  // the reduction loses its digits there

Val sin_near(Emitter& e, Val x) {
    Val n = e.round(e.mul(x, e.f(1 / kPi)));
    Val y = sin_reduced(e, minus_pi(e, x, n), e.cast(n, Ty::i32));
    return e.select(e.cmp(Cmp::eq, x, e.f(0)), x, y);  // -0
}
// With n = k + 1/2 nearest to x / pi, cos(x) = -sin(x - n pi) (-1)^k.
Val cos_near(Emitter& e, Val x) {
    Val k = e.round(e.fma(x, e.f(1 / kPi), e.f(-0.5)));
    Val r = minus_pi(e, x, e.add(k, e.f(0.5)));
    return e.neg(sin_reduced(e, r, e.cast(k, Ty::i32)));
}

// atan(above / below) for 0 <= above / below <= 1: reduced by tan(pi/8), one division
Val atan_ratio(Emitter& e, Val above, Val below) {
    Val far = e.cmp(Cmp::gt, above, e.mul(below, e.f(0.41421356)));
    Val r = e.div(e.select(far, e.sub(above, below), above), e.select(far, e.add(above, below), below));
    Val s = e.mul(r, r);
    Val y = e.fma(e.mul(e.poly(s, kAtan), s), r, r);
    return e.select(far, e.add(e.f(kPi / 4), y), y);
}

}  // namespace

Val sin(Emitter& e, Val x) {
    if (x.ty == Ty::f64) return everywhere(e, x, [](double v, double) { return std::sin(v); });
    return e.libm(beyond(e, x), x, x, sin_near(e, x), [](double v, double) { return std::sin(v); });
}

Val cos(Emitter& e, Val x) {
    if (x.ty == Ty::f64) return everywhere(e, x, [](double v, double) { return std::cos(v); });
    return e.libm(beyond(e, x), x, x, cos_near(e, x), [](double v, double) { return std::cos(v); });
}

Val tan(Emitter& e, Val x) {
    if (x.ty == Ty::f64) return everywhere(e, x, [](double v, double) { return std::tan(v); });
    Val y = e.div(sin_near(e, x), cos_near(e, x));
    return e.libm(beyond(e, x), x, x, y, [](double v, double) { return std::tan(v); });
}

Val atan(Emitter& e, Val x) {
    if (x.ty == Ty::f64) return everywhere(e, x, [](double v, double) { return std::atan(v); });
    Val a = e.abs(x);
    Val steep = e.cmp(Cmp::gt, a, e.f(1));
    Val one = e.f(1);
    Val y = atan_ratio(e, e.select(steep, one, a), e.select(steep, a, one));
    Val infinite = e.cmp(Cmp::eq, a, e.f(std::numeric_limits<double>::infinity()));
    y = e.select(infinite, e.f(0), y);  // 1 / inf: keep (1 - inf) / (1 + inf) out
    return e.copysign(e.select(steep, e.sub(e.f(kPi / 2), y), y), x);
}

// By quadrants; 0/0 is 0 and inf/inf is 1, with the signs that C's atan2 gives.
Val atan2(Emitter& e, Val y, Val x) {
    if (x.ty == Ty::f64) return everywhere(e, y, x, [](double a, double b) { return std::atan2(a, b); });
    Val a = e.abs(y), b = e.abs(x);
    Val steep = e.cmp(Cmp::gt, a, b);
    Val above = e.select(steep, b, a), below = e.select(steep, a, b);
    Val infinite = e.cmp(Cmp::eq, below, e.f(std::numeric_limits<double>::infinity()));
    Val both = e.bit_and(infinite, e.cmp(Cmp::eq, above, below));
    Val r = atan_ratio(e, above, below);
    r = e.select(infinite, e.select(both, e.f(kPi / 4), e.f(0)), r);
    r = e.select(e.cmp(Cmp::eq, below, e.f(0)), e.f(0), r);
    r = e.select(steep, e.sub(e.f(kPi / 2), r), r);
    Val left = e.cmp(Cmp::lt, e.copysign(e.f(1), x), e.f(0));
    r = e.copysign(e.select(left, e.sub(e.f(kPi), r), r), y);
    return e.nan_of(x, e.nan_of(y, r));
}

// atan of the ratio of legs: no cancellation near 1
Val asin(Emitter& e, Val x) {
    if (x.ty == Ty::f64) return everywhere(e, x, [](double v, double) { return std::asin(v); });
    Val one = e.f(1);
    return atan(e, e.div(x, e.sqrt(e.mul(e.sub(one, x), e.add(one, x)))));
}

Val acos(Emitter& e, Val x) {
    if (x.ty == Ty::f64) return everywhere(e, x, [](double v, double) { return std::acos(v); });
    Val one = e.f(1);
    return e.mul(e.f(2), atan(e, e.sqrt(e.div(e.sub(one, x), e.add(one, x)))));
}

}  // namespace framejit::mathlib
