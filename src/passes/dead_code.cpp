// Drops what nothing needs. Inputs and extern calls stay: positions count, and a call may do more than return.
#include "src/passes/passes.h"
#include "src/passes/rebuild.h"

namespace framejit {

Graph dead_code(const Graph& g) {
    return rebuild(g, [](Graph&, const Node&, std::span<const Ref>) -> Ref { return nullptr; });
}

}  // namespace framejit
