// Operator schemas as torch's Python objects tell them, read once per overload.
// A few operators write to arguments that their schema calls pure; they have rows in kHiddenWrites.
#include "plugin/torch/operators.h"
#include "plugin/torch/torch.h"
#include <set>
#include <string_view>
#include <unordered_map>

namespace framejit {

namespace {

// `argument` is written when the boolean argument `when` is true (null: always).
struct HiddenWrite {
    std::string_view op, argument, when;
};
constexpr HiddenWrite kHiddenWrites[] = {
    {"aten::native_batch_norm", "running_mean", "training"}, {"aten::native_batch_norm", "running_var", "training"},
    {"aten::cudnn_batch_norm", "running_mean", "training"},  {"aten::cudnn_batch_norm", "running_var", "training"},
    {"aten::miopen_batch_norm", "running_mean", "training"}, {"aten::miopen_batch_norm", "running_var", "training"},
    {"aten::batch_norm_update_stats", "running_mean", ""},   {"aten::batch_norm_update_stats", "running_var", ""},
};

PyRef attribute(PyObject* object, const char* name) { return PyRef::steal(PyObject_GetAttrString(object, name)); }
PyRef method(PyObject* object, const char* name) { return PyRef::steal(PyObject_CallMethod(object, name, nullptr)); }

bool read_text(PyObject* object, const char* name, std::string& text) {
    PyRef value = attribute(object, name);
    const char* utf8 = value ? PyUnicode_AsUTF8(value.get()) : nullptr;
    if (utf8) text = utf8;
    return utf8 != nullptr;
}
bool read_flag(PyObject* object, const char* name, bool& flag) {
    PyRef value = attribute(object, name);
    int truth = value ? PyObject_IsTrue(value.get()) : -1;
    flag = truth == 1;
    return truth >= 0;
}
using Names = std::set<std::string>;  // alias sets: "a" of Tensor(a!)
bool read_alias(PyObject* argument, Names& names, bool& aliases, bool& writes) {
    PyRef info = attribute(argument, "alias_info");
    if (!info) return false;
    aliases = info.get() != Py_None;
    if (!aliases) return true;
    PyRef set = attribute(info.get(), "before_set");
    PyRef items = set ? PyRef::steal(PySequence_List(set.get())) : PyRef();
    if (!items || !read_flag(info.get(), "is_write", writes)) return false;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
        const char* name = PyUnicode_AsUTF8(PyList_GET_ITEM(items.get(), i));
        if (!name) return false;
        names.insert(name);
    }
    return true;
}
// torch keeps the sets of tensor lists to itself; its text has them: "Tensor(a!)[] self", "Tensor(a -> *)". `end`: where the type stands
// before.
Names names_in_text(std::string_view text, size_t end) {
    Names names;
    size_t begin = text.rfind("Tensor(", end);
    if (begin == std::string_view::npos) return names;
    std::string_view set = text.substr(begin + 7, text.find_first_of(")!-", begin + 7) - begin - 7);
    while (!set.empty()) {
        size_t bar = std::min(set.find('|'), set.size());
        std::string_view name = set.substr(0, bar);
        name = name.substr(0, name.find(' '));
        names.insert(std::string(name));
        set.remove_prefix(std::min(bar + 1, set.size()));
    }
    return names;
}
bool overlap(const Names& a, const Names& b) {
    for (auto& name : a)
        if (b.contains(name)) return true;
    return false;
}

bool read_argument(PyObject* argument, const std::string& text, ArgSchema& out, Names& names) {
    if (!read_text(argument, "name", out.name) || !read_flag(argument, "kwarg_only", out.kwarg_only) ||
        !read_alias(argument, names, out.aliases, out.writes))
        return false;
    if (out.aliases && names.empty()) names = names_in_text(text, text.find("] " + out.name));
    PyRef has_default = method(argument, "has_default_value");
    if (!has_default) return false;
    if (has_default.get() == Py_True) out.default_value = attribute(argument, "default_value");
    return has_default.get() != Py_True || out.default_value;
}
bool read_arguments(PyObject* schema, OpSchema& op) {
    PyRef arguments = attribute(schema, "arguments");
    PyRef returns = attribute(schema, "returns");
    PyRef list = arguments ? PyRef::steal(PySequence_List(arguments.get())) : PyRef();
    PyRef results = returns ? PyRef::steal(PySequence_List(returns.get())) : PyRef();
    PyRef printed = PyRef::steal(PyObject_Str(schema));
    const char* utf8 = printed ? PyUnicode_AsUTF8(printed.get()) : nullptr;
    if (!list || !results || !utf8) return false;
    const std::string text = utf8;
    std::vector<Names> sets(size_t(PyList_GET_SIZE(list.get())));
    op.args.resize(sets.size());
    for (size_t i = 0; i < sets.size(); ++i)
        if (!read_argument(PyList_GET_ITEM(list.get(), Py_ssize_t(i)), text, op.args[i], sets[i])) return false;
    size_t at = text.rfind(" -> ") + 4;  // of the result type; these hold no commas inside
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(results.get()); ++i) {
        Names names;
        bool aliases = false, writes = false;
        if (!read_alias(PyList_GET_ITEM(results.get(), i), names, aliases, writes)) return false;
        size_t end = std::min(text.find(", ", at), text.size());
        if (aliases && names.empty()) names = names_in_text(text, end);
        at = end + 2;
        int source = -1;
        for (size_t k = 0; k < sets.size() && source < 0; ++k)
            if (overlap(names, sets[k])) source = int(k);
        op.returns_alias.push_back(source);
    }
    return true;
}

