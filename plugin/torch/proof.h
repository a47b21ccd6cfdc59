// Torch's builtins (torch.mm, torch._C._nn.gelu, Tensor.view) cost half of what an overload costs, but choose the overload themselves. They
// serve an extern only after a proof. Private to plugin/torch.
#pragma once
#include "plugin/torch/operators.h"

namespace framejit {

// The builtin that may be this operator; borrowed for good, null when there is none. Pure operators only: a failed proof runs them again.
PyObject* builtin_for(const OpSchema&);

// Calls the builtin under a dispatch mode that lets exactly one operator through: `overload`, with these arguments. Given the same
// constants and tensors of the same rank, the choice is always the same. A new reference to the result; null: not proven, or with a Python
// error, interrupted (errors of the operator itself are left to the overload).
PyObject* prove(PyObject* builtin, PyObject* overload, PyObject* const* values, size_t positional, PyObject* names);

}  // namespace framejit
