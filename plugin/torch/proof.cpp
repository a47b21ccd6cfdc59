#include "plugin/torch/proof.h"
#include "plugin/torch/torch.h"
#include <string_view>

namespace framejit {

namespace {

constexpr const char* kProver = R"(
def prover(torch):
    from torch.utils._python_dispatch import TorchDispatchMode

    class Refuted(Exception):
        pass

    def bound(schema, args, kwargs):
        values = list(args)
        for argument in schema.arguments[len(values):]:
            values.append(kwargs[argument.name] if argument.name in kwargs else argument.default_value)
        return values

    def same(a, b):
        if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
            return len(a) == len(b) and all(map(same, a, b))
        if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor):
            return a is b
        return type(a) is type(b) and a == b

    class Witness(TorchDispatchMode):
        @classmethod
        def _should_skip_dynamo(cls):  # skipping imports all of it: a second
            return False

        def __init__(self, overload, args, kwargs):
            super().__init__()
            self.overload, self.expected, self.seen = overload, bound(overload._schema, args, kwargs), False

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            if self.seen or func is not self.overload or not same(bound(func._schema, args, kwargs), self.expected):
                raise Refuted
            self.seen = True
            return func(*args, **kwargs)

    def prove(builtin, overload, args, kwargs):
        try:
            witness = Witness(overload, args, kwargs)
            with witness:
                result = builtin(*args, **kwargs)
        except Exception:
            return None
        return (result,) if witness.seen else None
    return prove
)";

PyObject* found(PyObject* owner, const std::string& name) {
    PyObject* function = owner ? PyObject_GetAttrString(owner, name.c_str()) : nullptr;
    if (!function) PyErr_Clear();
    return function;
}

}  // namespace

PyObject* builtin_for(const OpSchema& schema) {
    constexpr std::string_view kNamespace = "aten::";
    if (schema.mutates || schema.random || !schema.name.starts_with(kNamespace)) return nullptr;
    std::string name = schema.name.substr(kNamespace.size());
    name = name.substr(0, name.find('.'));
    static PyObject* const owners[] = {found(torch.C, "_VariableFunctions"), found(torch.C, "_nn"),  found(torch.C, "_linalg"),
                                       found(torch.C, "_special"),           found(torch.C, "_fft"), found(torch.C, "TensorBase")};
    for (PyObject* owner : owners)
        if (PyObject* function = found(owner, name)) return function;  // kept for good: builtins never die
    return nullptr;
}

PyObject* prove(PyObject* builtin, PyObject* overload, PyObject* const* values, size_t positional, PyObject* names) {
    static PyObject* const prover = run_script(kProver, "prover");
    PyRef args = PyRef::steal(PyTuple_New(Py_ssize_t(positional)));
    PyRef kwargs = PyRef::steal(PyDict_New());
    if (!prover || !args || !kwargs) {
        PyErr_Clear();
        return nullptr;
    }
    for (size_t i = 0; i < positional; ++i) PyTuple_SET_ITEM(args.get(), Py_ssize_t(i), Py_NewRef(values[i]));
    for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i)
        if (PyDict_SetItem(kwargs.get(), PyTuple_GET_ITEM(names, i), values[positional + size_t(i)]) < 0) PyErr_Clear();
    PyRef result = PyRef::steal(PyObject_CallFunctionObjArgs(prover, builtin, overload, args.get(), kwargs.get(), nullptr));
    return result && PyTuple_Check(result.get()) ? Py_NewRef(PyTuple_GET_ITEM(result.get(), 0)) : nullptr;
}

}  // namespace framejit
