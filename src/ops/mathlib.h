// Elementary functions over the Emitter, in f32. Coefficients come from fit.py; errors over the float range (ULP): exp 0.97, log 0.79,
// tanh 4.7, erf 4.8, sin 2.0; the test beside this file bounds all of them. f64 goes to the C library on every lane: right first.
#pragma once
#include "framejit/emitter.h"

namespace framejit::mathlib {

using CFunction = double (*)(double, double);  // one-argument functions ignore the second
// The C library on all lanes.
Val everywhere(Emitter&, Val x, CFunction);
Val everywhere(Emitter&, Val x, Val y, CFunction);

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

}  // namespace framejit::mathlib
