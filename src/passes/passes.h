// Graph -> graph, each a pure function. Inputs, extern calls and outputs survive every pass in their order.
// To add one: a function, a row in kPasses, a golden file in tests/golden/passes.
#pragma once
#include "framejit/ir.h"

namespace framejit {

Graph decompose(const Graph&);  // composites -> basic ops, until none is left
Graph simplify(const Graph&);   // exact algebra: results keep every bit
Graph dead_code(const Graph&);  // without what no output and no extern call needs

struct Pass {
    std::string_view name;
    Graph (*run)(const Graph&);
    Stage after;  // what verify() must accept of its result
};
inline constexpr Pass kPasses[] = {
    {"decompose", decompose, Stage::Decomposed},
    {"simplify", simplify, Stage::Decomposed},
    {"dead_code", dead_code, Stage::Decomposed},
};

}  // namespace framejit
