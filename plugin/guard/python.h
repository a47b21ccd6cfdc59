// The guard set as a private Python type, for tests and tools: framejit._C._GuardSet(sources, guards, names, wanted=()).
#pragma once
#include "plugin/py.h"

namespace framejit {

int add_guard(PyObject* module);  // -1 with a Python error

}  // namespace framejit
