// The second Emitter: executes at once, one scalar at a time. The test oracle; also folds constants.
// A floating Val holds its value in `f` (an f32 as a double that is a float), an integer or boolean one in `i`, wrapped to its width.
#pragma once
#include "framejit/emitter.h"

namespace framejit {

class ScalarEmitter final : public Emitter {
public:
    static Val real(Ty, double);
    static Val whole(Ty, int64_t);

    Val constant(Ty, double) override;
    Val integer(Ty t, int64_t v) override { return is_float(t) ? real(t, double(v)) : whole(t, v); }
    Val add(Val, Val) override;
    Val sub(Val, Val) override;
    Val mul(Val, Val) override;
    Val div(Val, Val) override;
    Val rem(Val, Val) override;
    Val fma(Val, Val, Val) override;
    Val neg(Val) override;
    Val abs(Val) override;
    Val copysign(Val, Val) override;
    Val sqrt(Val) override;
    Val round(Val) override;
    Val floor(Val) override;
    Val ceil(Val) override;
    Val trunc(Val) override;
    Val cmp(Cmp, Val, Val) override;
    Val select(Val mask, Val a, Val b) override { return mask.i ? a : b; }
    Val bit_and(Val a, Val b) override { return whole(a.ty, a.i & b.i); }
    Val bit_or(Val a, Val b) override { return whole(a.ty, a.i | b.i); }
    Val bit_xor(Val a, Val b) override { return whole(a.ty, a.i ^ b.i); }
    Val shl(Val a, Val b) override { return whole(a.ty, int64_t(uint64_t(a.i) << (b.i & 63))); }
    Val shr(Val a, Val b) override { return whole(a.ty, a.i >> (b.i & 63)); }
    Val cast(Val, Ty) override;
    Val bitcast(Val, Ty) override;
    Val narrow(Val, DType) override;
    Val libm(Val mask, Val x, Val z, Val y, double (*fn)(double, double)) override { return mask.i ? real(y.ty, fn(x.f, z.f)) : y; }
    using Emitter::shl;
    using Emitter::shr;
};

Val load_scalar(const void* memory, DType, int64_t index);
void store_scalar(void* memory, DType, int64_t index, Val);

}  // namespace framejit
