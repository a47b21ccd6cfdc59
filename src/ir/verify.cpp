// What must hold of a graph at a stage. Each rule returns the complaint about a node, or nothing.
#include "framejit/op.h"

namespace framejit {
namespace {

using Complaint = std::string;

Complaint order(const Graph&, const Node& n, Stage) {
    for (Ref a : n.in)
        if (!a || a->id >= n.id) return "an operand does not come before its user";
    return {};
}
Complaint types(const Graph&, const Node& n, Stage) {
    if (n.op->as<Leaf>()) return {};
    if (!computable(n.dtype)) return "no kernel computes this dtype";
    try {
        if (n.op->dtype.fn(n.in, n.at, n.dtype) != n.dtype) return "the dtype is not what the op's rule says";
        if (n.op->shape.fn(n.in, n.at, n.shape) != n.shape) return "the shape is not what the op's rule says";
    } catch (const GraphError& e) {
        return e.what();
    }
    return {};
}
Complaint inputs(const Graph& g, const Node& n, Stage) {
    if (n.op != &op_input) return {};
    if (n.at.i.size() != n.shape.size() + 1) return "an input has a position and one stride per dimension";
    if (n.at.i[0] < 0 || n.at.i[0] >= g.inputs) return "no such input position";
    return {};
}
Complaint constants(const Graph&, const Node& n, Stage) {
    if (n.op != &op_constant) return {};
    if (!n.shape.empty()) return "a constant is a scalar";
    const bool floating = is_float(n.dtype);
    return n.at.f.size() == floating && n.at.i.size() == !floating ? "" : "a constant has one number of its kind";
}
Complaint calls(const Graph& g, const Node& n, Stage) {
    if (n.op == &op_extern) {
        if (n.at.i.size() != 1 || n.at.i[0] < 0 || n.at.i[0] >= int64_t(g.externs.size())) return "no such extern call";
        return g.externs[n.at.i[0]].args.size() == n.in.size() ? "" : "one window per argument of an extern call";
    }
    if (n.op == &op_result) {
        if (n.in.size() != 1 || n.in[0]->op != &op_extern) return "a result belongs to an extern call";
        return n.at.i.size() == n.shape.size() + 1 ? "" : "a result has an index and one stride per dimension";
    }
    for (Ref a : n.in)
        if (a->op == &op_extern) return "an extern call has no value";
    return {};
}
Complaint decomposed(const Graph&, const Node& n, Stage stage) {
    return stage == Stage::Decomposed && n.op->as<Composite>() ? "a composite after decomposition" : "";
}
constexpr Complaint (*kNodeRules[])(const Graph&, const Node&, Stage) = {order, types, inputs, constants, calls, decomposed};

Complaint output(const Graph& g, const Output& o) {
    if (!o.value) return "an output has no value";
    if (o.value->op == &op_extern) return "an output must be a value, not an extern call";
    if (o.into < 0) return {};
    if (o.into >= g.inputs) return "an output goes into an input that does not exist";
    for (const Node& n : g.nodes)
        if (n.op == &op_input && n.at.i[0] == o.into)
            return n.shape == o.value->shape && n.dtype == o.value->dtype
                       ? ""
                       : "an output and the input that it goes into differ in dtype or shape";
    return "an output goes into an input that is not in the graph";
}

}  // namespace

std::string verify(const Graph& g, Stage stage) {
    for (const Node& n : g.nodes)
        for (auto rule : kNodeRules)
            if (Complaint c = rule(g, n, stage); !c.empty()) return "%" + std::to_string(n.id) + " = " + std::string(n.op->name) + ": " + c;
    for (size_t k = 0; k < g.outputs.size(); k++)
        if (Complaint c = output(g, g.outputs[k]); !c.empty()) return "output " + std::to_string(k) + ": " + c;
    return {};
}

}  // namespace framejit
