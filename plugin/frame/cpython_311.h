// CPython 3.11 for the interpreter: what plugin/frame/running.h promises, inline where it runs once per instruction.
#pragma once
#include "plugin/frame/cpython_311_layout.h"
#include "plugin/frame/frame.h"

#include <cstddef>
#include <frameobject.h>

#undef _PyObject_LookupSpecial  // in 3.11's headers a macro for another variant of the function
extern "C" {
// cpython_311.c
const int* framejit_eval_breaker(PyThreadState*);
PyObject* framejit_import_func(PyThreadState*);
PyObject** framejit_managed_dict(PyObject*);
// Exported by libpython, declared in its internal headers only.
PyObject* _PyObject_LookupSpecial(PyObject* object, PyObject* name);
int _PyObject_GetMethod(PyObject* object, PyObject* name, PyObject** method);
PyObject* _PyObject_FunctionStr(PyObject*);
int _Py_CheckRecursiveCall(PyThreadState*, const char* where);
int _PyDict_MergeEx(PyObject* into, PyObject* from, int override);
int _PySet_Update(PyObject* set, PyObject* iterable);
PyObject* _PyUnicode_JoinArray(PyObject* separator, PyObject* const* items, Py_ssize_t count);
}

namespace framejit {

inline constexpr char kOwnedByGenerator = 1;
inline constexpr signed char kFrameSuspended = -1;

// The links between a running frame, its caller and its thread. Lives in the C frame of whoever runs the Python frame.
struct Link {
    _PyCFrame cframe;

    bool traced() const { return cframe.use_tracing; }  // also set from outside: settrace inside a call
};

inline void link_frame(PyThreadState* thread, Frame* frame, Link& link) {
    link.cframe.use_tracing = thread->cframe->use_tracing;
    link.cframe.previous = thread->cframe;
    thread->cframe = &link.cframe;
    frame->is_entry = true;
    frame->previous = link.cframe.previous->current_frame;
    link.cframe.current_frame = frame;
}

inline void unlink_frame(PyThreadState* thread, Link& link) {
    thread->recursion_remaining++;
    thread->cframe = link.cframe.previous;
    thread->cframe->use_tracing = link.cframe.use_tracing;
}

// False: RecursionError is set, and the frame is to be unlinked (which gives the level back) and left as it is.
inline bool enter_recursion(PyThreadState* thread) {
    if (thread->recursion_remaining-- > 0 || !_Py_CheckRecursiveCall(thread, "")) return true;
    thread->recursion_remaining--;  // the check gave the level back already
    return false;
}

inline void set_unit(Frame* frame, int unit) { frame->prev_instr = _PyCode_CODE(frame->f_code) + unit; }

inline PyObject** take_stack(Frame* frame) {
    PyObject** top = frame->localsplus + frame->stacktop;
    frame->stacktop = -1;
    return top;
}

inline void give_stack(Frame* frame, PyObject** top) { frame->stacktop = (int)(top - frame->localsplus); }

inline void hide_stack(Frame* frame) { frame->stacktop = -1; }

// Still making its cells or its generator: CPython shows such a frame to nobody.
inline bool is_incomplete(const Frame* frame) {
    return frame->owner != kOwnedByGenerator && frame->prev_instr < _PyCode_CODE(frame->f_code) + frame->f_code->_co_firsttraceable;
}

inline PyObject* locals_mapping(const Frame* frame) { return frame->f_locals; }

// Writes the fast locals of the current frame into its mapping. -1: error.
inline int refresh_locals_mapping() { return PyFrame_FastToLocalsWithError(PyEval_GetFrame()); }

inline void suspend_generator(Frame* frame) {
    auto* generator = (PyGenObject*)((char*)frame - offsetof(PyGenObject, gi_iframe));
    generator->gi_frame_state = kFrameSuspended;
}

inline const int* eval_breaker(PyThreadState* thread) { return framejit_eval_breaker(thread); }

inline PyObject* builtin_import(PyThreadState* thread) { return framejit_import_func(thread); }

inline PyObject*& handled_exception(PyThreadState* thread) { return thread->exc_info->exc_value; }

}  // namespace framejit
