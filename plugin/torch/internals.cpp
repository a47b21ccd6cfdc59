#include "plugin/torch/internals.h"

namespace framejit {

static PyObject* attribute_of(const char* module, const char* name) {
    PyRef m = PyRef::steal(PyImport_ImportModule(module));
    return m ? PyObject_GetAttrString(m.get(), name) : nullptr;
}
PyObject* torch_c_function(const char* name) { return attribute_of("torch._C", name); }
PyObject* dispatch_rule_lookup() { return attribute_of("torch._library.simple_registry", "find_torch_dispatch_rule"); }

}  // namespace framejit
