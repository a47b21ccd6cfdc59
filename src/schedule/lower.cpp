#include "src/schedule/lower.h"

#include <map>
#include <optional>

#include "src/schedule/affine.h"
#include "src/schedule/finish.h"

namespace framejit {

bool is_memory(Ref n) { return n->op == &op_input || n->op == &op_result; }
Shape strides_of(Ref n) { return Shape(n->at.i.begin() + 1, n->at.i.end()); }

namespace {
struct TooBig {};

struct AffineHash {
    size_t operator()(const Affine& a) const { return hash_of(a, 0); }
};
struct Key {
    Ref node;
    Affine at;
    bool operator==(const Key&) const = default;
};
struct KeyHash {
    size_t operator()(const Key& k) const { return hash_of(k.at, size_t(k.node->id)); }
};

bool contiguous(Ref memory) {
    int64_t want = 1;
    for (size_t d = memory->shape.size(); d-- > 0;) {
        if (memory->shape[d] != 1 && memory->at.i[1 + d] != want) return false;
        want *= memory->shape[d];
    }
    return true;
}

class Lowering final : IndexEnv {
public:
    Lowering(const std::vector<Ref>& roots, const Space& space, const Cuts& cuts, const ScheduleOptions& options,
             const std::vector<Shape>& strides, bool copy = false)
        : roots_(roots), cuts_(cuts), options_(options), strides_(strides), copy_(copy) {
        out_.space = space;
        Kernel& k = out_.kernel;
        k.extent.fill(1);
        for (const Axis& a : space.axes) k.extent[a.var] = a.extent;
        // Few long rows: a reduction leaves partials, so that threads share a row; what consumes it is another kernel.
        split_rows_ = space.red != kSeq && has_axis(space, kLane) && k.extent[kLane] >= 4 * kChunk && space.points() / k.extent[kLane] < 16;
    }

    Lowered run() {
        try {
            for (size_t i = 0; i < roots_.size(); i++) lower_root(roots_[i], i < strides_.size() ? strides_[i] : Shape{});
            for (Ref r : roots_) add_copy_store(r);
        } catch (TooBig&) {
            out_.too_big = true;
            return std::move(out_);
        }
        out_.kernel.red = out_.kernel.reductions.empty() ? -1 : out_.space.red;
        if (out_.request.kind == Request::None && !out_.conflict) finish(out_.kernel, out_.space);
        return std::move(out_);
    }

private:
    // ---- roots ----
    bool is_full(Ref root) const { return out_.space.red < 0 || numel(root->shape) == out_.space.points(); }
    // The position of a root's element at the loop variables.
    Affine own_position(bool full) const {
        Affine at;
        int64_t step = 1;
        for (size_t k = out_.space.axes.size(); k-- > 0;) {
            const Axis& a = out_.space.axes[k];
            if (!full && a.var == out_.space.red) continue;
            at.k[a.var] = a.extent == 1 ? 0 : step;
            step *= a.extent;
        }
        return at;
    }
    void lower_root(Ref root, const Shape& strides) {
        const bool full = is_full(root);
        const Affine at = own_position(full);
        in_lanes_ = full;
        Store s{.expr = value_of_root(root, at), .at = at, .full = full, .dtype = root->dtype};
        if (!strides.empty()) s.at = strided_offset(root, at, strides);
        out_.kernel.stores.push_back(std::move(s));
    }
    // A copy that stands in for memory has its layout: extern calls look at both through the same windows.
    void add_copy_store(Ref root) {
        const bool copied = is_memory(root) && cuts_.contains(root) && !copy_;
        out_.copy_store.push_back(copied ? int(out_.kernel.stores.size()) : -1);
        if (!copied) return;
        Store s = out_.kernel.stores[out_.copy_store.size() - 1];
        s.at = strided_offset(root, own_position(s.full), strides_of(root));
        out_.kernel.stores.push_back(std::move(s));
    }
    int value_of_root(Ref root, const Affine& at) {
        if (copy_) return load(Source{root, is_memory(root) && !cuts_.contains(root)}, at);
        return is_memory(root) ? load(Source{root, true}, at) : lower(root, at);
    }
    bool is_root(Ref n) const { return std::find(roots_.begin(), roots_.end(), n) != roots_.end(); }
    bool is_own(Ref n, const Affine& at) {
        for (Ref r : roots_) {
            if (r != n) continue;
            if (own_position(is_full(r)) == at) return true;
            out_.conflict = true;
        }
        return false;
    }

