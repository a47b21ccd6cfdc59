// Text of kernels and programs for dumps and golden tests, and the structural key that decides which kernels are one function.
#include <cstring>

#include "src/schedule/kernel.h"

namespace framejit {
namespace {

constexpr const char* kKinds[] = {"linear", "rows", "blocked", "column", "split"};

void put(std::string& s, int64_t v) {
    s += std::to_string(v);
    s += ',';
}
void put(std::string& s, const Affine& a) {
    for (int v = 0; v < kVars; v++)
        if (a.k[v]) {
            s += char('a' + v);
            put(s, a.k[v]);
        }
    put(s, a.c);
    for (const Term& t : a.terms) {
        s += '#';
        put(s, t.expr);
        put(s, t.k);
    }
}
// What an op's body may look at: attributes, dtypes and the shapes of the node and its operands.
void put_node(std::string& s, Ref n) {
    s += n->op->name;
    s += name_of(n->dtype);
    for (int64_t v : n->at.i) put(s, v);
    for (double v : n->at.f) {
        s.append(reinterpret_cast<const char*>(&v), sizeof v);
        s += ';';
    }
    for (Ref a : n->in) s += name_of(a->dtype);
    if (!n->op->as<Reduce>()) return;
    for (int64_t d : n->in[0]->shape) put(s, d);
}
bool has_body(const Expr& e) {
    return e.kind == Expr::Apply || e.kind == Expr::Constant || e.kind == Expr::Iota || e.kind == Expr::Reduced || e.kind == Expr::Folded;
}

std::string text(const Affine& a) {
    std::string s;
    auto term = [&](const std::string& t) { s += (s.empty() ? "" : "+") + t; };
    auto name = [](int v) { return v == kLane ? std::string("lane") : v == kSeq ? std::string("seq") : "r" + std::to_string(v); };
    for (int v = 0; v < kVars; v++)
        if (a.k[v]) term(a.k[v] == 1 ? name(v) : std::to_string(a.k[v]) + "*" + name(v));
    for (const Term& t : a.terms) term((t.k == 1 ? "" : std::to_string(t.k) + "*") + "v" + std::to_string(t.expr));
    if (a.c || s.empty()) term(std::to_string(a.c));
    return s;
}
std::string operands(const Expr& e) {
    std::string s;
    for (int a : e.args) s += " v" + std::to_string(a);
    return s;
}
std::string text_of(const Kernel& k, const Expr& e) {
    switch (e.kind) {
    case Expr::Load: {
        std::string s = "load b" + std::to_string(e.buffer) + "[" + text(e.at) + "]";
        return e.guard < 0 ? s : s + " where v" + std::to_string(e.guard) + " < " + std::to_string(e.n);
    }
    case Expr::Constant: {
        if (!is_float(e.dtype)) return "constant " + std::to_string(e.node->at.i[0]);
        char number[40];
        snprintf(number, sizeof number, "%.9g", e.node->at.f[0]);
        return std::string("constant ") + number;
    }
    case Expr::Iota: return "iota " + text(e.at);
    case Expr::Index: return "index " + text(e.at);
    case Expr::Apply: return std::string(e.node->op->name) + operands(e);
    case Expr::Reduced: {
        const Reduction& r = k.reductions[e.slot];
        return std::string(e.node->op->name) + " v" + std::to_string(r.input) + " over " + (k.red == kLane ? "lane" : "seq") + " stage " +
               std::to_string(r.stage);
    }
    case Expr::Folded: return std::string(e.node->op->name) + " of one" + operands(e);
    case Expr::Div: return "div" + operands(e) + " " + std::to_string(e.n);
    case Expr::Mod: return "mod" + operands(e) + " " + std::to_string(e.n);
    case Expr::Clamped: return "clamped" + operands(e) + " " + std::to_string(e.n);
    case Expr::Checked: return "checked" + operands(e) + " " + std::to_string(e.n);
    }
    return {};
}
}  // namespace

std::string key_of(const Kernel& k) {
    std::string s;
    s.reserve(k.exprs.size() * 32);
    put(s, k.kind);
    put(s, k.in_place);
    put(s, k.red);
    for (int64_t n : k.extent) put(s, n);
    for (const Expr& e : k.exprs) {
        s += '\n';
        put(s, e.kind);
        if (has_body(e)) put_node(s, e.node);
        if (e.kind == Expr::Load) s += name_of(e.dtype), put(s, e.buffer);
        if (e.kind != Expr::Reduced) put(s, e.at);
        for (int a : e.args) put(s, a);
        put(s, e.n);
        put(s, e.guard);
    }
    for (const Reduction& r : k.reductions) s += 'r', put(s, r.input), put(s, r.expr);
    for (const Store& t : k.stores) s += 's', s += name_of(t.dtype), put(s, t.expr), put(s, t.full), put(s, t.at);
    for (int keep : k.keeps) s += 'k', put(s, keep);
    return s;
}

std::string print(const Kernel& k) {
    std::string s = kKinds[k.kind];
    for (int v : k.rows) s += " r" + std::to_string(v) + "<" + std::to_string(k.extent[v]);
    if (k.red == kSeq) s += " seq<" + std::to_string(k.extent[kSeq]);
    s += " lane<" + std::to_string(k.extent[kLane]);
    if (k.stages > 1) s += " stages " + std::to_string(k.stages);
    if (k.in_place) s += " in place";
    s += "\n";
    for (size_t i = 0; i < k.exprs.size(); i++)
        s += "    v" + std::to_string(i) + " = " + text_of(k, k.exprs[i]) + " " + std::string(name_of(k.exprs[i].dtype)) + "\n";
    for (int keep : k.keeps) s += "    keep v" + std::to_string(keep) + "\n";
    for (size_t i = 0; i < k.stores.size(); i++) {
        const Store& t = k.stores[i];
        s += "    b" + std::to_string(k.loads.size() + i) + "[" + text(t.at) + "] = v" + std::to_string(t.expr);
        s += t.full ? " stage " + std::to_string(t.stage) + "\n" : "\n";
    }
    return s;
}

std::string print(const Program& p, const Graph& g) {
    constexpr const char* kinds[] = {"input", "output", "temp", "result"};
    std::string s;
    for (size_t i = 0; i < p.buffers.size(); i++) {
        const Buffer& b = p.buffers[i];
        s += "%" + std::to_string(i) + " = " + kinds[b.kind];
        if (b.position >= 0) s += " " + std::to_string(b.position);
        s += " " + std::string(name_of(b.dtype)) + "[";
        for (size_t d = 0; d < b.shape.size(); d++) s += (d ? "," : "") + std::to_string(b.shape[d]);
        s += "]" + (b.arena >= 0 ? " arena " + std::to_string(b.arena) : "") + "\n";
    }
    auto list = [&](const std::vector<int>& v) {
        for (int b : v) s += " %" + std::to_string(b);
    };
    for (const Step& step : p.steps) {
        if (const Kernel* k = step.launch.kernel) {
            s += "launch";
            for (size_t i = 0; i < step.launch.items.size(); i++) {
                if (i) s += " |";
                list(step.launch.items[i]);
            }
            s += ": " + print(*k);
        } else {
            s += "extern " + g.externs[step.call.call].name;
            list(step.call.args);
            s += " ->";
            list(step.call.results);
            s += "\n";
        }
    }
    return s;
}

}  // namespace framejit
