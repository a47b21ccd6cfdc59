// Private functions of framejit._C with which tests run single operators through the compiler.
#pragma once
#include "plugin/py.h"

namespace framejit {

int add_tools(PyObject* module);  // -1 with a Python error

}  // namespace framejit
