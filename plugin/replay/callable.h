// What framejit.compile(f) returns: a C callable that behaves as the function does and, on a call, looks for a compiled region directly on
// the bound arguments, without a frame.
//
// A call binds the arguments into the slots that a frame of the function would have at entry and asks call_region(). If nothing serves the
// call, or the arguments do not bind, call_slow() gets the call exactly as it came: the function itself raises Python's own errors. Two
// Python types share the struct: CompiledFunction binds as a method like any function, CompiledMethod (of a bound method) does not.
#pragma once
#include "plugin/py.h"

namespace framejit {

struct CompiledFunction {
    PyObject_HEAD vectorcallfunc call;
    PyObject* target;    // the function or bound method that was given
    PyObject* function;  // the Python function behind it
    PyCodeObject* code;  // its code when compiled; a function that was given another one since goes to call_slow
    PyObject* self;      // of a bound method (it is slot 0), or null
    PyObject* options;   // dict
    PyObject* dict;
    PyObject* weak;
    int positional;  // parameters that positional arguments fill
    int slots;       // locals, cells and free variables of a frame
    bool plain;      // no keyword-only parameters, *args or **kwargs
    // What replay hangs on it. traverse_state and clear_state serve the cycle collector; free_state is called once, at the end.
    void* state;
    void (*free_state)(void*);
    int (*traverse_state)(void*, visitproc, void*);
    void (*clear_state)(void*);
};

int add_callable(PyObject* module);                            // -1 with a Python error. make_callable(target, options) and the types
PyObject* make_callable(PyObject* target, PyObject* options);  // TypeError for anything but a Python function or a method of one
CompiledFunction* as_compiled(PyObject*);                      // null: something else

// slots: as in a frame at entry, borrowed for the call: arguments (plain, also those that the code will move into cells), *args tuple,
// **kwargs dict, null for other locals, then the closure's cells for the free variables. slots[-1] is the function. The result is new, or
// null with a Python error. *handled false: nothing was done and nothing is set.
PyObject* call_region(CompiledFunction*, PyObject* const* slots, bool* handled);
// No region served: `callable` (the target) is to be called, recorded or not.
PyObject* call_slow(CompiledFunction*, PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* kwnames);

}  // namespace framejit
