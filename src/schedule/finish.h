// What follows from the expressions of a kernel: merged loops, its kind, stages, costs; and for one that is final, what it keeps.
#pragma once
#include "src/schedule/lower.h"

namespace framejit {

void finish(Kernel&, const Space&);
void choose_keeps(Kernel&, double keep_ns);  // lane values that a row kernel keeps between its stages

}  // namespace framejit
