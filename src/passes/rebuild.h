// The one loop that every pass is: copy the live nodes of a graph in order, replacing some on the way.
#pragma once
#include <functional>

#include "framejit/op.h"

namespace framejit {

std::vector<char> live_nodes(const Graph&);  // by id: inputs, extern calls, and what they or an output need
// `replace` gets a node and its new operands; it returns the value to use instead, or null to keep the node.
using Replace = std::function<Ref(Graph& to, const Node&, std::span<const Ref> in)>;
Graph rebuild(const Graph&, const Replace& replace);

}  // namespace framejit
