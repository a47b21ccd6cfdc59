// Values to kernels, in rounds: every value that needs memory is lowered alone, which may find more of them; kernels that read the same
// memory or each other's values are merged where one space serves both; then values that several kernels compute are given memory where
// that is cheaper, and the next round starts from there.
#include "src/schedule/plan.h"

#include <functional>

#include "src/schedule/share.h"

namespace framejit {
namespace {

bool needs_kernel(Ref n) { return numel(n->shape) > 0 && n->op != &op_extern; }

// A value with one element per row of a reduction below it belongs to that reduction's kernel.
Space space_for(Ref root, const Cuts& cuts, const ScheduleOptions& options) {
    if (root->op->as<Reduce>()) return space_of_reduction(*root);
    std::vector<Ref> work{root};
    std::unordered_set<Ref> seen;
    for (size_t i = 0; i < work.size() && i < 64; i++) {
        for (Ref a : work[i]->in) {
            if (is_memory(a) || cuts.contains(a) || !seen.insert(a).second) continue;
            const bool candidate = a->op->as<Reduce>() && numel(a->shape) == numel(root->shape) && a->in[0]->shape[a->at.i[0]] > 1;
            if (!candidate) {
                work.push_back(a);
                continue;
            }
            const Space s = space_of_reduction(*a);
            const Lowered l = lower({root}, s, cuts, options);
            if (!l.too_big && l.request.kind == Request::None && !l.kernel.reductions.empty()) return s;
        }
    }
    return space_of_shape(root->shape);
}

int streams(const Kernel& k) {
    std::vector<char> full(k.loads.size());
    for (const Expr& e : k.exprs)
        if (e.kind == Expr::Load && e.guard < 0 && e.vars & bit(kLane)) full[e.buffer] = 1;
    return int(std::count(full.begin(), full.end(), 1));
}

class Planner {
public:
    Planner(const Graph& g, const Times& t, const ScheduleOptions& o) : graph_(g), times_(t), options_(o) {}

    Plan run() {
        for (const Output& o : graph_.outputs)
            if (!o.as_is) require(o.value);
        for (Ref call : times_.calls)
            for (Ref a : call->in)
                if (!is_memory(a)) require(a);
        for (Ref b : times_.barriers) require(b);
        constexpr int kRounds = 4;
        for (int round = 0;; round++) {
            groups_.clear();
            const size_t before = values_.size();
            for (size_t i = 0; i < values_.size(); i++) add_alone(values_[i]);  // values_ grows meanwhile
            merge();
            if (round + 1 == kRounds) break;
            const std::vector<Ref> shared = values_to_share(graph_, times_, groups_, cuts_, options_);
            for (Ref n : shared) require(n);
            if (values_.size() == before) break;  // otherwise kernels that were lowered early computed in place what now has memory
        }
        return {std::move(groups_), std::move(cuts_)};
    }

private:
    void require(Ref n) {
        if (needs_kernel(n) && !required_.count(n)) {
            required_.insert(n);
            // An output that is an input or an extern's result is a copy; everybody else reads the original, unless it will be overwritten.
            const bool barrier = std::find(times_.barriers.begin(), times_.barriers.end(), n) != times_.barriers.end();
            if (!is_memory(n) || barrier) cuts_.insert(n);
            values_.push_back(n);
        }
    }
    void add_alone(Ref root) {
        for (;;) {
            Lowered l = lower_in_best_space({root}, space_for(root, cuts_, options_), cuts_, options_);
            if (l.too_big || streams(l.kernel) > options_.max_streams) {
                const std::vector<Ref> cut = values_to_cut(l, times_, cuts_, root);
                for (Ref n : cut) require(n);
                if (!cut.empty()) continue;
            }
            if (l.too_big) throw GraphError("the scheduler cannot split a kernel");
            for (Ref n : l.needed) require(n);
            groups_.push_back({{root}, std::move(l)});
            return;
        }
    }

