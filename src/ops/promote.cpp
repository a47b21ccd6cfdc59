#include "src/ops/promote.h"

#include <algorithm>

namespace framejit {
namespace {

int category(DType d) { return is_float(d) ? 2 : is_int(d) ? 1 : 0; }

// The winners of the three groups, each promoted within itself.
struct Groups {
    DType dims = DType::b1, zero = DType::b1, number = DType::b1;
    bool has_dims = false, has_zero = false, has_number = false;
};

void add_to(DType& group, bool& has, DType d) {
    group = has ? promote(group, d) : d;
    has = true;
}

}  // namespace

DType promote(DType a, DType b) {
    if (a == b) return a;
    if (category(a) != category(b)) return category(a) > category(b) ? a : b;
    if (category(a) == 2) return size_of(a) == size_of(b) ? DType::f32 : size_of(a) > size_of(b) ? a : b;  // bf16 with f16: f32
    if (a == DType::u8 || b == DType::u8) return std::max({a, b, DType::i16});                             // u8 with i8: i16
    return std::max(a, b);
}

DType result_type(std::span<const Arg* const> operands, DType default_float) {
    Groups g;
    for (const Arg* arg : operands) {
        if (auto* t = arg->as<Ref>()) {
            if ((*t)->shape.empty())
                add_to(g.zero, g.has_zero, (*t)->dtype);
            else
                add_to(g.dims, g.has_dims, (*t)->dtype);
        }
        if (arg->as<bool>()) add_to(g.number, g.has_number, DType::b1);
        if (arg->as<int64_t>()) add_to(g.number, g.has_number, DType::i64);
        if (arg->as<double>()) add_to(g.number, g.has_number, default_float);
    }
    auto combine = [](DType higher, bool has_higher, DType lower, bool has_lower) {
        if (!has_higher) return lower;
        return has_lower && category(lower) > category(higher) ? lower : higher;
    };
    const DType low = combine(g.zero, g.has_zero, g.number, g.has_number);
    return combine(g.dims, g.has_dims, low, g.has_zero || g.has_number);
}

DType to_float(DType d, DType default_float) { return is_float(d) ? d : default_float; }

}  // namespace framejit
