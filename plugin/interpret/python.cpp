// The interpreter's functions in framejit._C.
#include "plugin/interpret/interpreter.h"
#include "plugin/interpret/probe.h"
#include "plugin/interpret/watcher.h"
#include "plugin/module.h"

namespace framejit {
namespace {

PyObject* py_interpret_everything(PyObject*, PyObject* on) {
    const int is_on = PyObject_IsTrue(on);
    if (is_on < 0) return nullptr;
    interpret_everything(is_on != 0);
    Py_RETURN_NONE;
}

PyObject* py_interpreter_counters(PyObject*, PyObject*) {
    return Py_BuildValue("{s:l,s:l,s:n}", "frames", interpreter_counters.frames, "handed_over", interpreter_counters.handed_over, "decoded",
                         (Py_ssize_t)decoded_count());
}

PyMethodDef kFunctions[] = {
    {"interpret_everything", py_interpret_everything, METH_O,
     "Run every Python frame of the process in framejit's interpreter, or stop doing so."},
    {"interpreter_counters", py_interpreter_counters, METH_NOARGS, "Frames run, how many of them CPython finished, code objects known."},
    {"watch", (PyCFunction)(void (*)(void))watch, METH_FASTCALL, kWatchDoc},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

int add_interpreter(PyObject* module) { return PyModule_AddFunctions(module, kFunctions); }

}  // namespace framejit
