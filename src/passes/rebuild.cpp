#include "src/passes/rebuild.h"

namespace framejit {

std::vector<char> live_nodes(const Graph& g) {
    std::vector<char> live(g.nodes.size());
    for (const Output& o : g.outputs) live[o.value->id] = 1;
    for (size_t i = g.nodes.size(); i-- > 0;) {
        const Node& n = g.nodes[i];
        if (n.op == &op_input || n.op == &op_extern) live[i] = 1;
        if (live[i])
            for (Ref a : n.in) live[a->id] = 1;
    }
    return live;
}

static bool is_leaf_memory(Ref n) { return n->op == &op_input || n->op == &op_result; }

Graph rebuild(const Graph& g, const Replace& replace) {
    Graph to;
    to.name = g.name;
    const std::vector<char> live = live_nodes(g);
    std::vector<Ref> now(g.nodes.size());
    for (const Node& n : g.nodes) {  // inputs first: their positions are their order
        if (n.op == &op_input) now[n.id] = to.make(op_input, {}, n.at, n.dtype, n.shape);
    }
    for (const Node& n : g.nodes) {
        if (!live[n.id] || now[n.id]) continue;
        std::vector<Ref> in;
        for (Ref a : n.in) in.push_back(now[a->id]);
        if (n.op == &op_extern) {
            // A call's windows look at a computed value's own memory, and it may overwrite it: the caller's memory is no substitute.
            for (size_t k = 0; k < in.size(); k++)
                if (is_leaf_memory(in[k]) && !is_leaf_memory(n.in[k])) in[k] = to.make(op_view, {in[k]}, {in[k]->shape, {}});
            now[n.id] = to.extern_call(g.externs[n.at.i[0]], std::move(in));
            continue;
        }
        Ref other = replace(to, n, in);
        now[n.id] = other ? other : to.make(*n.op, std::move(in), n.at, n.dtype, n.shape);
    }
    for (const Output& o : g.outputs) to.outputs.push_back({now[o.value->id], o.into, o.as_is});
    return to;
}

}  // namespace framejit
