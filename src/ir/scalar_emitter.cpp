#include "src/ir/scalar_emitter.h"

#include <cmath>
#include <limits>

#include "src/ir/number.h"

namespace framejit {
namespace {

// f32 arithmetic is done in float, so that it rounds once; integers wrap.
template <class Real, class Whole> Val binary(Val a, Val b, Real real, Whole whole) {
    if (a.ty == Ty::f32) return ScalarEmitter::real(a.ty, real(float(a.f), float(b.f)));
    if (a.ty == Ty::f64) return ScalarEmitter::real(a.ty, real(a.f, b.f));
    return ScalarEmitter::whole(a.ty, int64_t(whole(uint64_t(a.i), uint64_t(b.i))));
}

int64_t truncate(double v, Ty to) {  // as cvttss2si: what does not fit becomes the lowest integer
    if (to == Ty::i32) return v > -2147483649.0 && v < 2147483648.0 ? int64_t(v) : std::numeric_limits<int32_t>::min();
    return v >= -9223372036854775808.0 && v < 9223372036854775808.0 ? int64_t(v) : std::numeric_limits<int64_t>::min();
}

template <class T> bool compare(Cmp how, T a, T b) {
    switch (how) {
    case Cmp::lt: return a < b;
    case Cmp::le: return a <= b;
    case Cmp::gt: return a > b;
    case Cmp::ge: return a >= b;
    case Cmp::eq: return a == b;
    case Cmp::ne: return a != b;
    }
    return false;
}

}  // namespace

Val ScalarEmitter::real(Ty t, double v) {
    Val r{};
    r.ty = t;
    r.f = t == Ty::f32 ? double(float(v)) : v;
    return r;
}
Val ScalarEmitter::whole(Ty t, int64_t v) {
    Val r{};
    r.ty = t;
    r.i = t == Ty::i32 ? int64_t(int32_t(v)) : t == Ty::b1 ? v & 1 : v;
    return r;
}
Val ScalarEmitter::constant(Ty t, double v) {
    return is_float(t) ? real(t, v) : t == Ty::b1 ? whole(t, v != 0) : whole(t, truncate(v, Ty::i64));
}

Val ScalarEmitter::add(Val a, Val b) {
    return binary(a, b, [](auto x, auto y) { return x + y; }, [](uint64_t x, uint64_t y) { return x + y; });
}
Val ScalarEmitter::sub(Val a, Val b) {
    return binary(a, b, [](auto x, auto y) { return x - y; }, [](uint64_t x, uint64_t y) { return x - y; });
}
Val ScalarEmitter::mul(Val a, Val b) {
    return binary(a, b, [](auto x, auto y) { return x * y; }, [](uint64_t x, uint64_t y) { return x * y; });
}
Val ScalarEmitter::div(Val a, Val b) {
    return binary(
        a, b, [](auto x, auto y) { return x / y; },
        [](uint64_t x, uint64_t y) { return y == 0              ? 0
                                            : y == uint64_t(-1) ? 0 - x
                                                                : uint64_t(int64_t(x) / int64_t(y)); });
}
Val ScalarEmitter::rem(Val a, Val b) {
    return binary(
        a, b, [](auto x, auto y) { return std::fmod(x, y); },
        [](uint64_t x, uint64_t y) { return y == 0 || y == uint64_t(-1) ? 0 : uint64_t(int64_t(x) % int64_t(y)); });
}
Val ScalarEmitter::fma(Val a, Val b, Val c) {
    return real(a.ty, a.ty == Ty::f32 ? double(std::fmaf(float(a.f), float(b.f), float(c.f))) : std::fma(a.f, b.f, c.f));
}
Val ScalarEmitter::neg(Val a) { return is_float(a.ty) ? real(a.ty, -a.f) : whole(a.ty, int64_t(0 - uint64_t(a.i))); }
Val ScalarEmitter::abs(Val a) { return is_float(a.ty) ? real(a.ty, std::fabs(a.f)) : a.i < 0 ? neg(a) : a; }
Val ScalarEmitter::copysign(Val a, Val b) { return real(a.ty, std::copysign(a.f, b.f)); }
Val ScalarEmitter::sqrt(Val a) { return real(a.ty, a.ty == Ty::f32 ? double(std::sqrt(float(a.f))) : std::sqrt(a.f)); }
Val ScalarEmitter::round(Val a) { return real(a.ty, std::nearbyint(a.f)); }
Val ScalarEmitter::floor(Val a) { return real(a.ty, std::floor(a.f)); }
Val ScalarEmitter::ceil(Val a) { return real(a.ty, std::ceil(a.f)); }
Val ScalarEmitter::trunc(Val a) { return real(a.ty, std::trunc(a.f)); }
Val ScalarEmitter::cmp(Cmp how, Val a, Val b) { return whole(Ty::b1, is_float(a.ty) ? compare(how, a.f, b.f) : compare(how, a.i, b.i)); }

Val ScalarEmitter::cast(Val a, Ty to) {
    if (a.ty == to) return a;
    const bool from_real = is_float(a.ty);
    if (to == Ty::b1) return whole(to, from_real ? a.f != 0 : a.i != 0);
    if (!is_float(to)) return whole(to, from_real ? truncate(a.f, to) : a.i);
    if (from_real) return real(to, a.f);
    return real(to, to == Ty::f32 ? double(float(a.i)) : double(a.i));  // i64 to f32 rounds once
}
Val ScalarEmitter::bitcast(Val a, Ty to) {
    switch (to) {
    case Ty::i32: return whole(to, std::bit_cast<int32_t>(float(a.f)));
    case Ty::f32: return real(to, std::bit_cast<float>(int32_t(a.i)));
    case Ty::i64: return whole(to, std::bit_cast<int64_t>(a.f));
    default: return real(to, std::bit_cast<double>(a.i));
    }
}
Val ScalarEmitter::narrow(Val a, DType d) { return is_float(a.ty) ? real(a.ty, round_to(a.f, d)) : whole(a.ty, wrap_to(a.i, d)); }

Val load_scalar(const void* memory, DType d, int64_t i) {
    switch (d) {
    case DType::b1: return ScalarEmitter::whole(Ty::b1, static_cast<const uint8_t*>(memory)[i] != 0);
    case DType::u8: return ScalarEmitter::whole(Ty::i32, static_cast<const uint8_t*>(memory)[i]);
    case DType::i8: return ScalarEmitter::whole(Ty::i32, static_cast<const int8_t*>(memory)[i]);
    case DType::i16: return ScalarEmitter::whole(Ty::i32, static_cast<const int16_t*>(memory)[i]);
    case DType::i32: return ScalarEmitter::whole(Ty::i32, static_cast<const int32_t*>(memory)[i]);
    case DType::i64: return ScalarEmitter::whole(Ty::i64, static_cast<const int64_t*>(memory)[i]);
    case DType::bf16: return ScalarEmitter::real(Ty::f32, bf16_to_f32(static_cast<const uint16_t*>(memory)[i]));
    case DType::f16: return ScalarEmitter::real(Ty::f32, float(static_cast<const _Float16*>(memory)[i]));
    case DType::f32: return ScalarEmitter::real(Ty::f32, static_cast<const float*>(memory)[i]);
    default: return ScalarEmitter::real(Ty::f64, static_cast<const double*>(memory)[i]);
    }
}

void store_scalar(void* memory, DType d, int64_t i, Val v) {
    switch (d) {
    case DType::b1: static_cast<uint8_t*>(memory)[i] = uint8_t(v.i & 1); break;
    case DType::u8: static_cast<uint8_t*>(memory)[i] = uint8_t(v.i); break;
    case DType::i8: static_cast<int8_t*>(memory)[i] = int8_t(v.i); break;
    case DType::i16: static_cast<int16_t*>(memory)[i] = int16_t(v.i); break;
    case DType::i32: static_cast<int32_t*>(memory)[i] = int32_t(v.i); break;
    case DType::i64: static_cast<int64_t*>(memory)[i] = v.i; break;
    case DType::bf16: static_cast<uint16_t*>(memory)[i] = f32_to_bf16(float(v.f)); break;
    case DType::f16: static_cast<_Float16*>(memory)[i] = _Float16(float(v.f)); break;
    case DType::f32: static_cast<float*>(memory)[i] = float(v.f); break;
    default: static_cast<double*>(memory)[i] = v.f; break;
    }
}

}  // namespace framejit
