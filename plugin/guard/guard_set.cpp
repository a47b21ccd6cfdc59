// A guard set: parts in order, then the pairs, then the values that the plan wants. explain() walks the rows in the order of the recording.
#include "plugin/guard/part.h"

namespace framejit {

using namespace guards;

struct GuardSet::Impl {
    Layout layout;
    PyRef names;
    Evaluation now;
    std::vector<PyObject*> wanted;
    GuardSetCounts counts;

    bool check(PyObject* const* slots) {
        now.made.clear();
        for (Part& part : layout.parts) {
            if (!part.proven.empty() && !bind(layout, part, now)) return false;
            if (!run(layout, part.live, slots, now)) return false;
        }
        for (int index : layout.pairs) {
            const Row& row = layout.rows[index];
            if (!holds(row, now.value[row.source], now.value[row.other], layout.specs)) return false;
        }
        for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = now.value[layout.wanted[i]];
        return true;
    }
};

namespace {

// Reads sources on demand, remembering nothing beyond one explanation.
struct Reader {
    const Layout& layout;
    PyObject* const* slots;
    std::vector<PyObject*> value;
    std::vector<char> known;
    std::vector<PyRef> made;

    PyObject* read(int i) {
        if (i == 0 || known[i]) return value[i];
        const GuardSource& source = layout.sources[i];
        if (source.kind == SourceKind::Slot)
            value[i] = slots[source.index];
        else
            value[i] = read_source(source, layout.hashes[i], read(source.parent), read(source.other), made);
        known[i] = 1;
        return value[i];
    }
};

}  // namespace

GuardSet::GuardSet(const Sources& sources, std::vector<Guard> guards, std::vector<TensorSpec> specs, std::vector<int> wanted,
                   PyRef slot_names)
    : impl_(std::make_shared<Impl>()) {
    impl_->layout = make_layout(sources, guards, std::move(specs), wanted);
    impl_->names = std::move(slot_names);
    impl_->now.value.resize(size_t(impl_->layout.sources.size()));
    impl_->now.counts = &impl_->counts;
    impl_->wanted.resize(impl_->layout.wanted.size());
}

bool GuardSet::check(PyObject* const* slots) {
    bool holds = impl_->check(slots);
    if (!holds) release();
    return holds;
}

PyObject* const* GuardSet::values() const { return impl_->wanted.data(); }

size_t GuardSet::wanted() const { return impl_->wanted.size(); }

void GuardSet::release() { impl_->now.made.clear(); }

size_t GuardSet::rows() const { return impl_->layout.rows.size(); }

GuardSetCounts GuardSet::counts() const { return impl_->counts; }

Failure GuardSet::explain(PyObject* const* slots) const {
    const Layout& layout = impl_->layout;
    size_t count = size_t(layout.sources.size());
    Reader reader{layout, slots, std::vector<PyObject*>(count), std::vector<char>(count), {}};
    for (const Row& row : layout.rows) {
        PyObject* value = reader.read(row.source);
        PyObject* other = reader.read(row.other);
        if (holds(row, value, other, layout.specs)) continue;
        PyObject* names = impl_->names.get();
        return failure(row, value, other, layout.specs, layout.sources.path(row.source, names), layout.sources.path(row.other, names));
    }
    return {};
}

bool GuardSet::dead() const {
    for (const Row& row : impl_->layout.rows)
        if (!row.alive()) return true;
    return false;
}

void GuardSet::disarm() {
    for (Part& part : impl_->layout.parts) {
        part.bindings.clear();
        part.current = -1;
    }
    impl_->now.made.clear();
}

int GuardSet::traverse(visitproc visit, void* arg) const {
    const Layout& layout = impl_->layout;
    for (int i = 0; i < layout.sources.size(); ++i) Py_VISIT(layout.sources[i].key.get());
    for (const Row& row : layout.rows) {
        Py_VISIT(row.held.get());
        for (const PyRef& part : row.parts) Py_VISIT(part.get());
    }
    Py_VISIT(impl_->names.get());
    for (const PyRef& made : impl_->now.made) Py_VISIT(made.get());
    return 0;
}

}  // namespace framejit
