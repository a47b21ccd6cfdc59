// The extension module framejit._C is assembled from parts. A part declares `int add_<part>(PyObject* module)` in its own header, which
// adds its functions and types and returns -1 with a Python error, and gets a row in module.cpp.
#pragma once
#include "plugin/py.h"

namespace framejit {

int add_interpreter(PyObject* module);  // interpret_everything, interpreter_counters, watch

}  // namespace framejit
