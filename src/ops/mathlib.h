// Elementary functions over the Emitter, in f32 and in f64. Coefficients come from fit.py; the test beside this file bounds the errors of
// all of them (ULP): exp 1.1, log 1, erf 1.3, tanh 2.2, the trigonometric ones 2.5, erfc 4.5. The C library is asked only for rare lanes:
// huge angles, quotients of remainders.
#pragma once
#include "framejit/emitter.h"

namespace framejit::mathlib {

Val exp(Emitter&, Val);
Val exp2(Emitter&, Val);
Val expm1(Emitter&, Val);
Val log(Emitter&, Val);
Val log2(Emitter&, Val);
Val log10(Emitter&, Val);
Val log1p(Emitter&, Val);
Val power(Emitter&, Val x, Val y);  // x ** y as C's pow
Val sigmoid(Emitter&, Val);
Val tanh(Emitter&, Val);
Val sinh(Emitter&, Val);
Val cosh(Emitter&, Val);
Val asinh(Emitter&, Val);
Val acosh(Emitter&, Val);
Val atanh(Emitter&, Val);
Val erf(Emitter&, Val);
Val erfc(Emitter&, Val);
Val remainder(Emitter&, Val x, Val y);  // C's fmod, exact

Val sin(Emitter&, Val);
Val cos(Emitter&, Val);
Val tan(Emitter&, Val);
Val asin(Emitter&, Val);
Val acos(Emitter&, Val);
Val atan(Emitter&, Val);
Val atan2(Emitter&, Val y, Val x);

// What differs between the types: a number, or the coefficients.
inline Val by_type(Emitter& e, Val x, double in_f32, double in_f64) { return e.like(x, x.ty == Ty::f64 ? in_f64 : in_f32); }
template <int N, int M> Val poly(Emitter& e, Val x, const double (&in_f32)[N], const double (&in_f64)[M]) {
    return x.ty == Ty::f64 ? e.poly(x, in_f64) : e.poly(x, in_f32);
}
// An integral float as an integer of the same width, plus a constant in the upper half: the number 1.5 * 2^(mantissa bits) has room below.
inline Val low_bits(Emitter& e, Val n, double plus = 0) {
    const bool wide = n.ty == Ty::f64;
    return e.bitcast(e.add(n, e.like(n, (wide ? 6755399441055744.0 : 12582912.0) + plus)), wide ? Ty::i64 : Ty::i32);
}

}  // namespace framejit::mathlib
