// Operator schemas, read once per overload from the text that torch prints for them.
// A few operators write to arguments that their schema calls pure; they have rows in kHiddenWrites.
#include "plugin/torch/operators.h"
#include "plugin/torch/torch.h"
#include <algorithm>
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

// ---- the text: "aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]" ----
// Reading it takes a twentieth of the time that torch's Python objects for the same facts take, which a first recording would feel.
using Names = std::set<std::string>;  // alias sets: "a" of Tensor(a!)
struct Item {                         // of the arguments or results
    std::string_view name;
    Names aliases;
    bool writes = false, has_default = false;
};

size_t end_of_list(std::string_view text, size_t begin) {  // where the bracket at `begin` closes
    int depth = 0;
    bool quoted = false;
    for (size_t i = begin; i < text.size(); ++i) {
        if (text[i] == '"') quoted = !quoted;
        if (quoted) continue;
        depth += text[i] == '(' || text[i] == '[';
        depth -= text[i] == ')' || text[i] == ']';
        if (depth == 0) return i;
    }
    return text.size();
}
std::vector<std::string_view> split(std::string_view list) {  // at its own commas
    std::vector<std::string_view> items;
    for (size_t i = 0; i < list.size();) {
        size_t end = i;
        for (bool quoted = false; end < list.size() && (quoted || list[end] != ','); ++end) {
            if (list[end] == '"') quoted = !quoted;
            if (!quoted && (list[end] == '(' || list[end] == '[')) end = end_of_list(list, end);
        }
        items.push_back(list.substr(i, end - i));
        i = end + 2;  // ", "
    }
    return items;
}
// The alias set of a type is the bracket behind its word: a bracket in front is a tuple type.
void read_alias(std::string_view type, Item& item) {
    size_t open = type.find('(', 1);
    if (open == std::string_view::npos || type[open - 1] == ' ') return;
    std::string_view set = type.substr(open + 1, type.find(')', open) - open - 1);
    set = set.substr(0, set.find(" ->"));
    item.writes = set.find('!') != std::string_view::npos;
    set = set.substr(0, set.find('!'));
    while (!set.empty()) {
        size_t bar = std::min(set.find('|'), set.size());
        item.aliases.emplace(set.substr(0, bar));
        set.remove_prefix(std::min(bar + 1, set.size()));
    }
}
Item read_item(std::string_view text) {
    Item item;
    size_t equal = 0;
    while (equal < text.size() && text[equal] != '=')
        equal = text[equal] == '(' || text[equal] == '[' ? end_of_list(text, equal) : equal + 1;
    item.has_default = equal < text.size();
    text = text.substr(0, equal);
    size_t space = text.rfind(' ');
    bool named = space != std::string_view::npos && text.find(')', space) == std::string_view::npos;  // "Tensor(a -> *)" has no name
    if (named) item.name = text.substr(space + 1);
    read_alias(text, item);
    return item;
}
bool overlap(const Names& a, const Names& b) {
    for (auto& name : a)
        if (b.contains(name)) return true;
    return false;
}
bool read_text(std::string_view text, OpSchema& op) {
    size_t open = text.find('('), close = open < text.size() ? end_of_list(text, open) : text.size();
    size_t arrow = text.find(" -> ", close);
    if (arrow == std::string_view::npos) return false;
    op.name = text.substr(0, open);
    std::vector<Item> arguments;
    bool kwarg_only = false;
    for (std::string_view part : split(text.substr(open + 1, close - open - 1))) {
        if (part == "*") {
            kwarg_only = true;
            continue;
        }
        Item item = read_item(part);
        op.args.push_back({.name = std::string(item.name),
                           .has_default = item.has_default,
                           .kwarg_only = kwarg_only,
                           .writes = item.writes,
                           .aliases = !item.aliases.empty()});
        arguments.push_back(std::move(item));
    }
    std::string_view results = text.substr(arrow + 4);
    if (results.starts_with('(')) results = results.substr(1, end_of_list(results, 0) - 1);
    for (std::string_view part : split(results)) {
        Item item = read_item(part);
        int source = -1;
        for (size_t k = 0; k < arguments.size() && source < 0; ++k)
            if (overlap(item.aliases, arguments[k].aliases)) source = int(k);
        op.returns_alias.push_back(source);
    }
    return true;
}

