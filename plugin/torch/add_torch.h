// Private functions of framejit._C that look at this folder from Python: tests and measurements. Declared apart so that nothing else sees
// them.
#pragma once
#include "plugin/py.h"

namespace framejit {

int add_torch(PyObject* module);  // -1 with a Python error; does not import torch

}  // namespace framejit
