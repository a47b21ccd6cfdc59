// A watcher written in Python: framejit._C.watch(function, callback), for tests and for looking at what the interpreter does.
#pragma once
#include "plugin/py.h"

namespace framejit {

PyObject* watch(PyObject* module, PyObject* const* arguments, Py_ssize_t count);
extern const char kWatchDoc[];

}  // namespace framejit
