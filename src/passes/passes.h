// Graph -> graph, each a pure function. Inputs, extern calls and outputs survive every pass in their order.
#pragma once
#include "framejit/ir.h"

namespace framejit {

Graph decompose(const Graph&);  // composites -> basic ops, until none is left

}  // namespace framejit