    // ---- values ----
    int lower(Ref n, const Affine& at) {
        if (auto hit = memo_.find(Key{n, at}); hit != memo_.end()) return hit->second;
        const int id = lower_new(n, at);
        memo_.emplace(Key{n, at}, id);
        return id;
    }

    int lower_new(Ref n, const Affine& at) {
        if (is_memory(n)) return load(Source{n, is_root(n)}, at);  // what copies it runs while the original is there
        if (cuts_.contains(n) && !is_own(n, at)) return load(Source{n, false}, at);
        if (n->op == &op_constant) return add({.kind = Expr::Constant, .node = n, .dtype = n->dtype});
        if (n->op == &op_iota) return add({.kind = Expr::Iota, .node = n, .at = at, .dtype = n->dtype});
        if (n->op == &op_view) return lower(n->in[0], at);
        if (n->op->as<Pointwise>()) return apply_node(n, at);
        if (n->op->as<Index>()) return lower_index(n, at);
        if (n->op->as<Reduce>()) return lower_reduction(n, at);
        throw GraphError("the scheduler does not know " + std::string(n->op->name));
    }

    int apply_node(Ref n, const Affine& at) {
        out_.visited.push_back(n);
        if (int(out_.visited.size()) > options_.max_nodes) throw TooBig{};
        Expr e{.kind = Expr::Apply, .node = n, .dtype = n->dtype};
        for (Ref a : n->in) e.args.push_back(lower(a, at));
        return add(std::move(e));
    }

    int lower_index(Ref n, const Affine& at) {
        std::optional<Coords> c = coordinates(at, n->shape, is_root(n) || only_moves_memory(n));
        if (!c) return give_up(n, at);
        const Coords in = n->op->as<Index>()->map(*n, *c, *this);
        return lower(n->in[0], position(in, n->in[0]->shape));
    }

    // A chain of index ops on memory: computing its coordinates at run time is no worse than copying it first.
    bool only_moves_memory(Ref n) const {
        while (n->op->as<Index>() && !cuts_.contains(n)) n = n->in[0];
        return is_memory(n) && out_.space.red < 0;
    }

    int give_up(Ref n, const Affine& at) {
        if (std::find(out_.needed.begin(), out_.needed.end(), n) == out_.needed.end()) out_.needed.push_back(n);
        return load(Source{n, false}, at);
    }

    // ---- reductions ----
    int lower_reduction(Ref n, const Affine& at) {
        const int64_t extent = n->in[0]->shape[n->at.i[0]];
        if (extent <= 1) {
            Expr e{.kind = Expr::Folded, .node = n, .dtype = n->dtype};
            if (extent == 1) e.args.push_back(lower(n->in[0], at));
            return add(std::move(e));
        }
        const int var = reduced_variable(at, extent);
        if (var < 0) return give_up(n, at);
        std::optional<Affine> input = input_position(n, at, var);
        if (!input) return give_up(n, at);
        out_.space.red = var;
        const bool was_in_lanes = in_lanes_;
        in_lanes_ = true;
        const int value = lower(n->in[0], *input);
        in_lanes_ = was_in_lanes;
        const int slot = int(out_.kernel.reductions.size());
        if (slot >= 60) throw TooBig{};
        const int id = add({.kind = Expr::Reduced, .node = n, .at = at, .slot = slot, .dtype = n->dtype});
        out_.kernel.exprs[id].reads = out_.kernel.exprs[value].reads | uint64_t(1) << slot;
        out_.kernel.reductions.push_back({.node = n, .input = value, .expr = id});
        return id;
    }

    // The axis that a reduction found at this position runs over, if it belongs into this kernel: its rows are the kernel's rows.
    int reduced_variable(const Affine& at, int64_t extent) {
        if (!at.terms.empty() || at.c != 0) return -1;
        if (split_rows_ && in_lanes_) return -1;
        for (const Axis& a : out_.space.axes) {
            if (a.extent != extent || (out_.space.red >= 0 && a.var != out_.space.red)) continue;
            if (at.k != rows_without(a.var).k) continue;
            if (a.var == kLane || a.var == out_.space.red) return a.var;
            if (out_.request.kind == Request::None) out_.request = {Request::Column, a.var, 0};
            return -1;
        }
        return -1;
    }
    Affine rows_without(int var) const {
        Affine at;
        int64_t step = 1;
        for (size_t k = out_.space.axes.size(); k-- > 0;) {
            const Axis& a = out_.space.axes[k];
            if (a.var == var) continue;
            at.k[a.var] = a.extent == 1 ? 0 : step;
            step *= a.extent;
        }
        return at;
    }
    std::optional<Affine> input_position(Ref n, const Affine& at, int var) {
        const Shape& shape = n->in[0]->shape;
        const int64_t dim = n->at.i[0];
        int64_t inner = 1;
        for (size_t d = size_t(dim) + 1; d < shape.size(); d++) inner *= shape[d];
        Affine outer = at, rest;
        if (inner > 1 && !split(at, inner, &outer, &rest)) return std::nullopt;
        Affine in = sum(scaled(outer, shape[dim] * inner), rest);
        in.k[var] += inner;
        return in;
    }

