// Order that the graph does not show: extern calls run one after the other, and some overwrite memory that kernels read.
#include "src/passes/rebuild.h"
#include "src/schedule/plan.h"

namespace framejit {

Times times_of(const Graph& g) {
    Times t;
    t.live = live_nodes(g);
    t.users.resize(g.nodes.size());
    t.ready.assign(g.nodes.size(), -1);
    t.mutated.assign(g.nodes.size(), Times::kNever);
    std::vector<int> number(g.nodes.size(), -1);
    for (const Node& n : g.nodes) {
        if (!t.live[n.id]) continue;
        for (Ref a : n.in) t.users[a->id].push_back(&n);
        if (n.op != &op_extern) continue;
        number[n.id] = int(t.calls.size());
        if (g.externs[n.at.i[0]].mutates) {
            int& first = t.mutated[n.in[0]->id];
            first = std::min(first, number[n.id]);
        }
        t.calls.push_back(&n);
    }
    // An output that moves one piece of the caller's memory into another one may find it overwritten at the end.
    for (const Output& o : g.outputs) {
        if (o.into < 0 || !is_memory(o.value)) continue;
        bool overwritten = t.mutated[o.value->id] != Times::kNever;
        for (const Output& other : g.outputs)
            overwritten |= o.value->op == &op_input && other.into == o.value->at.i[0] && other.into != o.into;
        if (overwritten) t.barriers.push_back(o.value);
    }
    // A value is lost when memory that it would be computed from is overwritten.
    std::vector<int> lost(g.nodes.size(), Times::kNever);
    std::vector<char> barrier(g.nodes.size());
    for (const Node& n : g.nodes) {
        if (!t.live[n.id]) continue;
        if (n.op == &op_extern) {
            t.ready[n.id] = number[n.id];
        } else {
            for (Ref a : n.in) t.ready[n.id] = std::max(t.ready[n.id], t.ready[a->id]);
        }
        for (Ref a : n.in) {
            const bool too_late = t.ready[n.id] >= lost[a->id] && !(n.op == &op_extern && t.ready[n.id] == lost[a->id]);
            if (too_late && !barrier[a->id]) {
                barrier[a->id] = 1;
                t.barriers.push_back(a);
                lost[a->id] = Times::kNever;
            }
            if (n.op != &op_extern && n.op != &op_result) lost[n.id] = std::min(lost[n.id], lost[a->id]);
        }
        // A computed value that a call overwrites is given to it as a copy; only memory that exists already can be lost.
        if (is_memory(&n)) lost[n.id] = std::min(lost[n.id], t.mutated[n.id]);
    }
    return t;
}

}  // namespace framejit
