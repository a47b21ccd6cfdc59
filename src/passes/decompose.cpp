// Replaces composites by what they are made of, until only leaves, pointwise, index and reduce ops are left.
#include "src/passes/rebuild.h"

namespace framejit {
namespace {

bool has_composites(const Graph& g) {
    const std::vector<char> live = live_nodes(g);
    for (const Node& n : g.nodes)
        if (live[n.id] && n.op->as<Composite>()) return true;
    return false;
}

}  // namespace

Graph decompose(const Graph& g) {
    Graph r = rebuild(g, [](Graph& to, const Node& n, std::span<const Ref> in) -> Ref {
        if (auto* c = n.op->as<Composite>()) return c->expand(to, n, in);
        return nullptr;
    });
    return has_composites(r) ? decompose(r) : std::move(r);
}

}  // namespace framejit
