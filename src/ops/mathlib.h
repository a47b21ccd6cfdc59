// Elementary functions over the Emitter, in f32. Coefficients come from fit.py; errors over the float range (ULP): exp 0.97, log 0.79,
// tanh 4.7, erf 4.8, sin 2.0. f64 goes to the C library on every lane: right first.
#pragma once
#include "framejit/emitter.h"

namespace framejit::mathlib {

using CFunction = double (*)(double, double);  // one-argument functions ignore the second
// The C library on all lanes.
Val everywhere(Emitter&, Val x, CFunction);
Val everywhere(Emitter&, Val x, Val y, CFunction);

Val exp(Emitter&, Val);
Val log(Emitter&, Val);
Val tanh(Emitter&, Val);
Val erf(Emitter&, Val);
Val sigmoid(Emitter&, Val);
Val sin(Emitter&, Val);
Val cos(Emitter&, Val);

}  // namespace framejit::mathlib
