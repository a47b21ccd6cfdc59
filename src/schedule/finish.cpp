#include "src/schedule/finish.h"

#include <functional>

namespace framejit {
namespace {

constexpr double kByteNs = 0.015;                  // reading a lane value from the cache, per byte
constexpr int64_t kScratchRow = int64_t(1) << 20;  // bytes: a longer row is computed again

bool has_offset(const Expr& e) { return e.kind == Expr::Load || e.kind == Expr::Index || e.kind == Expr::Iota; }

template <class F> void for_offsets(Kernel& k, const F& f) {
    for (Expr& e : k.exprs)
        if (has_offset(e)) f(e.at);
    for (Store& s : k.stores) f(s.at);
}

// Adjacent axes whose accesses all continue from one into the other are one axis.
std::vector<Axis> merge_axes(Kernel& k, std::vector<Axis> axes) {
    for (size_t i = axes.size(); i-- > 1;) {
        const Axis outer = axes[i - 1], inner = axes[i];
        if (k.red >= 0 && (outer.var == k.red || inner.var == k.red)) continue;
        bool all = true;
        for_offsets(k, [&](const Affine& a) { all = all && a.k[outer.var] == a.k[inner.var] * inner.extent; });
        if (!all) continue;
        for_offsets(k, [&](Affine& a) { a.k[outer.var] = 0; });
        for (Expr& e : k.exprs)
            if (e.vars & bit(outer.var)) e.vars = (e.vars & ~bit(outer.var)) | bit(inner.var);
        axes[i].extent *= outer.extent;
        axes.erase(axes.begin() + int64_t(i) - 1);
    }
    return axes;
}

template <class F> void for_operands(const Expr& e, const F& f) {
    for (int a : e.args) f(a);
    for (const Term& t : e.at.terms) f(t.expr);
    if (e.guard >= 0) f(e.guard);
}

void find_checks(Kernel& k) {
    std::vector<char> read(k.exprs.size());
    for (const Expr& e : k.exprs) for_operands(e, [&](int a) { read[size_t(a)] = 1; });
    for (const Store& s : k.stores) read[size_t(s.expr)] = 1;
    for (size_t i = 0; i < k.exprs.size(); i++)
        if (k.exprs[i].kind == Expr::Checked && !read[i]) k.checks.push_back({int(i), k.red < 0 || k.exprs[i].vars & bit(k.red)});
}

// What varies with the reduced variable is made in the loop that follows those of the reductions below it.
template <class Item> void order_after_reductions(Kernel& k, std::vector<Item>& items) {
    for (Item& s : items) {
        if (!s.full) continue;
        for (size_t b = 0; b < k.reductions.size(); b++)
            if (k.exprs[s.expr].reads >> b & 1) s.stage = std::max(s.stage, k.reductions[b].stage + 1);
        k.stages = std::max(k.stages, s.stage + 1);
    }
}

void order_stages(Kernel& k) {
    for (Reduction& r : k.reductions) {
        const uint64_t below = k.exprs[r.input].reads;
        for (size_t b = 0; b < k.reductions.size(); b++)
            if (below >> b & 1) r.stage = std::max(r.stage, k.reductions[b].stage + 1);  // operands come first
        k.stages = std::max(k.stages, r.stage + 1);
    }
    order_after_reductions(k, k.stores);
    order_after_reductions(k, k.checks);
}

std::vector<int> work_of_stage(const Kernel& k, int stage) {
    std::vector<int> exprs;
    for (const Reduction& r : k.reductions)
        if (r.stage == stage) exprs.push_back(r.input);
    for (const Store& s : k.stores)
        if (s.full && s.stage == stage) exprs.push_back(s.expr);
    for (const Check& c : k.checks)
        if (c.full && c.stage == stage) exprs.push_back(c.expr);
    return exprs;
}

double cost_ns(const Expr& e) {
    if (e.kind == Expr::Apply) return e.node->op->as<Pointwise>()->ns;
    return e.kind == Expr::Load ? kByteNs * size_of(e.dtype) : 0;
}

// ns per lane to compute a value again
double recompute_ns(const Kernel& k, int expr) {
    std::vector<char> seen(k.exprs.size());
    std::function<double(int)> visit = [&](int id) -> double {
        const Expr& e = k.exprs[id];
        if (seen[id] || !(e.vars & bit(kLane))) return 0;
        seen[id] = 1;
        double ns = cost_ns(e);
        for_operands(e, [&](int a) { ns += visit(a); });
        return ns;
    };
    return visit(expr);
}

void estimate(Kernel& k) {
    std::vector<double> depth(k.exprs.size());
    for (size_t i = 0; i < k.exprs.size(); i++) {
        const Expr& e = k.exprs[i];
        for_operands(e, [&](int a) { depth[i] = std::max(depth[i], depth[a]); });
        if (e.kind != Expr::Apply || !e.vars) continue;
        depth[i] += e.node->op->as<Pointwise>()->ns;
        k.ns += e.node->op->as<Pointwise>()->ns;
        k.depth = std::max(k.depth, depth[i]);
    }
    for (const Reduction& r : k.reductions) k.ns += 0.03 * r.node->op->as<Reduce>()->accs;
}

Kernel::Kind kind_of(const Kernel& k) {
    const int64_t rows = k.rows_total();
    if (k.red == kSeq) return Kernel::Column;
    if (k.red < 0) return k.rows.empty() ? Kernel::Linear : k.strided ? Kernel::Blocked : Kernel::Rows;
    bool full = false;
    for (const Store& s : k.stores) full |= s.full;
    return !full && k.stages == 1 && k.extent[kLane] >= 4 * kChunk && rows < 16 ? Kernel::Split : Kernel::Rows;
}

}  // namespace

void finish(Kernel& k, const Space& space) {
    const std::vector<Axis> axes = merge_axes(k, space.axes);
    k.extent.fill(1);
    for (const Axis& a : axes) {
        k.extent[a.var] = a.extent;
        if (a.var < kRows || (a.var == kSeq && k.red != kSeq)) k.rows.push_back(a.var);
    }
    find_checks(k);
    order_stages(k);
    estimate(k);
    if (!k.rows.empty() && k.red < 0)
        for (const Expr& e : k.exprs) k.strided |= e.kind == Expr::Load && std::llabs(e.at.k[kLane]) > 1 && e.at.k[k.rows.back()] == 1;
    k.kind = kind_of(k);
}

// Lane values of an earlier stage that are needed again and cost more than a scratch row: the topmost ones.
void choose_keeps(Kernel& k, double keep_ns) {
    if (k.kind != Kernel::Rows) return;
    std::vector<int> first(k.exprs.size(), -1);
    for (int stage = 0; stage < k.stages; stage++) {
        std::vector<char> seen(k.exprs.size());
        std::vector<int> now;
        std::function<void(int)> visit = [&](int id) {
            const Expr& e = k.exprs[id];
            if (seen[id] || !(e.vars & bit(kLane))) return;
            seen[id] = 1;
            if (first[id] >= 0 && e.kind == Expr::Apply && recompute_ns(k, id) > keep_ns &&
                k.extent[kLane] * size_of(e.dtype) <= kScratchRow) {
                if (std::find(k.keeps.begin(), k.keeps.end(), id) == k.keeps.end()) k.keeps.push_back(id);
                return;
            }
            now.push_back(id);
            for_operands(e, visit);
        };
        for (int id : work_of_stage(k, stage)) visit(id);
        for (int id : now)
            if (first[id] < 0) first[id] = stage;
    }
    std::sort(k.keeps.begin(), k.keeps.end());
}

}  // namespace framejit
