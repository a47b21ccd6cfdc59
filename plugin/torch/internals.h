// Parts of torch's Python side that recording needs: functions of torch._C, and the one Python function that runs for every operator under
// a mode.
#pragma once
#include "plugin/py.h"

namespace framejit {

PyObject* torch_c_function(const char* name);  // attribute of torch._C, new reference; null with a Python error
bool inside_transform();                       // a level of functorch (vmap, grad, jvp) is entered
bool is_inference(PyObject* tensor);
// torch.default_generator (the CPU's) .get_state() or .set_state(state): new reference; null with a Python error.
PyObject* call_generator(const char* method, PyObject* state);
// torch.nn.Module.__getattr__, new reference, when it is the function that looks into _parameters, _buffers and _modules in this order and
// nowhere else; null (maybe with a Python error): another one.
PyObject* module_getattr();
PyObject* dispatch_rule_lookup();  // torch._library.simple_registry.find_torch_dispatch_rule, new reference; null with a Python error

}  // namespace framejit