    // ---- merging ----
    void merge() {
        std::vector<int> order(groups_.size());
        for (size_t i = 0; i < order.size(); i++) order[i] = int(i);
        std::sort(order.begin(), order.end(), [&](int a, int b) { return groups_[a].roots[0]->id < groups_[b].roots[0]->id; });
        Dependences deps(times_, cuts_);
        for (const Group& g : groups_) deps.add_group(g);
        std::unordered_map<Ref, std::vector<int>> touched;  // value -> groups that make or read it
        for (int i : order) {
            int at = i;
            for (int into : candidates(i, touched, deps)) {
                if (!try_merge(into, i, deps)) continue;
                at = into;
                break;
            }
            for (Ref r : groups_[i].roots) touch(touched[r], at);
            for (const Source& s : groups_[i].lowered.kernel.loads) touch(touched[s.value], at);
        }
        std::vector<Group> kept;
        for (size_t i = 0; i < groups_.size(); i++)
            if (!deps.dropped(int(i))) kept.push_back(std::move(groups_[i]));
        groups_ = std::move(kept);
    }
    static void touch(std::vector<int>& list, int group) {
        if (list.empty() || list.back() != group) list.push_back(group);
    }
    // Makers of what it loads first, then readers of the same large memory.
    std::vector<int> candidates(int i, const std::unordered_map<Ref, std::vector<int>>& touched, const Dependences& deps) const {
        constexpr size_t kMost = 8;
        std::vector<int> list;
        auto offer = [&](int g) {
            if (g >= 0 && g != i && !deps.dropped(g) && list.size() < kMost && std::find(list.begin(), list.end(), g) == list.end())
                list.push_back(g);
        };
        const Kernel& k = groups_[i].lowered.kernel;
        for (const Source& s : k.loads)
            if (!s.own) offer(deps.owner(s.value));
        for (const Source& s : k.loads) {
            if (numel(s.value->shape) * 2 < k.points()) continue;
            if (auto it = touched.find(s.value); it != touched.end())
                for (size_t n = it->second.size(); n-- > 0;) offer(it->second[n]);
        }
        return list;
    }

    bool try_merge(int into, int from, Dependences& deps) {
        Group& a = groups_[into];
        Group& b = groups_[from];
        const Kernel &ka = a.lowered.kernel, &kb = b.lowered.kernel;
        if ((ka.kind == Kernel::Split) != (kb.kind == Kernel::Split)) return false;
        if (int(a.lowered.visited.size() + b.lowered.visited.size()) > options_.max_nodes) return false;
        if (int(ka.loads.size() + kb.loads.size() + ka.stores.size() + kb.stores.size()) > options_.max_streams * 2) return false;
        std::vector<Ref> roots = a.roots;
        roots.insert(roots.end(), b.roots.begin(), b.roots.end());
        const auto serves = [&](const Space& s) { return fits(a, s) && fits(b, s); };
        if (!serves(a.lowered.space) && !serves(b.lowered.space)) return false;
        if (deps.path_through_another(into, from) || deps.path_through_another(from, into)) return false;
        for (const Space* space : {&a.lowered.space, &b.lowered.space}) {
            if (!serves(*space)) continue;
            Lowered l = lower(roots, *space, cuts_, options_);
            if (!acceptable(l, a.lowered, b.lowered)) continue;
            a = {std::move(roots), std::move(l)};
            deps.replace_group(into, a);
            deps.drop_group(from);
            return true;
        }
        return false;
    }
    static bool fits(const Group& g, const Space& s) {
        for (Ref r : g.roots) {
            const int64_t n = numel(r->shape);
            if (n != s.points() && n != s.rows()) return false;
        }
        return true;
    }
    bool acceptable(const Lowered& l, const Lowered& a, const Lowered& b) const {
        if (l.too_big || l.conflict || l.request.kind != Request::None || !l.needed.empty()) return false;
        const Kernel& k = l.kernel;
        if (streams(k) + int(k.stores.size()) > options_.max_streams) return false;
        if (k.kind == Kernel::Blocked && a.kernel.kind != Kernel::Blocked) return false;
        if ((k.kind == Kernel::Split) != (a.kernel.kind == Kernel::Split)) return false;
        // Nothing is absorbed or recomputed that either kernel alone would have loaded.
        return k.reductions.size() <= a.kernel.reductions.size() + b.kernel.reductions.size();
    }

    const Graph& graph_;
    const Times& times_;
    const ScheduleOptions& options_;
    Cuts cuts_;
    std::unordered_set<Ref> required_;
    std::vector<Ref> values_;
    std::vector<Group> groups_;
};

}  // namespace

Plan make_plan(const Graph& g, const Times& t, const ScheduleOptions& o) { return Planner(g, t, o).run(); }

}  // namespace framejit
