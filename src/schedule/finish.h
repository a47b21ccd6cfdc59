// What follows from the expressions of a kernel: merged loops, its kind, stages, which values are kept between stages, costs.
#pragma once
#include "src/schedule/lower.h"

namespace framejit {

void finish(Kernel&, const Space&, const ScheduleOptions&);

}  // namespace framejit
