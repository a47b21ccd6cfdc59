// Values that can be compared and printed without running Python code: what Value rows, source keys and explanations work on.
#pragma once
#include "plugin/py.h"
#include <string>

namespace framejit {

// The same exact type and equal. Floats and complex numbers by their bits (-0.0 and NaN are told apart), containers of values element by
// element. False for anything whose comparison could run Python code, unless it is the same object. Leaves no Python error behind.
bool same_value(PyObject* a, PyObject* b);
uint64_t hash_value(PyObject*);           // equal for values that are the same; by address for everything else
std::string print_value(PyObject*);       // "2", "'gelu'", "Linear object", at most about 60 characters
std::string print_typed(PyObject*);       // "int 2"
std::string name_of_type(PyTypeObject*);  // "torch.nn.Linear" -> "Linear"

}  // namespace framejit
