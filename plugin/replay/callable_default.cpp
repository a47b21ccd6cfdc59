// What a callable does when nothing is linked that records and replays: it calls its target.
#include "plugin/replay/callable.h"

namespace framejit {

__attribute__((weak)) PyObject* call_region(CompiledFunction*, PyObject* const*, bool* handled) {
    *handled = false;
    return nullptr;
}

__attribute__((weak)) PyObject* call_slow(CompiledFunction*, PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
    return PyObject_Vectorcall(callable, args, nargsf, kwnames);
}

}  // namespace framejit
