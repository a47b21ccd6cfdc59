// Structural pattern matching.
#include "plugin/interpret/run.h"

namespace framejit {

HANDLER(GetLen) {
    const Py_ssize_t length = PyObject_Length(sp[-1]);
    return length < 0 ? fail(run, sp) : finish(run, sp, 0, PyLong_FromSsize_t(length));
}

HANDLER(MatchMapping) { return push(sp, new_bool(PyType_HasFeature(Py_TYPE(sp[-1]), Py_TPFLAGS_MAPPING))); }
HANDLER(MatchSequence) { return push(sp, new_bool(PyType_HasFeature(Py_TYPE(sp[-1]), Py_TPFLAGS_SEQUENCE))); }

// stack: subject, keys; pushes the values or None
HANDLER(MatchKeys) { return finish(run, sp, 0, run_native(run.thread, Op::MatchKeys, 0, sp - 2, 2)); }

// stack: subject, class, names of keyword patterns; becomes a tuple of attributes or None. The argument counts positional patterns.
HANDLER(MatchClass) { return finish(run, sp, 3, run_native(run.thread, Op::MatchClass, ins.arg, sp - 3, 3)); }

}  // namespace framejit
