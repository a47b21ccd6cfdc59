// Element types. `DType` is what memory holds, `Ty` is what registers hold while a kernel computes.
// bf16/f16 live in registers as an f32 that is representable, i8/u8/i16 as an i32 that is in range: the driver narrows after every op.
// Invariant: every DType has a row in kDTypes; complex types have no register type, so only externs may touch them.
#pragma once
#include <cstdint>
#include <string_view>

namespace framejit {

enum class DType : uint8_t { b1, u8, i8, i16, i32, i64, bf16, f16, f32, f64, c64, c128, other };
enum class Ty : uint8_t { b1, i32, i64, f32, f64, none };

struct DTypeRow {
    std::string_view name;
    int size;                 // bytes
    Ty reg;                   // Ty::none: not computable by kernels
    int torch_code;           // c10::ScalarType
    bool floating, integral;  // bool is neither
};
inline constexpr DTypeRow kDTypes[] = {
    {"b1", 1, Ty::b1, 11, false, false},      {"u8", 1, Ty::i32, 0, false, true},    {"i8", 1, Ty::i32, 1, false, true},
    {"i16", 2, Ty::i32, 2, false, true},      {"i32", 4, Ty::i32, 3, false, true},   {"i64", 8, Ty::i64, 4, false, true},
    {"bf16", 2, Ty::f32, 15, true, false},    {"f16", 2, Ty::f32, 5, true, false},   {"f32", 4, Ty::f32, 6, true, false},
    {"f64", 8, Ty::f64, 7, true, false},      {"c64", 8, Ty::none, 9, false, false}, {"c128", 16, Ty::none, 10, false, false},
    {"other", 0, Ty::none, -1, false, false},
};
inline constexpr int kDTypeCount = int(sizeof(kDTypes) / sizeof(kDTypes[0]));
constexpr const DTypeRow& row(DType d) { return kDTypes[int(d)]; }
constexpr Ty reg(DType d) { return row(d).reg; }
constexpr int size_of(DType d) { return row(d).size; }
constexpr bool is_float(DType d) { return row(d).floating; }
constexpr bool is_int(DType d) { return row(d).integral; }
constexpr bool is_float(Ty t) { return t == Ty::f32 || t == Ty::f64; }
constexpr bool computable(DType d) { return reg(d) != Ty::none; }
constexpr std::string_view name_of(DType d) { return row(d).name; }
constexpr DType dtype_of_torch(int code) {
    for (int i = 0; i < kDTypeCount; ++i)
        if (kDTypes[i].torch_code == code && code >= 0) return DType(i);
    return DType::other;
}

}  // namespace framejit
