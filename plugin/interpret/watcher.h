// What a recorder (or a driver that replays regions) sees of the interpreter, and how it may steer it.
#pragma once
#include "plugin/frame/frame.h"

namespace framejit {

struct Watcher {
    // A frame starts or resumes under the interpreter. The result is handed to every other call for this activation ("shadow"); another
    // watcher that takes over in the middle of it gets null instead.
    virtual void* enter(Frame*, int throwflag) = 0;
    // Before an instruction is executed; `sp` points one past the top of the value stack. Returns the instruction to execute: normally
    // `&ins`. To steer, rewrite the frame's slots, move sp and return another instruction of the same code (execution continues with it,
    // and `before` is called for it first) or `return_instruction()` (the frame returns the value on top of its stack). Null: a Python
    // error is set; it is raised at this instruction.
    virtual const Ins* before(void* shadow, Frame*, const Ins& ins, PyObject**& sp) = 0;
    // Instead of `before` and `after` for an instruction of `only_moves`, which is most of what a program executes; false: not this time.
    virtual bool moves(void* shadow, Frame*, const Ins& ins, PyObject** sp) = 0;
    virtual void after(void* shadow, Frame*, const Ins& ins, PyObject** sp) = 0;  // it completed; sp is the new top
    virtual void unwound(void* shadow, Frame*, int depth) = 0;                    // an exception handler was entered; depth: slots in use
    // The frame returns, yields (result: the value, borrowed), unwinds with an error or is handed over to CPython (result null).
    // `depth`: slots in use, already without the result.
    enum class Exit { Return, Yield, Error, HandOver };
    virtual void leave(void* shadow, Frame*, PyObject* result, int depth, Exit) = 0;
    virtual ~Watcher() = default;
};
// Instructions that move values between slots, or jump on a truth, as a rule without looking at an object.
constexpr bool only_moves(Op op) {
    switch (op) {
    case Op::Nop:
    case Op::Resume:
    case Op::LoadFast:
    case Op::StoreFast:
    case Op::LoadConst:
    case Op::PushNull:
    case Op::PopTop:
    case Op::Copy:
    case Op::Swap:
    case Op::JumpForward:
    case Op::JumpBackward:
    case Op::PopJumpIfFalse:
    case Op::PopJumpIfTrue:
    case Op::PopJumpIfNone:
    case Op::PopJumpIfNotNone:
    case Op::KwNames:
    case Op::Precall: return true;
    default: return false;
    }
}
extern constinit thread_local Watcher* watcher;  // non-null: frames of this thread run watched
const Ins* return_instruction();

// Executes a real frame. Watched iff `watcher` is set when it starts; a watched run re-reads `watcher` at every callback and skips it when
// null.
PyObject* interpret(PyThreadState*, Frame*, int throwflag, const Code*);
int init_interpreter();              // -1 with a Python error
void interpret_everything(bool on);  // FRAMEJIT_INTERPRET=all

}  // namespace framejit
