// Graph -> graph, each a pure function. Inputs, extern calls and outputs survive every pass in their order.
// The order in which they run is a table in src/pipeline.cpp. To add one: a function, a row there, a golden file in tests/golden/passes.
#pragma once
#include "framejit/ir.h"

namespace framejit {

Graph decompose(const Graph&);  // composites -> basic ops, until none is left
Graph simplify(const Graph&);   // exact algebra: results keep every bit
Graph dead_code(const Graph&);  // without what no output and no extern call needs

}  // namespace framejit
