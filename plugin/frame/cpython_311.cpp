// CPython 3.11: its opcodes, and the accessors of frame.h.
#include <Python.h>
#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
#include "plugin/frame/cpython_311.h"
#include "plugin/frame/decode.h"

#include <array>
#include <opcode.h>

namespace framejit {
namespace {

constexpr Opcode kOpcodes[] = {
    {NOP, Op::Nop},
    {RESUME, Op::Resume},
    {POP_TOP, Op::PopTop},
    {PUSH_NULL, Op::PushNull},
    {COPY, Op::Copy},
    {SWAP, Op::Swap},
    {LOAD_CONST, Op::LoadConst},
    {LOAD_FAST, Op::LoadFast},
    {STORE_FAST, Op::StoreFast},
    {DELETE_FAST, Op::DeleteFast},
    {MAKE_CELL, Op::MakeCell},
    {COPY_FREE_VARS, Op::CopyFreeVars},
    {LOAD_CLOSURE, Op::LoadClosure},
    {LOAD_DEREF, Op::LoadDeref},
    {LOAD_CLASSDEREF, Op::LoadClassderef},
    {STORE_DEREF, Op::StoreDeref},
    {DELETE_DEREF, Op::DeleteDeref},
    {LOAD_GLOBAL, Op::LoadGlobal, 5},
    {STORE_GLOBAL, Op::StoreGlobal},
    {DELETE_GLOBAL, Op::DeleteGlobal},
    {LOAD_NAME, Op::LoadName},
    {STORE_NAME, Op::StoreName},
    {DELETE_NAME, Op::DeleteName},
    {SETUP_ANNOTATIONS, Op::SetupAnnotations},
    {LOAD_ATTR, Op::LoadAttr, 4},
    {STORE_ATTR, Op::StoreAttr, 4},
    {DELETE_ATTR, Op::DeleteAttr},
    {LOAD_METHOD, Op::LoadMethod, 10},
    {UNARY_POSITIVE, Op::UnaryPositive},
    {UNARY_NEGATIVE, Op::UnaryNegative},
    {UNARY_NOT, Op::UnaryNot},
    {UNARY_INVERT, Op::UnaryInvert},
    {BINARY_OP, Op::BinaryOp, 1},
    {BINARY_SUBSCR, Op::BinarySubscr, 4},
    {STORE_SUBSCR, Op::StoreSubscr, 1},
    {DELETE_SUBSCR, Op::DeleteSubscr},
    {COMPARE_OP, Op::CompareOp, 2},
    {IS_OP, Op::IsOp},
    {CONTAINS_OP, Op::ContainsOp},
    {JUMP_FORWARD, Op::JumpForward, 0, 1},
    {JUMP_BACKWARD, Op::JumpBackward, 0, -1},
    {JUMP_BACKWARD_NO_INTERRUPT, Op::JumpBackwardNoInterrupt, 0, -1},
    {POP_JUMP_FORWARD_IF_FALSE, Op::PopJumpIfFalse, 0, 1},
    {POP_JUMP_BACKWARD_IF_FALSE, Op::PopJumpIfFalse, 0, -1},
    {POP_JUMP_FORWARD_IF_TRUE, Op::PopJumpIfTrue, 0, 1},
    {POP_JUMP_BACKWARD_IF_TRUE, Op::PopJumpIfTrue, 0, -1},
    {POP_JUMP_FORWARD_IF_NONE, Op::PopJumpIfNone, 0, 1},
    {POP_JUMP_BACKWARD_IF_NONE, Op::PopJumpIfNone, 0, -1},
    {POP_JUMP_FORWARD_IF_NOT_NONE, Op::PopJumpIfNotNone, 0, 1},
    {POP_JUMP_BACKWARD_IF_NOT_NONE, Op::PopJumpIfNotNone, 0, -1},
    {JUMP_IF_FALSE_OR_POP, Op::JumpIfFalseOrPop, 0, 1},
    {JUMP_IF_TRUE_OR_POP, Op::JumpIfTrueOrPop, 0, 1},
    {KW_NAMES, Op::KwNames},
    {PRECALL, Op::Precall, 1},
    {CALL, Op::Call, 4},
    {CALL_FUNCTION_EX, Op::CallFunctionEx},
    {MAKE_FUNCTION, Op::MakeFunction},
    {LOAD_BUILD_CLASS, Op::LoadBuildClass},
    {RETURN_VALUE, Op::ReturnValue},
    {BUILD_TUPLE, Op::BuildTuple},
    {BUILD_LIST, Op::BuildList},
    {BUILD_SET, Op::BuildSet},
    {BUILD_MAP, Op::BuildMap},
    {BUILD_CONST_KEY_MAP, Op::BuildConstKeyMap},
    {BUILD_STRING, Op::BuildString},
    {BUILD_SLICE, Op::BuildSlice},
    {LIST_APPEND, Op::ListAppend},
    {SET_ADD, Op::SetAdd},
    {MAP_ADD, Op::MapAdd},
    {LIST_EXTEND, Op::ListExtend},
    {SET_UPDATE, Op::SetUpdate},
    {DICT_UPDATE, Op::DictUpdate},
    {DICT_MERGE, Op::DictMerge},
    {LIST_TO_TUPLE, Op::ListToTuple},
    {FORMAT_VALUE, Op::FormatValue},
    {UNPACK_SEQUENCE, Op::UnpackSequence, 1},
    {UNPACK_EX, Op::UnpackEx},
    {GET_ITER, Op::GetIter},
    {FOR_ITER, Op::ForIter, 0, 1},
    {GET_YIELD_FROM_ITER, Op::GetYieldFromIter},
    {SEND, Op::Send, 0, 1},
    {YIELD_VALUE, Op::YieldValue},
    {RETURN_GENERATOR, Op::ReturnGenerator},
    {ASYNC_GEN_WRAP, Op::AsyncGenWrap},
    {GET_AWAITABLE, Op::GetAwaitable},
    {GET_AITER, Op::GetAiter},
    {GET_ANEXT, Op::GetAnext},
    {END_ASYNC_FOR, Op::EndAsyncFor},
    {RAISE_VARARGS, Op::RaiseVarargs},
    {RERAISE, Op::Reraise},
    {PUSH_EXC_INFO, Op::PushExcInfo},
    {POP_EXCEPT, Op::PopExcept},
    {CHECK_EXC_MATCH, Op::CheckExcMatch},
    {CHECK_EG_MATCH, Op::CheckEgMatch},
    {PREP_RERAISE_STAR, Op::PrepReraiseStar},
    {BEFORE_WITH, Op::BeforeWith},
    {BEFORE_ASYNC_WITH, Op::BeforeAsyncWith},
    {WITH_EXCEPT_START, Op::WithExceptStart},
    {LOAD_ASSERTION_ERROR, Op::LoadAssertionError},
    {GET_LEN, Op::GetLen},
    {MATCH_MAPPING, Op::MatchMapping},
    {MATCH_SEQUENCE, Op::MatchSequence},
    {MATCH_KEYS, Op::MatchKeys},
    {MATCH_CLASS, Op::MatchClass},
    {IMPORT_NAME, Op::ImportName},
    {IMPORT_FROM, Op::ImportFrom},
    {IMPORT_STAR, Op::ImportStar},
    {PRINT_EXPR, Op::PrintExpr},
};

constexpr std::array<const Opcode*, 256> by_number() {
    std::array<const Opcode*, 256> rows{};
    for (const Opcode& row : kOpcodes) rows[row.number] = &row;
    return rows;
}
constexpr std::array<const Opcode*, 256> kByNumber = by_number();

}  // namespace

const Opcode* opcode_row(int number) { return kByNumber[number]; }

const Opcode* opcode_row(Op op) {
    for (const Opcode& row : kOpcodes)
        if (row.op == op) return &row;
    return nullptr;
}

const uint8_t kExtendedArg = EXTENDED_ARG;

// ---- reading a frame ----

PyCodeObject* code_of(const Frame* frame) { return frame->f_code; }
PyObject* function_of(const Frame* frame) { return (PyObject*)frame->f_func; }
PyObject* globals_of(const Frame* frame) { return frame->f_globals; }
PyObject* builtins_of(const Frame* frame) { return frame->f_builtins; }
PyObject** slots_of(Frame* frame) { return frame->localsplus; }
int locals_count(const PyCodeObject* code) { return code->co_nlocalsplus; }
int free_vars_count(const PyCodeObject* code) { return code->co_nfreevars; }
int stack_size(const PyCodeObject* code) { return code->co_stacksize; }
PyObject* local_names(const PyCodeObject* code) { return code->co_localsplusnames; }
Frame* caller_of(const Frame* frame) { return frame->previous; }
bool is_generator(const Frame* frame) { return frame->owner == kOwnedByGenerator; }
PyObject* generator_of(Frame* frame) {
    return reinterpret_cast<PyObject*>(reinterpret_cast<char*>(frame) - offsetof(PyGenObject, gi_iframe));
}
bool has_handlers(const PyCodeObject* co) { return PyBytes_GET_SIZE(co->co_exceptiontable) > 0; }
bool has_started(const Frame* frame) { return unit_of(frame) >= 0; }
int unit_of(const Frame* frame) { return (int)(frame->prev_instr - _PyCode_CODE(frame->f_code)); }

Frame* current_frame() {
    PyThreadState* thread = _PyThreadState_UncheckedGet();
    return thread ? thread->cframe->current_frame : nullptr;
}

// ---- versions of dicts and types ----

uint64_t dict_version(PyObject* dict) { return ((PyDictObject*)dict)->ma_version_tag; }

uint32_t type_version(PyTypeObject* type) {
    if (!(type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG)) {
        // A look-up gives the type and its bases a tag. It fails when a base cannot have one, or when the 2^32 tags are used up.
        static PyObject* const any_name = PyUnicode_InternFromString("__class__");
        _PyType_Lookup(type, any_name);
    }
    return type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG ? type->tp_version_tag : 0;
}

// An object of an ordinary class keeps its attributes in an inline array until something asks for its __dict__; the slot holds null so
// long. _PyObject_GetDictPtr would make the dict then, so it is asked only about types that manage their dict themselves (tp_dictoffset).
PyObject** dict_slot(PyObject* object) {
    if (Py_TYPE(object)->tp_flags & Py_TPFLAGS_MANAGED_DICT) return framejit_managed_dict(object);
    return _PyObject_GetDictPtr(object);
}

PyObject* exception_in_flight(PyThreadState* thread) {
    PyObject* value = handled_exception(thread);
    return value == Py_None ? nullptr : value;
}

// ---- PEP 523 ----

void set_eval_hook(EvalHook hook) {
    _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), hook ? hook : _PyEval_EvalFrameDefault);
}

PyObject* eval_default(PyThreadState* thread, Frame* frame, int throwflag) { return _PyEval_EvalFrameDefault(thread, frame, throwflag); }

bool traced(PyThreadState* thread) { return thread->cframe->use_tracing; }

// In 3.11 the caller clears and pops the frame; it only expects the value stack to be empty.
void finish_frame_without_running(Frame* frame) { frame->stacktop = frame->f_code->co_nlocalsplus; }

const char* unsupported_version() {
    if (Py_Version >> 16 != PY_VERSION_HEX >> 16) return "framejit was built for another version of CPython";
    if (Py_Version >> 16 != 0x030B) return "framejit supports CPython 3.11";
    return nullptr;
}

}  // namespace framejit
#endif
