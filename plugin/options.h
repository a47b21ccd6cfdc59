// framejit._C.options(), get_option(name), set_option(name, value): the table of options.def for Python.
#pragma once
#include "framejit/options.h"
#include "plugin/py.h"
#include <map>
#include <string>

namespace framejit {

int add_options(PyObject* module);  // -1 with a Python error: also when the environment holds a bad value (ValueError)

// The options of one compiled function: what `options=` gave, otherwise the process's value at the time of asking.
using FunctionOptions = std::map<Option, int64_t>;
// Reads the options of `function` scope from a dict; other keys are left to the caller. -1 with TypeError or ValueError.
int function_options(PyObject* dict, FunctionOptions&);
inline int64_t option(const FunctionOptions& own, Option o) {
    auto found = own.find(o);
    return found == own.end() ? option(o) : found->second;
}

}  // namespace framejit
