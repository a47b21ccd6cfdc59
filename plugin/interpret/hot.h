// The handlers that do less work than a call costs: stack, locals, constants, jumps. They are inlined into the loop, which alone includes
// them.
#pragma once
#include "plugin/interpret/errors.h"
#include "plugin/interpret/run.h"

namespace framejit {

inline HANDLER(Nop) { return sp; }

inline HANDLER(Resume) { return ins.arg < 2 ? check_breaker(run, sp) : sp; }  // 2, 3: resumed by yield from or await, which checked

inline HANDLER(PopTop) { return pop(sp, 1); }

inline HANDLER(PushNull) { return push(sp, nullptr); }

inline HANDLER(Copy) { return push(sp, Py_NewRef(sp[-ins.arg])); }

inline HANDLER(Swap) {
    std::swap(sp[-1], sp[-ins.arg]);
    return sp;
}

inline HANDLER(LoadConst) { return push(sp, Py_NewRef(run.constant(ins.arg))); }

inline HANDLER(LoadFast) {
    PyObject* value = run.fast[ins.arg];
    if (!value) [[unlikely]] {
        set_unbound_local(run.local_name(ins.arg));
        return fail(run, sp);
    }
    return push(sp, Py_NewRef(value));
}

inline HANDLER(StoreFast) {
    PyObject* old = run.fast[ins.arg];
    run.fast[ins.arg] = *--sp;
    Py_XDECREF(old);
    return sp;
}

inline HANDLER(JumpForward) {
    run.jump(ins);
    return sp;
}

inline HANDLER(JumpBackward) {
    run.jump(ins);
    return check_breaker(run, sp);
}

inline HANDLER(JumpBackwardNoInterrupt) {
    run.jump(ins);
    return sp;
}

// CPython looks at the eval breaker when a conditional jump goes backward.
inline Stack jump_taken(Run& run, const Ins& ins, Stack sp) {
    run.jump(ins);
    return run.next <= &ins ? check_breaker(run, sp) : sp;
}

inline int truth(PyObject* value) {
    if (value == Py_True) return 1;
    if (value == Py_False || value == Py_None) return 0;
    return PyObject_IsTrue(value);
}

inline Stack jump_if(Run& run, const Ins& ins, Stack sp, bool wanted) {
    const int is_true = truth(sp[-1]);
    if (is_true < 0) return fail(run, sp);
    sp = pop(sp, 1);
    return (is_true != 0) == wanted ? jump_taken(run, ins, sp) : sp;
}
inline HANDLER(PopJumpIfFalse) { return jump_if(run, ins, sp, false); }
inline HANDLER(PopJumpIfTrue) { return jump_if(run, ins, sp, true); }

inline Stack jump_if_none(Run& run, const Ins& ins, Stack sp, bool wanted) {
    const bool is_none = sp[-1] == Py_None;
    sp = pop(sp, 1);
    return is_none == wanted ? jump_taken(run, ins, sp) : sp;
}
inline HANDLER(PopJumpIfNone) { return jump_if_none(run, ins, sp, true); }
inline HANDLER(PopJumpIfNotNone) { return jump_if_none(run, ins, sp, false); }

inline Stack jump_or_pop(Run& run, const Ins& ins, Stack sp, bool wanted) {
    const int is_true = truth(sp[-1]);
    if (is_true < 0) return fail(run, sp);
    if ((is_true != 0) != wanted) return pop(sp, 1);
    run.jump(ins);
    return sp;
}
inline HANDLER(JumpIfFalseOrPop) { return jump_or_pop(run, ins, sp, false); }
inline HANDLER(JumpIfTrueOrPop) { return jump_or_pop(run, ins, sp, true); }

}  // namespace framejit
