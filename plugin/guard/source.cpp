// The tree of sources: interned, so that equal sources are equal numbers, and printed as the user would write the access.
#include "plugin/guard/guard.h"
#include "plugin/guard/value.h"
#include <cctype>
#include <string_view>

namespace framejit {
namespace {

uint64_t hash_of(const GuardSource& s) {
    uint64_t hash = s.kind == SourceKind::Const ? reinterpret_cast<uintptr_t>(s.key.get()) : hash_value(s.key.get());
    for (uint64_t part : {uint64_t(s.kind), uint64_t(s.parent), uint64_t(s.index), uint64_t(s.other)})
        hash = (hash ^ part) * 0x9e3779b97f4a7c15;
    return hash;
}

bool same_source(const GuardSource& a, const GuardSource& b) {
    if (a.kind != b.kind || a.parent != b.parent || a.index != b.index || a.other != b.other) return false;
    if (a.key.get() == b.key.get()) return true;
    return a.kind != SourceKind::Const && a.key && b.key && same_value(a.key.get(), b.key.get());
}

std::string text_of(PyObject* o) {
    const char* utf8 = o && PyUnicode_Check(o) ? PyUnicode_AsUTF8(o) : nullptr;
    PyErr_Clear();
    return utf8 ? utf8 : print_value(o);
}

bool is_number(std::string_view text) {
    for (char c : text)
        if (!std::isdigit(static_cast<unsigned char>(c))) return false;
    return !text.empty();
}

// self.x, but self[3] for the children that a container module names "3".
std::string member(const std::string& owner, const std::string& name) {
    return is_number(name) ? owner + "[" + name + "]" : owner + "." + name;
}

// Dicts of a module whose items read as attributes of the module.
bool holds_members(std::string_view name) { return name == "_parameters" || name == "_buffers" || name == "_modules"; }

}  // namespace

Sources::Sources() : table_(std::make_unique<FlatMap>()) { rows_.emplace_back(); }

void Sources::freeze() { table_.reset(); }

int Sources::slot(int index) { return intern({SourceKind::Slot, 0, {}, index}); }

int Sources::constant(PyObject* object) { return intern({SourceKind::Const, 0, PyRef::share(object), 0}); }

int Sources::child(SourceKind kind, int parent, PyObject* key, int index) { return intern({kind, parent, PyRef::share(key), index}); }

int Sources::combine(SourceKind kind, int left, int right, int op) { return intern({kind, left, {}, op, right}); }

int Sources::intern(GuardSource source) {
    for (uint64_t hash = hash_of(source) | 1;; hash = (hash * 0x9e3779b97f4a7c15 + 2) | 1) {
        auto [found, fresh] = table_->emplace(hash, size());
        if (fresh) break;
        if (same_source(rows_[*found], source)) return *found;
    }
    if ((source.kind == SourceKind::Attr || source.kind == SourceKind::TypeLookup) && PyUnicode_CheckExact(source.key.get())) {
        PyObject* name = source.key.release();  // type look-ups are cached for interned names
        PyUnicode_InternInPlace(&name);
        source.key = PyRef::steal(name);
    }
    rows_.push_back(std::move(source));
    return size() - 1;
}

namespace {

// What an object that is always there is called: a module or its dict by the module's name, classes and functions by their own.
std::string name_of_constant(PyObject* object) {
    PyObject* dict = PyModule_Check(object) ? PyModule_GetDict(object) : object;
    if (PyDict_Check(dict)) {
        PyObject* name = PyDict_GetItemString(dict, "__name__");
        return name && PyUnicode_Check(name) ? text_of(name) : "globals()";
    }
    if (PyFunction_Check(object)) return text_of(reinterpret_cast<PyFunctionObject*>(object)->func_qualname);
    if (PyType_Check(object)) return name_of_type(reinterpret_cast<PyTypeObject*>(object));
    return PyCFunction_Check(object) ? reinterpret_cast<PyCFunctionObject*>(object)->m_ml->ml_name : print_value(object);
}

constexpr const char* kOperators[] = {"+", "&", "//", "<<", "@", "*", "%", "|", "**", ">>", "-", "/", "^"};
constexpr const char* kComparisons[] = {"<", "<=", "==", "!=", ">", ">="};
constexpr const char* kUnary[] = {"-", "+", "~", "not ", "bool", "int", "float", "abs"};

struct Printer {
    const Sources& sources;
    PyObject* names;

