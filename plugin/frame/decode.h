// Between decode.cpp, which knows how code objects are cached and how tables are laid out, and cpython_3NN.cpp, which knows opcodes.
#pragma once
#include "plugin/frame/frame.h"

namespace framejit {

// One row per opcode that the compiler of this CPython emits.
struct Opcode {
    uint8_t number;
    Op op;
    uint8_t caches = 0;  // code units of inline cache behind it
    int8_t jump = 0;     // 1 forward, -1 backward, 0 no jump; distances count from behind the caches
};

// Version file: the row, or null for an opcode it does not know (the code then runs natively).
const Opcode* opcode_row(int number);
const Opcode* opcode_row(Op);  // for thunks
extern const uint8_t kExtendedArg;

void mark_native(PyCodeObject*);  // a thunk

}  // namespace framejit
