#include "src/schedule/share.h"

#include <functional>

namespace framejit {

std::vector<Ref> values_to_cut(const Lowered& l, const Times& times, const Cuts& cuts, Ref root) {
    std::vector<Ref> nodes = l.visited;
    std::sort(nodes.begin(), nodes.end(), [](Ref a, Ref b) { return a->id < b->id; });
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    std::erase(nodes, root);
    const size_t n = nodes.size();
    if (n < 4) return {};
    std::unordered_map<Ref, size_t> index;
    for (size_t i = 0; i < n; i++) index[nodes[i]] = i;
    std::vector<size_t> last(n);  // the last user among them; n: a user that is not among them
    for (size_t i = 0; i < n; i++)
        for (Ref u : times.users[nodes[i]->id]) {
            auto it = index.find(u);
            last[i] = std::max(last[i], it == index.end() ? n : it->second);
        }
    auto crossing = [&](size_t p) {
        size_t count = 0;
        for (size_t i = 0; i < p; i++) count += last[i] >= p;
        return count;
    };
    size_t best = n / 2;
    size_t width = crossing(best);
    for (size_t p = n / 4; p <= 3 * n / 4; p += std::max<size_t>(1, n / 64)) {
        const size_t w = crossing(p);
        if (w > 0 && w < width) best = p, width = w;
    }
    std::vector<Ref> cut;
    for (size_t i = 0; i < best; i++)
        if (last[i] >= best && !cuts.contains(nodes[i])) cut.push_back(nodes[i]);
    return cut;
}

namespace {

struct Uses {  // of a value by kernels: the one that computes most elements of it would make it for the others
    int kernels = 0;
    const Kernel* last = nullptr;
    const Kernel* maker = nullptr;
    int expr = -1;             // in the maker
    double most = 0, all = 0;  // elements computed
};

double points(const Kernel& k, unsigned vars) {
    double n = 1;
    for (int v = 0; v < kVars; v++)
        if (vars & bit(v)) n *= double(k.extent[v]);
    return n;
}

// ns per element of `n` to compute it in a kernel: work and memory traffic.
double inline_ns(const Kernel& k, int root, Ref n, const Cuts& cuts, double byte_ns) {
    std::vector<char> seen(k.exprs.size());
    const double size = double(std::max<int64_t>(1, numel(n->shape)));
    std::function<double(int)> visit = [&](int id) -> double {
        if (seen[id]) return 0;
        seen[id] = 1;
        const Expr& e = k.exprs[id];
        double ns = 0;
        if (e.kind == Expr::Apply && e.vars) ns = e.node->op->as<Pointwise>()->ns * std::min(1.0, double(numel(e.node->shape)) / size);
        if (id != root && e.node && cuts.contains(e.node))  // made here, loaded elsewhere
            return byte_ns * size_of(e.dtype) * std::min(1.0, double(numel(e.node->shape)) / size);
        if (e.kind == Expr::Load) ns = byte_ns * size_of(e.dtype) * std::min(1.0, double(numel(e.node->shape)) / size);
        if (e.kind == Expr::Reduced) return 1e3;
        for (int a : e.args) ns += visit(a);
        for (const Term& t : e.at.terms) ns += visit(t.expr);
        return ns;
    };
    return visit(root);
}

}  // namespace

std::vector<Ref> values_to_share(const Graph& g, const Times& times, const std::vector<Group>& groups, const Cuts& cuts,
                                 const ScheduleOptions& options) {
    std::vector<Uses> uses(g.nodes.size());
    for (const Group& group : groups) {
        const Kernel& k = group.lowered.kernel;
        for (size_t i = 0; i < k.exprs.size(); i++) {
            const Expr& e = k.exprs[i];
            if ((e.kind != Expr::Apply && e.kind != Expr::Reduced) || !e.vars) continue;
            Uses& u = uses[e.node->id];
            const double n = points(k, e.vars);
            u.all += n;
            if (n > u.most) u.most = n, u.maker = &k, u.expr = int(i);
            if (u.last != &k) u.kernels++;
            u.last = &k;
        }
    }
    std::vector<Ref> share;
    for (const Node& n : g.nodes) {
        const Uses& u = uses[n.id];
        if (u.kernels < 2 || cuts.contains(&n)) continue;
        // Only where kernels part: a value all of whose users are shared by the same kernels is computed with them.
        bool parts = false;
        for (Ref user : times.users[n.id]) parts |= uses[user->id].kernels != u.kernels;
        if (!parts) continue;
        const double once = inline_ns(*u.maker, u.expr, &n, cuts, options.byte_ns);
        const double saved = once * (u.all - u.most);
        const double traffic =
            options.byte_ns * size_of(n.dtype) * (2 * double(numel(n.shape)) + u.all - u.most);  // a store is two transfers
        if (saved >= traffic) share.push_back(&n);
    }
    return share;
}

}  // namespace framejit
