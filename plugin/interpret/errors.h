// Exceptions in CPython's words, where its own helpers are hidden in libpython.
#pragma once
#include "plugin/py.h"

namespace framejit {

void set_name_error(PyObject* name);
void set_unbound_local(PyObject* name);
void set_unbound_free_variable(PyObject* name);
void set_not_iterable_argument(PyObject* function, PyObject* arguments);  // f(*arguments)
void explain_mapping_argument(PyObject* function, PyObject* mapping);     // f(**mapping): replaces the exception that merging it raised
void raise_again(PyObject* exception);                                    // steals it; its traceback goes on growing

}  // namespace framejit