    // ---- memory ----
    int load(const Source& source, const Affine& at) {
        Ref n = source.value;
        Affine offset = at;
        if (is_memory(n) && !contiguous(n)) offset = strided_offset(n, at, strides_of(n));  // copies have the layout of the original
        auto known = std::find(out_.kernel.loads.begin(), out_.kernel.loads.end(), source);
        const int buffer = int(known - out_.kernel.loads.begin());
        if (known == out_.kernel.loads.end()) out_.kernel.loads.push_back(source);
        Expr e{.kind = Expr::Load, .node = n, .at = std::move(offset), .buffer = buffer, .dtype = n->dtype};
        guard(e);
        return add(std::move(e));
    }
    // Dimensions that continue each other in memory need one coordinate.
    Affine strided_offset(Ref n, const Affine& at, const Shape& strides) {
        Shape shape, steps;
        for (size_t d = 0; d < n->shape.size(); d++) {
            if (n->shape[d] == 1) continue;
            if (!shape.empty() && steps.back() == strides[d] * n->shape[d])
                shape.back() *= n->shape[d], steps.back() = strides[d];
            else
                shape.push_back(n->shape[d]), steps.push_back(strides[d]);
        }
        const Coords c = *coordinates(at, shape, true);
        Affine offset;
        for (size_t d = 0; d < c.size(); d++) offset = sum(offset, scaled(affine_of(c[d]), steps[d]));
        return offset;
    }
    // A read at a coordinate that is clamped lane by lane becomes a read that is left out where the coordinate is outside.
    void guard(Expr& load) {
        for (bool again = true; again;) {  // a clamped coordinate may be inside of an index
            again = false;
            for (const Term& t : load.at.terms)
                if (const Expr& inner = out_.kernel.exprs[t.expr]; inner.kind == Expr::Index) {
                    load.at = sum(without(load.at, t.expr), scaled(inner.at, t.k));
                    again = true;
                    break;
                }
        }
        for (size_t t = 0; t < load.at.terms.size(); t++) {
            const Expr& clamp = out_.kernel.exprs[load.at.terms[t].expr];
            if (clamp.kind != Expr::Clamped || !(clamp.vars & bit(kLane))) continue;
            const int64_t stride = load.at.terms[t].k;
            load.guard = clamp.args[0];
            load.n = clamp.n;
            load.at.terms.erase(load.at.terms.begin() + int64_t(t));
            load.at = sum(load.at, scaled(out_.kernel.exprs[load.guard].at, stride));
            return;
        }
    }

    static Affine without(Affine a, int expr) {
        std::erase_if(a.terms, [&](const Term& t) { return t.expr == expr; });
        return a;
    }

    int add(Expr e) {
        if (out_.kernel.exprs.size() > size_t(4 * options_.max_nodes)) throw TooBig{};
        for (int v = 0; v < kVars; v++)
            if (e.at.k[v]) e.vars |= bit(v);
        auto inherit = [&](int arg) {
            e.vars |= out_.kernel.exprs[arg].vars;
            e.reads |= out_.kernel.exprs[arg].reads;
        };
        for (const Term& t : e.at.terms) inherit(t.expr);
        for (int a : e.args) inherit(a);
        if (e.guard >= 0) inherit(e.guard);
        out_.kernel.exprs.push_back(std::move(e));
        bound_.push_back(0);
        return int(out_.kernel.exprs.size()) - 1;
    }
    int integer_expr(const Affine& a) {  // as an expression, so that it can be an operand
        if (a.terms.size() == 1 && a.terms[0].k == 1 && a.c == 0 && a.k == Affine{}.k) return a.terms[0].expr;
        return index_expr(a);
    }

