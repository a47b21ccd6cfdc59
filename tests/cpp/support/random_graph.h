// Random graphs of float ops: shapes with awkward extents, strided inputs, every kind of index op, reductions over any dimension.
#pragma once
#include <random>

#include "framejit/op.h"

namespace framejit::test {

Graph random_graph(uint64_t seed, int ops);

}  // namespace framejit::test
