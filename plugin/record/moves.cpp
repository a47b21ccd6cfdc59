// Instructions that only move values: their shadows move first, and nothing else is to be noted. They are more than half of what a program
// executes, so they skip `before` and `after`.
#include "plugin/frame/frame.h"
#include "plugin/record/recorder.h"

namespace framejit {
namespace {
bool plain_truth(PyObject* v) { return v == Py_True || v == Py_False || v == Py_None; }
// A Precall that leaves everything in its place: no bound method to take apart, no callee that the identity table knows better.
bool leaves_callee(PyObject** sp, const int* s, int args) {
    PyObject* function = sp[-(args + 2)];
    return function ? PyFunction_Check(function) && s[-(args + 1)] != Internal : !PyMethod_Check(sp[-(args + 1)]);
}
}  // namespace

bool Recorder::moves(Shadow& sh, Frame* f, const Ins& in, PyObject** sp) {
    if (sh.returned) return false;
    int* s = sh.s.data() + (sp - slots_of(f));
    switch (in.op) {
    case Op::Nop:
    case Op::Resume:
    case Op::PopTop:
    case Op::JumpForward:
    case Op::JumpBackward: break;
    case Op::LoadFast: s[0] = sh.s[size_t(in.arg)]; break;
    case Op::StoreFast: sh.s[size_t(in.arg)] = s[-1]; break;
    case Op::LoadConst:
    case Op::PushNull: s[0] = Internal; break;
    case Op::Copy: s[0] = s[-in.arg]; break;
    case Op::Swap: std::swap(s[-1], s[-in.arg]); break;
    case Op::PopJumpIfFalse:
    case Op::PopJumpIfTrue:
        if (s[-1] != Internal || !plain_truth(sp[-1])) return false;
        break;
    case Op::PopJumpIfNone:
    case Op::PopJumpIfNotNone:
        if (s[-1] != Internal) return false;
        break;
    case Op::KwNames: kwnames_ = PyTuple_GET_ITEM(code_of(f)->co_consts, in.arg); break;
    case Op::Precall:
        if (!leaves_callee(sp, s, in.arg)) return false;
        break;
    default: return false;
    }
    now = f;
    sh.unit = in.start;
    pending_.function = nullptr;
    return true;
}

}  // namespace framejit
