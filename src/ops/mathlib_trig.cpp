// Trigonometric functions and their inverses.
#include <cmath>
#include <limits>

#include "src/ops/coeffs.inc"
#include "src/ops/mathlib.h"

namespace framejit::mathlib {
namespace {

constexpr double kPi = 3.14159265358979323846;

// x - n pi with pi as three full floats of the type, each step one fma: for an integral n the first is exact.
Val minus_pi(Emitter& e, Val x, Val n) {
    Val r = e.fma(n, by_type(e, x, -3.1415927410125732, -kPi), x);
    r = e.fma(n, by_type(e, x, 8.742277657347586e-08, -1.2246467991473532e-16), r);
    return e.fma(n, by_type(e, x, 3.4302490200117637e-15, 2.9947698097183397e-33), r);
}
// r + r^3 P(r^2)
template <int N, int M> Val odd(Emitter& e, Val r, Val square, const double (&in_f32)[N], const double (&in_f64)[M]) {
    return e.fma(e.mul(poly(e, square, in_f32, in_f64), square), r, r);
}
// sin(r) for |r| <= pi / 2, negated where the integral n is odd
Val sin_reduced(Emitter& e, Val r, Val n) {
    Val sign = low_bits(e, n);
    Val y = odd(e, r, e.mul(r, r), kSin, kSinD);
    return e.bitcast(e.bit_xor(e.bitcast(y, sign.ty), e.shl(sign, r.ty == Ty::f64 ? 63 : 31)), r.ty);
}
// The quotient by pi loses its last bit there, and the reduction its digits.
Val beyond(Emitter& e, Val x) { return e.cmp(Cmp::gt, e.abs(x), by_type(e, x, 2e4, 1e9)); }

// part * pi - r - small, with pi as two floats
Val from_pi(Emitter& e, double part, Val r, Val small) {
    Val head = by_type(e, r, double(float(kPi)) * part, kPi * part);
    Val rest = by_type(e, r, -8.742277657347586e-08 * part, 1.2246467991473532e-16 * part);
    return e.sub(e.sub(head, r), e.sub(small, rest));
}

}  // namespace

Val sin(Emitter& e, Val x) {
    Val n = e.round(e.mul(x, e.like(x, 1 / kPi)));
    Val y = e.select(e.cmp(Cmp::eq, x, e.like(x, 0)), x, sin_reduced(e, minus_pi(e, x, n), n));  // -0
    return e.libm(beyond(e, x), x, x, y, [](double v, double) { return std::sin(v); });
}

// With n = k + 1/2 nearest to x / pi, cos(x) = -sin(x - n pi) (-1)^k.
Val cos(Emitter& e, Val x) {
    Val k = e.round(e.fma(x, e.like(x, 1 / kPi), e.like(x, -0.5)));
    Val y = e.neg(sin_reduced(e, minus_pi(e, x, e.add(k, e.like(x, 0.5))), k));
    const double least = x.ty == Ty::f64 ? 1.05e-8 : 2.44e-4;  // below it 1 is the nearest number, which programs count on at 0
    y = e.select(e.cmp(Cmp::lt, e.abs(x), e.like(x, least)), e.like(x, 1), y);
    return e.libm(beyond(e, x), x, x, y, [](double v, double) { return std::cos(v); });
}

// tan(r + n pi / 2) is tan(r) or -1 / tan(r)
Val tan(Emitter& e, Val x) {
    Val n = e.round(e.mul(x, e.like(x, 2 / kPi)));
    Val r = minus_pi(e, x, e.mul(n, e.like(x, 0.5)));
    Val t = odd(e, r, e.mul(r, r), kTan, kTanD);
    Val bits = low_bits(e, n);
    Val steep = e.cmp(Cmp::ne, e.bit_and(bits, e.integer(bits.ty, 1)), e.integer(bits.ty, 0));
    Val y = e.select(steep, e.div(e.like(x, -1), t), t);
    y = e.select(e.cmp(Cmp::eq, x, e.like(x, 0)), x, y);  // -0
    return e.libm(beyond(e, x), x, x, y, [](double v, double) { return std::tan(v); });
}

Val atan(Emitter& e, Val x) {
    Val a = e.abs(x), one = e.like(x, 1);
    Val steep = e.cmp(Cmp::gt, a, one);
    Val r = e.select(steep, e.div(one, a), a), s = e.mul(r, r);
    Val tail = e.mul(e.mul(poly(e, s, kAtan, kAtanD), s), r);
    return e.copysign(e.select(steep, from_pi(e, 0.5, r, tail), e.add(r, tail)), x);
}

// By quadrants; 0/0 is 0 and inf/inf is 1, with the signs that C's atan2 gives.
Val atan2(Emitter& e, Val y, Val x) {
    Val a = e.abs(y), b = e.abs(x), zero = e.like(x, 0), one = e.like(x, 1);
    Val steep = e.cmp(Cmp::gt, a, b);
    Val r = e.div(e.select(steep, b, a), e.select(steep, a, b));
    r = e.select(e.cmp(Cmp::eq, a, b), e.select(e.cmp(Cmp::eq, a, zero), zero, one), r);
    r = odd(e, r, e.mul(r, r), kAtan, kAtanD);
    r = e.select(steep, from_pi(e, 0.5, r, zero), r);
    Val left = e.cmp(Cmp::lt, e.copysign(one, x), zero);
    r = e.copysign(e.select(left, from_pi(e, 1, r, zero), r), y);
    return e.nan_of(x, e.nan_of(y, r));
}

namespace {
// The angle whose sine is |x| as r + tail, r^3 P(r^2) being the tail. Up to 1/2 it is that of r = |x|, and from there on pi / 2 - 2 times
// that of r = sqrt((1 - |x|) / 2). NaN beyond 1.
struct Angle {
    Val near, r, tail;
};
Angle angle(Emitter& e, Val a) {
    Val near = e.cmp(Cmp::lt, a, e.like(a, 0.5));
    Val half = e.mul(e.sub(e.like(a, 1), a), e.like(a, 0.5));
    Val square = e.select(near, e.mul(a, a), half);
    Val r = e.select(near, a, e.sqrt(half));
    return {near, r, e.mul(e.mul(poly(e, square, kAsin, kAsinD), square), r)};
}
}  // namespace

Val asin(Emitter& e, Val x) {
    Angle y = angle(e, e.abs(x));
    Val far = from_pi(e, 0.5, e.add(y.r, y.r), e.add(y.tail, y.tail));
    return e.copysign(e.select(y.near, e.add(y.r, y.tail), far), x);
}

Val acos(Emitter& e, Val x) {
    Angle y = angle(e, e.abs(x));
    Val left = e.cmp(Cmp::lt, x, e.like(x, 0));
    Val r = e.add(y.r, y.r), tail = e.add(y.tail, y.tail);
    Val middle = from_pi(e, 0.5, e.copysign(y.r, x), e.copysign(y.tail, x));
    return e.select(y.near, middle, e.select(left, from_pi(e, 1, r, tail), e.add(r, tail)));
}

}  // namespace framejit::mathlib
