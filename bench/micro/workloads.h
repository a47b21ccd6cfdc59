// The graphs that the micro benchmarks compile: what capture hands over for well-known pieces of models.
#pragma once
#include "framejit/ir.h"

namespace framejit::bench {

std::vector<std::string> names();
Graph workload(const std::string& name, bool big);

}  // namespace framejit::bench
