// One arena for the temporaries that no extern call touches: offsets such that two live ones never overlap.
#pragma once
#include "src/schedule/kernel.h"

namespace framejit {

struct Lifetime {
    int first = -1, last = -1;  // steps
};
std::vector<Lifetime> lifetimes(const Program&);  // by buffer
void plan_memory(Program&);

}  // namespace framejit