    std::string slot(int index) const {
        if (index < 0) return "function";
        bool named = names && PyTuple_Check(names) && index < PyTuple_GET_SIZE(names);
        if (named) return text_of(PyTuple_GET_ITEM(names, index));
        return "stack[" + std::to_string(index - (names && PyTuple_Check(names) ? PyTuple_GET_SIZE(names) : 0)) + "]";
    }

    // module.name for the item of a globals dict, x.name for an item of x.__dict__, x[key] otherwise
    std::string item(const GuardSource& s) const {
        const GuardSource& parent = sources[s.parent];
        if (!s.key) return path(s.parent) + "[" + std::to_string(s.index) + "]";
        if (PyUnicode_Check(s.key.get())) {
            std::string key = text_of(s.key.get());
            if (parent.kind == SourceKind::Const) return path(s.parent) + "." + key;
            if (parent.kind == SourceKind::Dict) return path(parent.parent) + "." + key;
            bool of_members = parent.kind == SourceKind::Item && parent.key && PyUnicode_Check(parent.key.get()) &&
                              sources[parent.parent].kind == SourceKind::Dict && holds_members(text_of(parent.key.get()));
            if (of_members) return member(path(sources[parent.parent].parent), key);
        }
        return path(s.parent) + "[" + print_value(s.key.get()) + "]";
    }

    std::string path(int i) const {
        const GuardSource& s = sources[i];
        std::string index = "[" + std::to_string(s.index) + "]";
        switch (s.kind) {
        case SourceKind::None: return "nothing";
        case SourceKind::Slot: return slot(s.index);
        case SourceKind::Const: return name_of_constant(s.key.get());
        case SourceKind::Dict: return sources[s.parent].kind == SourceKind::Const ? path(s.parent) : path(s.parent) + ".__dict__";
        case SourceKind::Item: return item(s);
        case SourceKind::Attr: return path(s.parent) + "." + text_of(s.key.get());
        case SourceKind::TypeOf: return "type(" + path(s.parent) + ")";
        case SourceKind::TypeLookup: return lookup(s);
        case SourceKind::ClosureCell: return path(s.parent) + ".__closure__" + index;
        case SourceKind::CellValue:
            return sources[s.parent].kind == SourceKind::ClosureCell ? closure_name(sources[s.parent]) : path(s.parent);
        case SourceKind::Default: return path(s.parent) + ".__defaults__" + index;
        case SourceKind::KwDefault: return path(s.parent) + ".__kwdefaults__[" + print_value(s.key.get()) + "]";
        case SourceKind::MethodSelf: return path(s.parent) + ".__self__";
        case SourceKind::MethodFunc: return path(s.parent) + ".__func__";
        case SourceKind::Len: return "len(" + path(s.parent) + ")";
        case SourceKind::Binary: return "(" + path(s.parent) + " " + kOperators[s.index % 13] + " " + path(s.other) + ")";
        case SourceKind::Compare: return "(" + path(s.parent) + " " + kComparisons[s.index] + " " + path(s.other) + ")";
        case SourceKind::Unary: return std::string(kUnary[s.index]) + "(" + path(s.parent) + ")";
        case SourceKind::Proxied: return path(s.parent);
        case SourceKind::Referent: return path(s.parent) + "()";
        case SourceKind::Cached: return path(s.parent) + "(cached)";
        case SourceKind::Answer: return path(s.parent) + "()";
        case SourceKind::ContextVar: return path(s.parent) + ".get()";
        }
        return "nothing";
    }

    // The variable as the function's code calls it, when the function is known.
    std::string closure_name(const GuardSource& cell) const {
        const GuardSource& function = sources[cell.parent];
        PyObject* known = function.kind == SourceKind::Const ? function.key.get() : nullptr;
        if (known && PyFunction_Check(known)) {
            PyRef free = PyRef::steal(PyCode_GetFreevars(reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(known))));
            if (free && cell.index < PyTuple_GET_SIZE(free.get())) return text_of(PyTuple_GET_ITEM(free.get(), cell.index));
            PyErr_Clear();
        }
        return path(cell.parent) + ".closure[" + std::to_string(cell.index) + "]";
    }

    std::string lookup(const GuardSource& s) const {
        const GuardSource& parent = sources[s.parent];
        bool of_class = parent.kind == SourceKind::TypeOf || parent.kind == SourceKind::Const;
        return (of_class ? path(s.parent) : "type(" + path(s.parent) + ")") + "." + text_of(s.key.get());
    }
};

}  // namespace

std::string Sources::path(int source, PyObject* names) const { return Printer{*this, names}.path(source); }

}  // namespace framejit