    // ---- coordinates ----
    Splitter splitter(const Affine& a, int64_t n) const {
        Splitter s(a, n);
        for (int v = 0; v < kVars; v++)
            if (a.k[v]) s.variable(v, a.k[v], out_.kernel.extent[v]);
        for (const Term& t : a.terms) s.term(t, bound_[t.expr]);
        return s;
    }
    // Splits the position into a quotient and a remainder by n, both affine. Otherwise false, and a request where another space would do.
    bool split(const Affine& a, int64_t n, Affine* quotient, Affine* remainder) {
        Splitter s = splitter(a, n);
        if (s.finish(quotient, remainder)) return true;
        request_split(s, n);
        return false;
    }
    void request_split(const Splitter& s, int64_t n) {
        const int v = s.widest();
        if (v < 0 || v == out_.space.red || out_.request.kind != Request::None) return;
        const int64_t k = s.remainder().k[v];
        const int64_t extent = out_.kernel.extent[v];
        if (k <= 0 || n % k != 0 || n / k <= 1 || n / k >= extent || extent % (n / k) != 0) return;
        if (v == kLane && n / k < std::min(options_.lanes, 8)) return;  // too few lanes left: compute the coordinate instead
        int rows = 0;
        for (const Axis& axis : out_.space.axes) rows += axis.var < kRows;
        if (rows < kRows) out_.request = {Request::Split, v, n / k};
    }

    // The coordinates of a position. `computed`: at run time where they are not affine.
    std::optional<Coords> coordinates(const Affine& at, const Shape& shape, bool computed) {
        Coords c(shape.size());
        Affine rest = at;
        int first = -1;
        for (size_t d = shape.size(); d-- > 0;)
            if (shape[d] != 1) first = int(d);
        for (int d = int(shape.size()) - 1; d >= 0; d--) {
            if (shape[d] == 1) continue;
            if (d == first) {
                c[d] = coord_of(rest);
                break;
            }
            Affine q, r;
            if (!split(rest, shape[d], &q, &r)) {
                if (!computed) return std::nullopt;
                divide(rest, shape[d], &q, &r);
            }
            c[d] = coord_of(r);
            rest = q;
        }
        return c;
    }
    // At run time, but only what does not divide: the rest stays affine, and what is known of the quotient serves the next division.
    void divide(const Affine& a, int64_t n, Affine* q, Affine* r) {
        Affine whole, rest;
        int64_t end = 0;
        if (!splitter(a, n).partly(&whole, &rest, &end)) whole = {}, rest = a;
        const int value = integer_expr(rest), quotient = of_integer(Expr::Div, value, n);
        if (end) bound_[quotient] = (end - 1) / n + 1;
        *q = sum(whole, Affine{.terms = {{quotient, 1}}});
        *r = Affine{.terms = {{of_integer(Expr::Mod, value, n), 1}}};
    }
    Affine position(const Coords& c, const Shape& shape) {
        Affine at;
        int64_t step = 1;
        for (size_t d = shape.size(); d-- > 0;) {
            if (shape[d] != 1) {
                if (c[d].dyn && (bound_[c[d].v.i] == 0 || bound_[c[d].v.i] > shape[d])) bound_[c[d].v.i] = shape[d];
                at = sum(at, scaled(affine_of(c[d]), step));
            }
            step *= shape[d];
        }
        return at;
    }
    Affine affine_of(const Coord& c) const {
        Affine a{.k = c.k, .c = c.c};
        if (c.dyn) a.terms.push_back({int(c.v.i), 1});
        return a;
    }
    Coord coord_of(const Affine& a) {
        Coord c;
        if (a.terms.empty()) {
            c.k = a.k;
            c.c = a.c;
            return c;
        }
        c.dyn = true;
        c.v.ty = Ty::i64;
        c.v.i = integer_expr(a);
        c.dyn_lane = out_.kernel.exprs[size_t(c.v.i)].vars & bit(kLane);
        return c;
    }
    bool within(const Affine& a, int64_t n) const {
        int64_t lo = a.c, hi = a.c;
        for (int v = 0; v < kVars; v++) (a.k[v] < 0 ? lo : hi) += a.k[v] * (out_.kernel.extent[v] - 1);
        return a.terms.empty() && lo >= 0 && hi < n;
    }

