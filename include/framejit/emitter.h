// Everything an op may say about values. An op never sees lanes, loops, tails, memory, threads or a target.
// Implementations: LLVM vectors (src/codegen) and immediate scalar execution (src/ir/interpret.cpp, the test oracle).
// Invariants: mul followed by add is never contracted (fma is explicit), so float chains round exactly where eager rounds.
#pragma once
#include "framejit/dtype.h"
#include <initializer_list>
#include <utility>

namespace framejit {

struct Val {  // opaque to ops, except ty
    union {
        void* p;
        double f;
        int64_t i;
    };
    Ty ty;
};
enum class Cmp : uint8_t { lt, le, gt, ge, eq, ne };  // ordered, except ne (true for NaN), as in C and in eager

struct Emitter {
    virtual ~Emitter() = default;
    virtual Val constant(Ty, double) = 0;
    virtual Val integer(Ty, int64_t) = 0;
    virtual Val add(Val, Val) = 0;
    virtual Val sub(Val, Val) = 0;
    virtual Val mul(Val, Val) = 0;
    virtual Val div(Val, Val) = 0;  // integers: truncates; the op sees to it that the divisor is not 0
    virtual Val rem(Val, Val) = 0;  // as C's % and fmod
    virtual Val fma(Val, Val, Val) = 0;
    // sum + x in a reduction, whose order of addition is ours anyway: a product may be added without being rounded first.
    virtual Val accumulate(Val sum, Val x) { return add(sum, x); }
    virtual Val neg(Val) = 0;
    virtual Val abs(Val) = 0;
    virtual Val copysign(Val, Val) = 0;
    virtual Val sqrt(Val) = 0;
    virtual Val round(Val) = 0;  // to nearest even
    virtual Val floor(Val) = 0;
    virtual Val ceil(Val) = 0;
    virtual Val trunc(Val) = 0;
    virtual Val cmp(Cmp, Val, Val) = 0;
    virtual Val select(Val mask, Val a, Val b) = 0;
    virtual Val bit_and(Val, Val) = 0;
    virtual Val bit_or(Val, Val) = 0;
    virtual Val bit_xor(Val, Val) = 0;
    virtual Val shl(Val, Val) = 0;
    virtual Val shr(Val, Val) = 0;  // arithmetic
    virtual Val cast(Val, Ty) = 0;  // float -> int truncates as x86 does in eager
    virtual Val bitcast(Val, Ty) = 0;
    virtual Val narrow(Val, DType) = 0;  // round an f32 to bf16/f16, wrap an i32 to i8/u8/i16; stays in its register type
    // Lanes of mask: fn(x, z), others: y. A cold block that calls C. z is unused by one-argument functions.
    virtual Val libm(Val mask, Val x, Val z, Val y, double (*fn)(double, double)) = 0;
    // hooks that a target may do in one or few instructions
    virtual Val quotient(Val a, Val b) { return div(a, b); }  // b normal and finite; 1 ulp allowed (inside mathlib only)
    virtual Val scale2(Val x, Val n);                         // x * 2^n, n an integral float in [-300, 300]
    virtual std::pair<Val, Val> split2(Val x);                // x > 0 -> mantissa in [0.75, 1.5), exponent as float

    Val f(double v) { return constant(Ty::f32, v); }
    Val like(Val x, double v) { return constant(x.ty, v); }
    Val shl(Val a, int k) { return shl(a, integer(a.ty, k)); }
    Val shr(Val a, int k) { return shr(a, integer(a.ty, k)); }
    Val max2(Val a, Val b) { return select(cmp(Cmp::gt, a, b), a, b); }  // NaN in b stays, in a is lost: one vmaxps
    Val min2(Val a, Val b) { return select(cmp(Cmp::lt, a, b), a, b); }
    Val nan_of(Val x, Val y) { return select(cmp(Cmp::ne, x, x), x, y); }  // x where x is NaN, else y
    // Highest power first. A long one is two chains, of the even and of the odd powers: half as many steps wait for each other.
    template <int N> Val poly(Val x, const double (&c)[N]) {
        if (N < 8) return horner(x, x, c, N, 0, 1);
        Val square = mul(x, x);
        Val even = horner(x, square, c, N, (N - 1) % 2, 2), odd = horner(x, square, c, N, N % 2, 2);
        return fma(odd, x, even);
    }

private:
    Val horner(Val like_this, Val x, const double* c, int count, int first, int step) {
        Val r = like(like_this, c[first]);
        for (int k = first + step; k < count; k += step) r = fma(r, x, like(x, c[k]));
        return r;
    }
};

}  // namespace framejit
