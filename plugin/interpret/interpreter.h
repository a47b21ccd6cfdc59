// Counters of the interpreter, for tests and reports. Written under the GIL, never reset.
#pragma once

namespace framejit {

struct InterpreterCounters {
    long frames = 0;        // frames started or resumed
    long handed_over = 0;   // of these, finished by CPython
};
extern InterpreterCounters interpreter_counters;

}  // namespace framejit
