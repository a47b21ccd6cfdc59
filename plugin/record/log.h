// The three logs of a recording as plain data: operators, events, and what the exit state is made of.
// Invariant: no log holds a tensor. Holding one changes what autograd does (AccumulateGrad copies, factories detach) and doubles peak
// memory.
#pragma once
#include "plugin/guard/guard.h"
#include "plugin/torch/operators.h"
#include <string>
#include <vector>

namespace framejit {

enum : int { Unknown = -1, Internal = 0 };  // shadows; above 0: index of a source

// One tensor that an operator of the region touched.
struct TensorRow {
    PyRef weak;               // tells whether the address still belongs to this tensor
    int source = Internal;    // a source; Internal: an operator made it
    PyRef constant;           // a tensor that appeared without an operator and that nobody else can reach (torch.tensor(3))
    TensorSpec spec;          // when it was first seen
    int storage = -1;         // number of its storage: rows with the same number share memory
    int op = -1, result = 0;  // which operator made it; -1: none (an input, a constant, or an alias made without an operator)
};
// Python looked at the data of a small integer tensor that follows from integer inputs: the value is part of the guards, and computed
// before the region runs. `deferred`: whether any or all elements of anything are true (`if torch.isnan(x).any():`), which hardly ever
// changes. It is computed in the region itself, which assumes it and has shown nothing of itself until it is checked.
struct DataGuard {
    int row;
    std::string expected;  // the bytes, in logical order
    PyCodeObject* code;    // borrowed; where Python looked
    int unit, line;
    bool deferred = false;
};
struct OpRow {
    const OpSchema* schema;        // lives as long as the overload: for ever
    PyRef overload, args, kwargs;  // placeholders hold tensor row numbers
    std::vector<int> tensors;      // rows of the tensor arguments, in order of the placeholders
    std::vector<int> results;      // rows, flattened; -1: None
    int scalar = 0;                // source of positional argument 1, a Python number that is an input of the graph; 0: none
    bool scalar_is_float = false;
    bool random = false;  // it drew
    PyCodeObject* code;   // borrowed: user line for messages
    int unit;
};

// A value at a moment: constants and fresh objects by reference, everything else by number.
struct Operand {
    enum Kind : uint8_t { None, Const, Src, Row, Object } kind = None;
    int id = 0;    // Src: source, Row: tensor row
    PyRef object;  // Const, Object (a heap object made in the region)
};
enum class EventKind : uint8_t {
    SetAttr,  // target.key = value, through object.__setattr__ semantics of its type
    DelAttr,
    SetItem,  // target[key] = value
    DelItem,
    SetCell,  // target is the cell
    Call,     // target(*args) whose result is not used: list.append, print, ...
};
struct Event {
    EventKind kind;
    Operand target, key, value;
    std::vector<Operand> args;
    PyRef kwnames;
    PyRef result;  // of a Call, where the region may go on with it
};

// A break: where a region must end, and why.
struct Break {
    const struct BreakReason* reason = nullptr;
    std::string detail, file, function, source_line;
    int line = 0;
    std::vector<std::string> stack;  // user's frames, innermost first: file:line in function
};
struct BreakReason {
    const char* code;
    const char* text;
    const char* hint;
};
#define BREAK_REASON(code, text, hint) extern const BreakReason break_##code;
#include "plugin/record/break_reason.def"
#undef BREAK_REASON

}  // namespace framejit
