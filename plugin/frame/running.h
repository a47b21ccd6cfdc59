// What the interpreter needs to run a frame in CPython's place: linking, the position, the stack pointer, tracing, thunks.
// One header per CPython version implements it inline; this file chooses. No other part of the plugin includes it.
//
// While a frame runs:
//   * `set_unit` has been called with the opcode's own unit (after EXTENDED_ARG) for the instruction being executed, and `start - 1` before
//   the
//     frame is handed over, so that tracebacks, `f_lineno` and generators' `throw` see what CPython would show them;
//   * the stack pointer in the frame is hidden (`take_stack`) and written back right before every return and hand-over;
//   * the frame is linked as the thread's current one, so `sys._getframe`, `super()`, `locals()` and tracebacks need nothing else.
#pragma once
#include "plugin/frame/frame.h"

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
#include "plugin/frame/cpython_311.h"
#else
#error "framejit knows CPython 3.11 only; plugin/frame/README.md says what another version takes"
#endif

namespace framejit {

// ---- thunks: an instruction whose C helper libpython does not export runs natively in a tiny code object made for it ----

inline constexpr int kMaxThunkOperands = 4;
enum class Results { One, Pair };  // Pair: the two topmost values, as a tuple

// Runs `op arg` with the operands pushed in order. `name`: what `co_names[0]` is, for instructions that use one.
PyObject* run_native(PyThreadState*, Op op, int arg, PyObject* const* operands, int count, Results = Results::One,
                     PyObject* name = nullptr);
// `from module import *` into these namespaces. -1: error.
int import_star_native(PyThreadState*, PyObject* module, PyObject* globals, PyObject* locals);
// Does what the eval breaker asks for: signals, pending calls, the GIL, asynchronous exceptions. False: an exception is set.
bool serve_eval_breaker(PyThreadState*);
int init_thunks();  // -1 with a Python error

}  // namespace framejit