    // ---- what index ops may ask ----
    Coord value(Ref n, const Coords& c) override { return coord_of(Affine{.terms = {{lower(n, position(c, n->shape)), 1}}}); }
    Coord divmod(const Coord& c, int64_t n, Coord* rem) override {
        Affine q, r;
        if (!split(affine_of(c), n, &q, &r)) divide(affine_of(c), n, &q, &r);
        *rem = coord_of(r);
        return coord_of(q);
    }
    Coord scaled(const Coord& c, int64_t factor) override { return coord_of(framejit::scaled(affine_of(c), factor)); }
    Coord sum(const Coord& a, const Coord& b) override { return coord_of(framejit::sum(affine_of(a), affine_of(b))); }
    Coord clamped(const Coord& c, int64_t extent) override {
        if (within(affine_of(c), extent)) return c;
        const int position = index_expr(affine_of(c));
        return coord_of(Affine{.terms = {{of_integer(Expr::Clamped, position, extent), 1}}});
    }
    Coord checked(const Coord& c, int64_t extent) override {
        return coord_of(Affine{.terms = {{of_integer(Expr::Checked, integer_expr(affine_of(c)), extent), 1}}});
    }
    int of_integer(Expr::Kind kind, int arg, int64_t n) {
        auto [known, fresh] = of_integer_.try_emplace({kind, arg, n}, -1);
        if (!fresh) return known->second;
        known->second = add({.kind = kind, .args = {arg}, .n = n});
        bound_[known->second] = kind == Expr::Div ? 0 : n;
        return known->second;
    }
    int index_expr(const Affine& a) {  // an Index even where integer_expr would return its only term: a guard is looked into
        if (auto hit = integers_.find(a); hit != integers_.end()) return hit->second;
        const int id = add({.kind = Expr::Index, .at = a});
        integers_.emplace(a, id);
        return id;
    }
    static Affine scaled(const Affine& a, int64_t f) { return framejit::scaled(a, f); }
    static Affine sum(const Affine& a, const Affine& b) { return framejit::sum(a, b); }

    const std::vector<Ref> roots_;
    const Cuts& cuts_;
    const ScheduleOptions& options_;
    const std::vector<Shape> strides_;
    const bool copy_;  // the root is in memory already
    Lowered out_;
    std::unordered_map<Key, int, KeyHash> memo_;
    std::unordered_map<Affine, int, AffineHash> integers_;            // Index expressions
    std::map<std::tuple<Expr::Kind, int, int64_t>, int> of_integer_;  // Div, Mod, Clamped and Checked ones
    std::vector<int64_t> bound_;                                      // exclusive upper bound of integer expressions, 0: unknown
    bool split_rows_ = false;
    bool in_lanes_ = false;  // whether what is being lowered varies with the lane
};

}  // namespace

Lowered lower(const std::vector<Ref>& roots, const Space& space, const Cuts& cuts, const ScheduleOptions& options,
              const std::vector<Shape>& strides) {
    return Lowering(roots, space, cuts, options, strides).run();
}

Lowered lower_copy(Ref value, const Shape& strides, const Cuts& cuts, const ScheduleOptions& options) {
    return Lowering({value}, space_of_shape(value->shape), cuts, options, {strides}, true).run();
}

namespace {
Lowered lower_as_requested(const std::vector<Ref>& roots, Space space, const Cuts& cuts, const ScheduleOptions& options) {
    for (;;) {
        Lowered r = lower(roots, space, cuts, options);
        if (r.request.kind == Request::None || r.too_big) return r;
        space = apply(space, r.request);
    }
}
// Rows that are strided in memory and lie beside each other: the row variable that runs along memory, or -1.
int variable_along_memory(const Kernel& k, const ScheduleOptions& options) {
    if (k.red != kLane || k.rows.empty() || k.extent[k.rows.back()] < options.lanes) return -1;
    const int row = k.rows.back();
    bool strided = false;
    for (const Store& s : k.stores)
        if (s.full && s.at.k[row] != 1) return -1;
    for (const Expr& e : k.exprs) {
        if (e.kind != Expr::Load || !(e.vars & bit(kLane)) || e.at.k[kLane] == 0) continue;
        if (std::abs(e.at.k[kLane]) == 1 || e.at.k[row] > 1) return -1;
        strided |= e.at.k[row] == 1;
    }
    return strided ? row : -1;
}
}  // namespace

Lowered lower_in_best_space(const std::vector<Ref>& roots, Space space, const Cuts& cuts, const ScheduleOptions& options) {
    Lowered r = lower_as_requested(roots, std::move(space), cuts, options);
    if (r.request.kind != Request::None || r.too_big || r.conflict) return r;
    const int row = variable_along_memory(r.kernel, options);
    if (row < 0) return r;
    Space columns = r.space;
    for (Axis& a : columns.axes) a.var = a.var == kLane ? kSeq : a.var == row ? kLane : a.var;
    columns.red = kSeq;
    Lowered c = lower_as_requested(roots, std::move(columns), cuts, options);
    const bool same = c.request.kind == Request::None && !c.too_big && !c.conflict && c.needed.size() <= r.needed.size() &&
                      c.kernel.reductions.size() == r.kernel.reductions.size();
    return same ? std::move(c) : std::move(r);
}

}  // namespace framejit
