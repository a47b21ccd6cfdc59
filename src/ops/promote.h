// torch's type promotion: tensors with dimensions decide before 0-dim tensors, these before Python numbers; a lower group counts only
// when its category (bool < integer < float) is higher. See torch.result_type.
#pragma once
#include <span>

#include "framejit/op.h"

namespace framejit {

DType promote(DType, DType);  // torch.promote_types; complex is not computed here
// Of values and Python numbers (`Arg`s that are neither do not count). default_float: what a Python float is when nothing else floats.
DType result_type(std::span<const Arg* const> operands, DType default_float = DType::f32);
DType to_float(DType, DType default_float = DType::f32);  // what float functions compute integers in

}  // namespace framejit