bool read_tags(PyObject* overload, OpSchema& op) {
    PyRef tags = attribute(overload, "tags");
    PyRef items = tags ? PyRef::steal(PySequence_List(tags.get())) : PyRef();
    if (!items) return false;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
        std::string name;
        if (!read_text(PyList_GET_ITEM(items.get(), i), "name", name)) return false;
        op.random |= name == "nondeterministic_seeded";
        op.data_dependent |= name == "data_dependent_output" || name == "dynamic_output_shape";
    }
    return true;
}

void add_hidden_writes(OpSchema& op) {
    auto index_of = [&](std::string_view name) {
        for (size_t i = 0; i < op.args.size(); ++i)
            if (op.args[i].name == name) return int(i);
        return -1;
    };
    for (auto& row : kHiddenWrites) {
        int written = row.op == op.name ? index_of(row.argument) : -1;
        if (written < 0) continue;
        op.args[size_t(written)].writes = true;
        op.args[size_t(written)].writes_when = row.when.empty() ? -1 : index_of(row.when);
    }
}

// Not OpOverload._can_decompose, which counts decompositions written in Python that eager never runs (native_batch_norm).
bool read_decomposes(OpSchema& op) {
    auto ask = [&](const char* key) {
        PyRef answer = PyRef::steal(key ? PyObject_CallMethod(torch.C, "_dispatch_has_kernel_for_dispatch_key", "ss", op.name.c_str(), key)
                                        : PyObject_CallMethod(torch.C, "_dispatch_has_kernel", "s", op.name.c_str()));
        return answer ? PyObject_IsTrue(answer.get()) : -1;
    };
    int known = ask(nullptr);  // operators of TorchScript alone are not
    int composite = known == 1 ? ask("CompositeImplicitAutograd") : 0;
    op.decomposes = composite == 1;
    return known >= 0 && composite >= 0;
}

bool read_schema(PyObject* overload, OpSchema& op) {
    PyRef schema = attribute(overload, "_schema");
    std::string suffix;
    if (!schema || !read_text(schema.get(), "name", op.name) || !read_text(schema.get(), "overload_name", suffix)) return false;
    if (!suffix.empty()) op.name += "." + suffix;
    op.callable = attribute(overload, "_op");
    if (!op.callable || !read_arguments(schema.get(), op) || !read_tags(overload, op)) return false;
    if (!read_decomposes(op)) return false;
    add_hidden_writes(op);
    for (auto& argument : op.args) op.mutates |= argument.writes;
    for (int source : op.returns_alias) op.view |= source >= 0 && !op.mutates;
    return true;
}

PyTypeObject* overload_type() {
    static PyTypeObject* const type = [] {
        PyRef ops = PyRef::steal(PyImport_ImportModule("torch._ops"));
        return ops ? reinterpret_cast<PyTypeObject*>(PyObject_GetAttrString(ops.get(), "OpOverload")) : nullptr;
    }();
    return type;
}

}  // namespace

const OpSchema* schema_of(PyObject* overload) {
    // Overloads live as long as torch does, and so do the rows.
    static auto& known = *new std::unordered_map<PyObject*, std::unique_ptr<OpSchema>>;
    auto found = known.find(overload);
    if (found != known.end()) return found->second.get();
    PyTypeObject* type = overload_type();
    if (!type || !PyObject_TypeCheck(overload, type)) {
        if (type) PyErr_Format(PyExc_TypeError, "%s is no operator overload", Py_TYPE(overload)->tp_name);
        return nullptr;
    }
    auto op = std::make_unique<OpSchema>();
    if (!read_schema(overload, *op)) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, "framejit: unreadable operator schema");
        return nullptr;
    }
    return known.emplace(Py_NewRef(overload), std::move(op)).first->second.get();
}

}  // namespace framejit
