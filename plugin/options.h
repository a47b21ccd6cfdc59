// framejit._C.options(), get_option(name), set_option(name, value), check_function_options(dict): the table of options.def for Python.
#pragma once
#include "framejit/options.h"
#include "plugin/py.h"

namespace framejit {

int add_options(PyObject* module);  // -1 with a Python error: also when the environment holds a bad value (ValueError)

}  // namespace framejit
