// What a number becomes in an element type: rounding of floats, wrapping of integers. Shared by constants and by the interpreter.
#pragma once
#include <bit>
#include <cstdint>

#include "framejit/dtype.h"

namespace framejit {

inline float bf16_to_f32(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }
inline uint16_t f32_to_bf16(float v) {  // to nearest even, NaN to the canonical one, as eager
    const uint32_t u = std::bit_cast<uint32_t>(v);
    if (v != v) return 0x7fc0;
    return uint16_t((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}
inline double round_to(double v, DType d) {
    switch (d) {
    case DType::bf16: return bf16_to_f32(f32_to_bf16(float(v)));
    case DType::f16: return double(_Float16(float(v)));
    case DType::f32: return float(v);
    default: return v;
    }
}
inline int64_t wrap_to(int64_t v, DType d) {
    switch (d) {
    case DType::b1: return v != 0;
    case DType::u8: return uint8_t(v);
    case DType::i8: return int8_t(v);
    case DType::i16: return int16_t(v);
    case DType::i32: return int32_t(v);
    default: return v;
    }
}

}  // namespace framejit