// ---- what the text does not tell ----
bool read_tags(PyObject* overload, OpSchema& op) {
    static PyObject* const tag = PyObject_GetAttrString(torch.module, "Tag");
    if (!tag) return false;
    static const auto number = [](PyObject* t) { return t ? PyLong_AsLong(PyRef::steal(PyNumber_Long(t)).get()) : -1; };
    static const long seeded = number(attribute(tag, "nondeterministic_seeded").get());
    static const long data = number(attribute(tag, "data_dependent_output").get());
    static const long shape = number(attribute(tag, "dynamic_output_shape").get());
    PyRef tags = attribute(overload, "tags");
    PyRef items = tags ? PyRef::steal(PySequence_Fast(tags.get(), "tags")) : PyRef();
    if (!items || PyErr_Occurred()) return false;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
        const long t = number(PySequence_Fast_GET_ITEM(items.get(), i));  // as numbers: comparing the objects takes five times as long
        op.random |= t == seeded;
        op.data_dependent |= t == data || t == shape;
    }
    return !PyErr_Occurred();
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
void read_decomposes(OpSchema& op) {
    static PyObject* const ask = PyObject_GetAttrString(torch.C, "_dispatch_has_kernel_for_dispatch_key");
    static PyObject* const key = [] {  // the enum: its name would be parsed each time
        PyRef keys = attribute(torch.C, "DispatchKey");
        return keys ? attribute(keys.get(), "CompositeImplicitAutograd").release() : nullptr;
    }();
    PyRef answer = PyRef::steal(ask && key ? PyObject_CallFunction(ask, "sO", op.name.c_str(), key) : nullptr);
    op.decomposes = answer && PyObject_IsTrue(answer.get()) == 1;
    if (!answer) PyErr_Clear();  // an operator of TorchScript alone
}

bool read_schema(PyObject* overload, OpSchema& op) {
    PyRef schema = attribute(overload, "_schema");
    PyRef printed = PyRef::steal(schema ? PyObject_Str(schema.get()) : nullptr);
    const char* text = printed ? PyUnicode_AsUTF8(printed.get()) : nullptr;
    if (!text || !read_text(text, op)) return false;
    op.overload = PyRef::share(overload);
    op.callable = attribute(overload, "_op");
    if (!op.callable || !read_tags(overload, op)) return false;
    read_decomposes(op);
    add_hidden_writes(op);
    op.data_dependent |= op.name == "aten::_nested_tensor_from_mask_left_aligned";  // a truth of its data, without the tag
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

bool raises_by_value(std::string_view op) {
    for (const char* start : {"index", "embedding", "gather", "take", "scatter", "nll_loss", "quantile", "nanquantile", "one_hot",
                              "bincount", "floor_divide", "remainder", "fmod", "div.Tensor_mode", "div.Scalar_mode"})
        if (op.starts_with("aten::" + std::string(start))) return true;
    return false;
}
bool never_raises(std::string_view op) {
    // Whole words of a name, or the beginnings that end in `_`.
    static constexpr std::string_view kTotal[] = {
        "mm",           "bmm",       "addmm",   "baddbmm",      "addmv",         "mv",          "dot",          "linear",    "convolution",
        "_convolution", "mkldnn",    "_scaled", "_flash",       "native_",       "max_pool2d",  "avg_",         "adaptive_", "_softmax",
        "_log_softmax", "upsample_", "clone",   "copy",         "_to_copy",      "empty",       "new_",         "cat",       "stack",
        "sort",         "topk",      "cumsum",  "cumprod",      "cummax",        "cummin",      "rand",         "randn",     "randint",
        "randperm",     "uniform",   "dropout", "lift",         "constant_pad_", "reflection_", "replication_", "pixel_",    "batch_norm",
        "_batch_norm",  "cudnn",     "silu",    "gelu",         "exp",           "log",         "add",          "sub",       "mul",
        "sum",          "mean",      "var",     "std",          "arange",        "full",        "zeros",        "ones",      "fill",
        "zero",         "where",     "_fft",    "grid_sampler", "im2col",        "col2im",      "lstm",         "gru",       "roll",
        "flip",         "tril",      "triu"};
    if (!op.starts_with("aten::") || raises_by_value(op)) return false;
    op.remove_prefix(6);
    return std::any_of(std::begin(kTotal), std::end(kTotal), [&](std::string_view start) {
        const bool family = start.back() == '_';
        return op.starts_with(start) && (family || op.size() == start.size() || op[start.size()] == '.' || op[start.size()] == '_');
    });
}

bool draws(const OpSchema& op, PyObject* args, PyObject* kwargs) {
    if (!op.random) return false;
    for (size_t i = 0; i < op.args.size(); ++i) {
        const std::string& name = op.args[i].name;
        if (name != "dropout_p" && name != "train" && name != "training") continue;
        PyObject* given = Py_ssize_t(i) < PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, Py_ssize_t(i))
                          : kwargs                               ? PyDict_GetItemString(kwargs, name.c_str())
                                                                 : nullptr;
        if (!given) given = default_of(op, i);
        if (given && (given == Py_False || (PyFloat_Check(given) && PyFloat_AS_DOUBLE(given) == 0))) return false;
    }
    return true;
}

PyObject* default_of(const OpSchema& op, size_t i) {
    const ArgSchema& argument = op.args[i];
    if (argument.has_default && !argument.default_value) {
        PyRef schema = attribute(op.overload.get(), "_schema");
        PyRef arguments = schema ? attribute(schema.get(), "arguments") : PyRef();
        PyRef row = PyRef::steal(arguments ? PySequence_GetItem(arguments.get(), Py_ssize_t(i)) : nullptr);
        if (row) argument.default_value = attribute(row.get(), "default_value");
        PyErr_Clear();
    }
    return argument.default_value.get();
}

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
