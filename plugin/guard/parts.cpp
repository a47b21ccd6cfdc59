// From rows in order to parts: every source that a row needs is read once, just before the first row that needs it.
#include "plugin/guard/part.h"
#include <algorithm>
#include <map>

namespace framejit::guards {
namespace {

struct Builder {
    const Sources& given;
    Layout out;
    std::vector<int> renumbered;                  // given source -> out.sources
    std::map<std::pair<int, bool>, int> anchors;  // {root, by_type} -> part
    std::vector<char> exported;

    // Keeps only what is needed: the sources of a whole recording are shared by its regions.
    int keep(int i) {
        if (i == 0) return 0;
        if (renumbered[i]) return renumbered[i];
        const GuardSource& s = given[i];
        int parent = keep(s.parent);
        int kept;
        if (s.kind == SourceKind::Slot)
            kept = out.sources.slot(s.index);
        else if (s.kind == SourceKind::Const)
            kept = out.sources.constant(s.key.get());
        else
            kept = s.other || s.kind == SourceKind::Unary ? out.sources.combine(s.kind, parent, keep(s.other), s.index)
                                                          : out.sources.child(s.kind, parent, s.key.get(), s.index);
        renumbered[i] = kept;
        return kept;
    }

    void prepare() {
        size_t count = size_t(out.sources.size());
        out.homes.resize(count);
        out.items.resize(count);
        out.checks.resize(count);
        exported.resize(count);
        out.hashes.resize(count, -1);
        for (size_t i = 0; i < count; ++i) {
            const GuardSource& s = out.sources[int(i)];
            bool looks_up = s.kind == SourceKind::Item || s.kind == SourceKind::KwDefault || s.kind == SourceKind::Cached;
            if (looks_up && s.key) out.hashes[i] = PyObject_Hash(s.key.get());
            PyErr_Clear();
        }
        out.parts.resize(2);  // what comes from slots alone, then the constants
    }

    bool proven(int i) const { return out.homes[i].local >= 0; }

    void read_outside(int i) {
        if (i && proven(i) && !exported[i]) {
            exported[i] = 1;
            out.parts[out.homes[i].part].exports.push_back(i);
        }
    }

    // The part of a Proven source below a Live parent.
    int anchor(int root, bool by_type) {
        auto [it, fresh] = anchors.try_emplace({root, by_type}, int(out.parts.size()));
        if (fresh) {
            out.parts.emplace_back();
            out.parts.back().root = root;
            out.parts.back().by_type = by_type;
        }
        return it->second;
    }

    bool is_proven_kind(const GuardSource& s) const {
        switch (place_of(s.kind)) {
        case Place::Live: return false;
        case Place::Keyed: return s.key && proven(s.parent);
        case Place::Proven: return s.kind != SourceKind::TypeOf || proven(s.parent);  // of a Live value: as cheap to read
        }
        return false;
    }

    void place(int i) {
        if (i == 0 || out.homes[i].part >= 0) return;
        const GuardSource& s = out.sources[i];
        place(s.parent);
        place(s.other);
        if (!is_proven_kind(s)) {
            int part = std::max(s.parent ? out.homes[s.parent].part : 0, s.other ? out.homes[s.other].part : 0);
            out.homes[i].part = part;
            read_outside(s.parent);
            read_outside(s.other);
            if (s.kind == SourceKind::Slot)
                out.parts[part].live.push_back({Step::Slot, i, s.index});
            else
                out.parts[part].live.push_back({Step::Read, i});
            return;
        }
        int part = 1;
        if (s.kind != SourceKind::Const)
            part = proven(s.parent) ? out.homes[s.parent].part : anchor(s.parent, s.kind == SourceKind::TypeLookup);
        Part& p = out.parts[part];
        out.homes[i] = {part, int(p.sources.size())};
        p.sources.push_back(i);
        p.proven.push_back({Step::Read, i});
        if (s.kind == SourceKind::Item) out.items[s.parent].push_back(i);
    }

    void add(int row_index) {
        const Row& row = out.rows[row_index];
        place(row.source);
        place(row.other);
        Part& part = out.parts[out.homes[row.source].part];
        switch (arming_of(row.kind)) {
        case Arming::Pair:
            read_outside(row.source);
            read_outside(row.other);
            out.pairs.push_back(row_index);
            return;
        case Arming::Call:
            read_outside(row.source);
            part.live.push_back({Step::Tensor, row.source, int(row.n)});
            return;
        default:
            (proven(row.source) ? part.proven : part.live).push_back({Step::Check, row_index});
            if (proven(row.source)) out.checks[row.source].push_back(row_index);
        }
    }
};

}  // namespace

Layout make_layout(const Sources& sources, const std::vector<Guard>& guards, std::vector<TensorSpec> specs,
                   const std::vector<int>& wanted) {
    Builder b{sources};
    b.renumbered.resize(size_t(sources.size()));
    for (const Guard& guard : guards) {
        Row row = make_row(guard);
        row.source = b.keep(row.source);
        row.other = b.keep(row.other);
        if (row.kind == GuardKind::Missing) row.n = b.out.sources[row.source].kind == SourceKind::Dict;
        b.out.rows.push_back(std::move(row));
    }
    for (int source : wanted) b.out.wanted.push_back(b.keep(source));
    b.out.specs = std::move(specs);
    b.prepare();
    for (size_t i = 0; i < b.out.rows.size(); ++i) b.add(int(i));
    for (int source : b.out.wanted) {
        b.place(source);
        b.read_outside(source);
    }
    b.out.sources.freeze();
    return std::move(b.out);
}

}  // namespace framejit::guards
