// Evaluating a part in full, arming it, proving it again. The order of words matters: see part.h.
#include "plugin/frame/frame.h"
#include "plugin/guard/part.h"
#include <unordered_set>

namespace framejit::guards {
namespace {

PyObject* key_of(const Part& part, PyObject* root) {
    if (!root || !part.by_type || PyType_Check(root)) return root;
    return reinterpret_cast<PyObject*>(Py_TYPE(root));
}

// Only instances of classes written in Python, and modules, can be given another class.
bool class_can_change(PyObject* o) { return PyModule_CheckExact(o) || (Py_TYPE(o)->tp_flags & Py_TPFLAGS_HEAPTYPE); }

class Armer {
public:
    Armer(const Layout& layout, const Part& part, const Evaluation& now, Binding& binding)
        : layout_(layout), part_(part), now_(now), binding_(binding), tagged_(part.sources.size()) {}

    bool arm(PyObject* key) {
        binding_.key = key;
        binding_.words.clear();
        binding_.owners.clear();
        binding_.segments.clear();
        binding_.values.clear();
        binding_.types.clear();
        binding_.unproved.clear();
        if (part_.root && !part_.by_type) add_word(&now_.value[part_.root]->ob_type);  // a root is known by its address alone
        for (const Step& step : part_.proven)
            if (!(step.op == Step::Check ? row(step.a) : source(step.a))) return false;
        binding_.segments.push_back({binding_.words.size(), nullptr, 0});
        for (int i : part_.sources) {
            PyObject* value = now_.value[i];
            binding_.values.push_back(value);
            binding_.types.push_back(value ? Py_TYPE(value) : nullptr);
        }
        return true;
    }

private:
    template <class T> void add_word(T* const* at, int owner = -1) { add_word(reinterpret_cast<const Word::Loaded*>(at), owner); }
    void add_word(const Word::Loaded* at, int owner) {
        if (owner < 0 && !seen_.insert(at).second)  // many modules of one class share its methods
            return;
        binding_.words.push_back({at, *at});
        binding_.owners.push_back(owner);
    }

    void type_word(int source) {
        PyObject* value = now_.value[source];
        if (source != part_.root && value && class_can_change(value)) add_word(&value->ob_type);
    }

    bool tag_word(int source) {
        char& done = tagged_[layout_.homes[source].local];
        if (done) return true;
        done = 1;
        const uint64_t* tag = dict_version_word(now_.value[source]);
        if (tag) add_word(reinterpret_cast<const Word::Loaded*>(tag), source);
        return tag;
    }

    bool class_version(PyTypeObject* type) {
        for (const Segment& segment : binding_.segments)
            if (segment.type == type) return true;
        uint32_t version = type_version(type);
        binding_.segments.push_back({binding_.words.size(), type, version});
        return version != 0;
    }

    bool source(int i) {
        const GuardSource& s = layout_.sources[i];
        PyObject* parent = now_.value[s.parent];
        if (!parent) return true;  // absent, because its parent is
        switch (s.kind) {
        case SourceKind::Dict:  // another class of the object keeps its dict in the same place
            if (PyObject** slot = dict_slot(parent)) add_word(slot);
            return true;
        case SourceKind::Item: return !PyDict_Check(parent) || tag_word(s.parent);
        case SourceKind::TypeOf: type_word(s.parent); return true;
        case SourceKind::TypeLookup:
            if (PyType_Check(parent)) return class_version(reinterpret_cast<PyTypeObject*>(parent));
            type_word(s.parent);
            return class_version(Py_TYPE(parent));
        default: return s.kind == SourceKind::Const;
        }
    }

    bool row(int index) {
        const Row& row = layout_.rows[index];
        PyObject* value = now_.value[row.source];
        if (!value) return true;  // Missing
        switch (arming_of(row.kind)) {
        case Arming::TypeWord: type_word(row.source); return true;
        case Arming::Contents:
        case Arming::Order: {
            bool reordered_unseen = arming_of(row.kind) == Arming::Order && PyODict_Check(value) && PyDict_GET_SIZE(value) > 1;
            if (PyDict_Check(value) && !reordered_unseen) return tag_word(row.source);
            if (!PyTuple_CheckExact(value) && !PyUnicode_CheckExact(value)) binding_.unproved.push_back(index);
            return true;
        }
        case Arming::Function:
            for (PyObject** field : function_fields(value)) add_word(field);
            return true;
        default: return true;
        }
    }

