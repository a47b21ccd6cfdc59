// Where a call that torch will make stands in the user's program, for its error messages.
#include "plugin/frame/frame.h"
#include "plugin/record/lower.h"

namespace framejit {

ExternUse use_of(const OpRow& op) {
    ExternUse use{.random = op.random};
    PyObject* generator = op.kwargs ? PyDict_GetItemString(op.kwargs.get(), "generator") : nullptr;
    use.own_generator = generator && generator != Py_None;
    if (!op.code) return use;
    const char* file = PyUnicode_AsUTF8(op.code->co_filename);
    const char* function = PyUnicode_AsUTF8(op.code->co_name);
    PyErr_Clear();
    use.file = file ? file : "?";
    use.function = function ? function : "?";
    use.line = line_at(op.code, op.unit);
    return use;
}

}  // namespace framejit
