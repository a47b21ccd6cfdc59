/* CPython 3.11, the part that needs its internal headers. Those are C; plugin/frame/cpython_311.h declares what C++ uses of this file. */
#include <patchlevel.h>
#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
#define Py_BUILD_CORE 1 /* before Python.h */
#include <Python.h>
#include <internal/pycore_frame.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_object.h>
#include <internal/pycore_pystate.h>

#include "plugin/frame/cpython_311_layout.h"

#define SAME_OFFSET(field)                                                                                                                 \
    _Static_assert(offsetof(struct framejit_frame_copy, field) == offsetof(_PyInterpreterFrame, field),                                    \
                   "frame layout of CPython 3.11: " #field)
SAME_OFFSET(f_func);
SAME_OFFSET(f_globals);
SAME_OFFSET(f_builtins);
SAME_OFFSET(f_locals);
SAME_OFFSET(f_code);
SAME_OFFSET(frame_obj);
SAME_OFFSET(previous);
SAME_OFFSET(prev_instr);
SAME_OFFSET(stacktop);
SAME_OFFSET(is_entry);
SAME_OFFSET(owner);
SAME_OFFSET(localsplus);
_Static_assert(FRAME_OWNED_BY_GENERATOR == 1 && FRAME_SUSPENDED == -1, "constants repeated in cpython_311.h");

const int* framejit_eval_breaker(PyThreadState* thread) { return (const int*)&thread->interp->ceval.eval_breaker; }

PyObject* framejit_import_func(PyThreadState* thread) { return thread->interp->import_func; }

PyObject** framejit_managed_dict(PyObject* object) { return _PyObject_ManagedDictPointer(object); }
#else
typedef int framejit_not_cpython_311; /* ISO C forbids an empty translation unit */
#endif
