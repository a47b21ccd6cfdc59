/* The fields of CPython 3.11's interpreter frame, readable from C and C++.
   C++ cannot include internal/pycore_frame.h (its atomics are C11's), so the struct is repeated here. The C half, cpython_311.c, gives the
   copy another name, includes the original as well, and fails to compile if an offset differs. */
#pragma once
#include <Python.h>
#include <stdbool.h>

#ifdef __cplusplus
#define FRAMEJIT_FRAME_STRUCT _PyInterpreterFrame
#else
#define FRAMEJIT_FRAME_STRUCT framejit_frame_copy
#endif

struct FRAMEJIT_FRAME_STRUCT {
    PyFunctionObject* f_func;
    PyObject* f_globals;
    PyObject* f_builtins;
    PyObject* f_locals; /* null in functions, a mapping in module, class and exec frames */
    PyCodeObject* f_code;
    PyFrameObject* frame_obj;
    struct FRAMEJIT_FRAME_STRUCT* previous;
    _Py_CODEUNIT* prev_instr; /* the unit being executed, or the one before the next instruction */
    int stacktop;             /* -1 while the frame runs: the garbage collector must not look at a half-written stack */
    bool is_entry;
    char owner; /* 0 thread, 1 generator, 2 frame object */
    PyObject* localsplus[1];
};
