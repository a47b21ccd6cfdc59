// A `__getattr__` written in Python that does nothing but look into dicts kept in the object's own dict (that of torch.nn.Module) is
// answered without a frame: it is a fifth of the instructions of a model. The answer is the one that the function would give, or none: then
// it runs.
#pragma once
#include "plugin/py.h"
#include <vector>

namespace framejit {

// Attributes are found as object finds them, perhaps with a __getattr__ after it: no __getattribute__ of its own, in Python or in C.
bool generic_getattribute(PyTypeObject*);

// `dicts`: the keys under which `function` looks, in order; interned here. Held for ever.
void note_member_getattr(PyObject* function, std::vector<PyRef> dicts);

// What the noted functions' classes look through for o.name, or null: o's class has the attribute, or decides otherwise, or o's own dict
// has it.
const std::vector<PyRef>* member_dicts(PyObject* o, PyObject* name);

// o.name out of those dicts, borrowed; null without an error: not there.
PyObject* member_of(PyObject* o, PyObject* name);

}  // namespace framejit
