// The interpreter's own state, for tests and reports. Counters are written under the GIL and never reset.
#pragma once

namespace framejit {

struct InterpreterCounters {
    long frames = 0;       // frames started or resumed
    long handed_over = 0;  // of these, finished by CPython
};
extern InterpreterCounters interpreter_counters;

bool interprets_everything();

}  // namespace framejit
