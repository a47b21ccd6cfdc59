#include "plugin/torch/internals.h"

namespace framejit {

static PyObject* attribute_of(const char* module, const char* name) {
    PyRef m = PyRef::steal(PyImport_ImportModule(module));
    return m ? PyObject_GetAttrString(m.get(), name) : nullptr;
}
PyObject* torch_c_function(const char* name) { return attribute_of("torch._C", name); }
PyObject* dispatch_rule_lookup() { return attribute_of("torch._library.simple_registry", "find_torch_dispatch_rule"); }

bool inside_transform() {
    static PyObject* const innermost = attribute_of("torch._C._functorch", "peek_interpreter_stack");
    PyRef level = PyRef::steal(innermost ? PyObject_CallNoArgs(innermost) : nullptr);
    if (!level) PyErr_Clear();
    return level && level.get() != Py_None;
}

bool is_inference(PyObject* tensor) {
    PyRef answer = PyRef::steal(PyObject_CallMethod(tensor, "is_inference", nullptr));
    if (!answer) PyErr_Clear();
    return answer.get() == Py_True;
}
PyObject* call_generator(const char* method, PyObject* state) {
    static PyObject* const generator = attribute_of("torch", "default_generator");
    if (!generator) return nullptr;
    return state ? PyObject_CallMethod(generator, method, "O", state) : PyObject_CallMethod(generator, method, nullptr);
}
PyObject* module_getattr() {
    PyRef module = PyRef::steal(attribute_of("torch.nn", "Module"));
    PyRef function = PyRef::steal(module ? PyObject_GetAttrString(module.get(), "__getattr__") : nullptr);
    if (!function || !PyFunction_Check(function.get())) return nullptr;
    // All that code can name: constants, attributes and globals, locals. Anything added to it would show.
    PyRef known = PyRef::steal(Py_BuildValue("(Ossss)(ssss)", Py_None, "_parameters", "_buffers", "_modules", "'",  //
                                             "__dict__", "AttributeError", "type", "__name__"));
    auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function.get()));
    PyRef consts = PyRef::steal(PyTuple_GetSlice(code->co_consts, 0, 5));
    PyRef found = PyRef::steal(consts ? PyTuple_Pack(2, consts.get(), code->co_names) : nullptr);
    const bool same =
        known && found && PyTuple_GET_SIZE(code->co_consts) == 6 && PyObject_RichCompareBool(known.get(), found.get(), Py_EQ) == 1;
    return same ? function.release() : nullptr;
}

}  // namespace framejit