    const Layout& layout_;
    const Part& part_;
    const Evaluation& now_;
    Binding& binding_;
    std::vector<char> tagged_;  // per Proven source: its dict's tag is among the words
    std::unordered_set<const void*> seen_;
};

// The dict behind a word has another tag. True when all that is guarded in it is as it was.
bool repair(const Layout& layout, Binding& binding, size_t at, Evaluation& now) {
    int owner = binding.owners[at];
    if (owner < 0) return false;
    auto value_of = [&](int source) { return binding.values[layout.homes[source].local]; };
    auto still_hold = [&](int source, PyObject* value) {
        for (int index : layout.checks[source])
            if (!holds(layout.rows[index], value, nullptr, layout.specs)) return false;
        return true;
    };
    PyObject* dict = value_of(owner);
    if (!still_hold(owner, dict)) return false;
    for (int item : layout.items[owner]) {
        PyObject* value = read_source(layout.sources[item], layout.hashes[item], dict, nullptr, now.made);
        bool same = value == value_of(item) && (!value || Py_TYPE(value) == binding.types[layout.homes[item].local]);
        if (!same || !still_hold(item, value)) return false;
    }
    Word& word = binding.words[at];
    word.expected = *word.at;
    ++now.counts->repairs;
    return true;
}

const Word* first_difference(const Word* word, const Word* end) {
    while (word < end && *word->at == word->expected) ++word;
    return word;
}

bool proves(const Layout& layout, Binding& binding, Evaluation& now) {
    const Word* words = binding.words.data();
    const Word* at = words;
    for (const Segment& segment : binding.segments) {
        const Word* end = words + segment.end;
        for (; (at = first_difference(at, end)) < end; ++at)
            if (!repair(layout, binding, size_t(at - words), now)) return false;
        if (segment.type && type_version(segment.type) != segment.version) return false;
    }
    for (int index : binding.unproved) {
        const Row& row = layout.rows[index];
        if (!holds(row, binding.values[layout.homes[row.source].local], nullptr, layout.specs)) return false;
    }
    return true;
}

// Reads all, checks all, and remembers it under `key`. The value array is overwritten, so no binding is current in the meantime.
bool evaluate(const Layout& layout, Part& part, PyObject* key, int reuse, Evaluation& now) {
    part.current = -1;
    ++now.counts->evaluations;
    if (!run(layout, part.proven, nullptr, now)) return false;
    if (part.root && !key) return true;  // nothing to know it by
    bool always_new = reuse < 0 && ++part.misses > 4 * Part::kBindings;
    if (always_new && part.misses % Part::kBindings) return true;  // objects made for every call: remembering them costs more than it saves
    if (reuse < 0 && part.bindings.size() < Part::kBindings) {
        reuse = int(part.bindings.size());
        part.bindings.emplace_back();
    } else if (reuse < 0) {
        reuse = int(part.victim++ % Part::kBindings);
    }
    Binding& binding = part.bindings[reuse];
    if (Armer(layout, part, now, binding).arm(key))
        part.current = reuse;
    else
        part.bindings.erase(part.bindings.begin() + reuse);
    return true;
}

}  // namespace

bool bind(const Layout& layout, Part& part, Evaluation& now) {
    PyObject* key = key_of(part, now.value[part.root]);
    int found = part.current;
    if (found < 0 || part.bindings[found].key != key) {
        found = -1;
        for (size_t i = 0; i < part.bindings.size(); ++i)
            if (part.bindings[i].key == key) found = int(i);
    }
    if (found < 0 || (part.root && !key) || !proves(layout, part.bindings[found], now)) return evaluate(layout, part, key, found, now);
    part.misses = 0;
    if (found != part.current) {
        part.current = found;
        for (int i : part.exports) now.value[i] = part.bindings[found].values[layout.homes[i].local];
    }
    return true;
}

bool run(const Layout& layout, const std::vector<Step>& steps, PyObject* const* slots, Evaluation& now) {
    PyObject** value = now.value.data();
    for (const Step& step : steps) {
        bool ok = true;
        switch (step.op) {
        case Step::Slot: value[step.a] = slots[step.b]; break;
        case Step::Read: {
            const GuardSource& source = layout.sources[step.a];
            value[step.a] = read_source(source, layout.hashes[step.a], value[source.parent], value[source.other], now.made);
            break;
        }
        case Step::Check: {
            const Row& row = layout.rows[step.a];
            ok = holds(row, value[row.source], nullptr, layout.specs);
            break;
        }
        case Step::Tensor: ok = value[step.a] && matches(value[step.a], layout.specs[size_t(step.b)]); break;
        }
        if (!ok) return false;
    }
    return true;
}

}  // namespace framejit::guards
