#include "plugin/record/lower.h"
#include "framejit/options.h"
#include "plugin/record/storage.h"
#include "plugin/torch/torch.h"
#include <algorithm>

namespace framejit {
namespace {

constexpr const char* kMetadataOps[] = {"aten::resize_",    "aten::set_",           "aten::as_strided_", "aten::t_",
                                        "aten::transpose_", "aten::squeeze_",       "aten::unsqueeze_",  "aten::swapaxes_",
                                        "aten::swapdims_",  "aten::requires_grad_", "aten::detach_",     "aten::rename_",
                                        "aten::resize_as_", "aten::_resize"};
bool changes_metadata(const std::string& name) {
    for (const char* p : kMetadataOps) {
        size_t n = std::char_traits<char>::length(p);
        if (name.compare(0, n, p) == 0 && (name.size() == n || name[n] == '.')) return true;
    }
    return false;
}
// "aten::add_.Tensor" -> "aten::add.Tensor"
std::string functional_name(const std::string& name) {
    size_t dot = name.find('.', 6), end = dot == name.npos ? name.size() : dot;
    if (end == 0 || name[end - 1] != '_' || name.find("::_") == end - 2) return "";
    return name.substr(0, end - 1) + name.substr(end);
}

class Lowering {
public:
    Lowering(const Recorder& r, const std::vector<int>& wanted, bool only_needed) : r_(r), wanted_(wanted) {
        values_.resize(r.tensors.size());
        int storages = 0;
        for (const TensorRow& t : r.tensors) storages = std::max(storages, t.storage + 1);
        storages_.resize(storages);
        choose(only_needed);
    }
    CapturedGraph run() {
        for (size_t i = 0; i < r_.ops.size() && out_.failure.empty(); ++i) {
            if (!needed_[i]) continue;
            ++out_.ops;
            lower_op(r_.ops[i]);
        }
        if (out_.failure.empty()) finish();
        return std::move(out_);
    }

private:
    const Recorder& r_;
    const std::vector<int>& wanted_;
    CapturedGraph out_;
    std::vector<TensorValue> values_;
    std::vector<StorageState> storages_;
    std::vector<char> needed_;

    void fail(std::string why) {
        if (out_.failure.empty()) out_.failure = std::move(why);
    }
    const TensorRow& row(int t) const { return r_.tensors[t]; }

    void choose(bool only_needed) {
        needed_.assign(r_.ops.size(), !only_needed);
        if (!only_needed) return;
        std::vector<int> work = wanted_;
        std::vector<char> seen(r_.tensors.size());
        for (size_t i = 0; i < work.size(); ++i) {
            int t = work[i];
            if (seen[t]++ || row(t).op < 0) continue;
            needed_[row(t).op] = 1;
            for (int a : r_.ops[row(t).op].tensors) work.push_back(a);
        }
    }

    // ---- storages ----
    static Window window_of(const TensorSpec& s) { return {s.sizes, s.strides, s.offset}; }
    StorageState& storage_of(int t) { return storages_[row(t).storage]; }

    // The memory of a tensor that exists before the graph runs.
    void open_input(int t) {
        StorageState& s = storage_of(t);
        if (s.kind != StorageState::Unset) return;
        const TensorSpec& spec = row(t).spec;
        s.kind = StorageState::Memory;
        s.sizes = spec.sizes;
        s.strides = spec.strides;
        s.offset = spec.offset;
        s.owner = t;
        s.torch_dtype = spec.torch_dtype;
        s.input = int(out_.inputs.size());
        out_.inputs.push_back(t);
        s.base = out_.graph.input(spec.dtype, spec.sizes, spec.strides);
        values_[t] = {s.base, 0};
    }
    // Another tensor on an input's storage: an input of its own as long as nobody writes to the storage.
    void open_alias(int t) {
        const TensorSpec& spec = row(t).spec;
        out_.inputs.push_back(t);
        values_[t] = {out_.graph.input(spec.dtype, spec.sizes, spec.strides), 0};
        aliases_.push_back(t);
    }
    std::vector<int> aliases_;
    int input_of(int t) const {
        for (size_t i = 0; i < out_.inputs.size(); ++i)
            if (out_.inputs[i] == t) return int(i);
        return -1;
    }

    // A fresh tensor computed by the graph.
    void own(int t, Ref value) {
        StorageState& s = storage_of(t);
        const TensorSpec& spec = row(t).spec;
        s = StorageState{StorageState::Value, value, spec.sizes, spec.strides, spec.offset, t, spec.torch_dtype};
        bool dense;
        s.order = memory_order(spec.sizes, spec.strides, dense);
        if (!dense && numel(spec.sizes) > 0) return fail("a result with gaps in memory: " + std::string(name_of(spec.dtype)));
        set_base(s, value);
        values_[t] = {value, s.version};
    }
    void set_base(StorageState& s, Ref value) {
        s.base = identity(s.order) ? value : transpose(value, s.order);
        s.padded = value->op == &op_input || value->op == &op_result;  // a copy: the same value in other memory
        if (!s.padded) return;
        Attrs shape;
        shape.i = s.base->shape;
        shape.i.push_back(1);
        s.base = out_.graph.op("view", {s.base}, shape);
    }
    Ref transpose(Ref v, const std::vector<int>& order) {
        Attrs at;
        at.i.assign(order.begin(), order.end());
        return out_.graph.op("transpose", {v}, at);
    }
    // The owner's logical value from the storage's current base.
    Ref owner_value(const StorageState& s) {
        Ref base = s.base;
        if (s.padded) {
            Attrs shape;
            shape.i = base->shape;
            shape.i.pop_back();
            base = out_.graph.op("view", {base}, shape);
        }
        if (s.kind == StorageState::Memory || identity(s.order)) return base;
        std::vector<int> inverse(s.order.size());
        for (size_t i = 0; i < s.order.size(); ++i) inverse[s.order[i]] = int(i);
        return transpose(base, inverse);
    }
    bool covers(const TensorSpec& spec, const StorageState& s) const {
        return spec.torch_dtype == s.torch_dtype && spec.offset == s.offset && spec.sizes == s.sizes && spec.strides == s.strides;
    }

    Ref value_of(int t) {
        const TensorRow& tr = row(t);
        if (tr.op < 0 && values_[t].version < 0) {
            StorageState& s = storage_of(t);
            if (s.kind == StorageState::Unset) {
                open_input(t);
                if (tr.constant) own(t, Ref(values_[t].value));         // torch.tensor([1.]) is a new tensor in every call
            } else if ((tr.source > 0 || tr.constant) && s.owner != t)  // the owner is asked again after an extern wrote to it
                open_alias(t);
        }
        StorageState& s = storage_of(t);
        if (values_[t].value && values_[t].version == s.version) return values_[t].value;
        if (std::find(aliases_.begin(), aliases_.end(), t) != aliases_.end()) {
            fail("two inputs share memory that the region writes to");
            return values_[t].value;
        }
        if (s.kind != StorageState::Unset && s.torch_dtype != tr.spec.torch_dtype) {
            fail("a view of another dtype of memory that the region holds");
            return nullptr;
        }
        Ref v = nullptr;
        if (covers(tr.spec, s))
            v = owner_value(s);
        else if (tr.op >= 0 && r_.ops[tr.op].schema->view)
            v = view_again(r_.ops[tr.op], tr.result);
        if (!v) v = strided_look(tr.spec, s);
        if (!v) {
            fail("a view that cannot be expressed: " + (tr.op >= 0 ? r_.ops[tr.op].schema->name : std::string("of an input")));
            return nullptr;
        }
        values_[t] = {v, s.version};
        return v;
    }
    Ref strided_look(const TensorSpec& spec, const StorageState& s) {
        if (s.kind == StorageState::Unset || !s.base) return nullptr;
        bool dense;
        std::vector<int> order = memory_order(s.sizes, s.strides, dense);
        if (!dense) return nullptr;
        Ref flat = s.base;
        if (s.kind == StorageState::Memory && !identity(order)) flat = transpose(flat, order);
        Attrs shape;
        shape.i = {numel(s.sizes)};
        flat = out_.graph.op("view", {flat}, shape);
        int64_t last = spec.offset - s.offset;  // of the elements that belong to the owner; others are no part of the graph
        for (size_t d = 0; d < spec.sizes.size(); ++d) last += std::max<int64_t>(spec.sizes[d] - 1, 0) * spec.strides[d];
        if (spec.offset < s.offset || last >= numel(s.sizes)) return nullptr;
        Attrs at;
        at.i.push_back(spec.offset - s.offset);
        at.i.insert(at.i.end(), spec.sizes.begin(), spec.sizes.end());
        at.i.insert(at.i.end(), spec.strides.begin(), spec.strides.end());
        return out_.graph.op("as_strided", {flat}, at);
    }
    Ref view_again(const OpRow& op, int result) {
        auto refs = apply_rule(op, op.schema->name);
        return refs && size_t(result) < refs->size() ? (*refs)[result] : nullptr;
    }

    // ---- operators ----
    Arg argument(PyObject* o, const std::vector<Ref>& tensors) {
        int index;
        if (!o || o == Py_None) return {};
        if (is_placeholder(o, &index)) return {tensors[index]};
        if (PyBool_Check(o)) return {o == Py_True};
        if (PyLong_Check(o)) {
            int overflow;
            int64_t v = PyLong_AsLongLongAndOverflow(o, &overflow);
            return {v};
        }
        if (PyFloat_Check(o)) return {PyFloat_AS_DOUBLE(o)};
        if (PyUnicode_Check(o)) return {std::string(PyUnicode_AsUTF8(o))};
        if (int code = torch_code(o); code >= 0) return {dtype_of_torch(code)};
        if (PyTuple_Check(o) || PyList_Check(o)) return list_argument(o, tensors);
        PyRef text = PyRef::steal(PyObject_Str(o));
        if (!text) PyErr_Clear();
        return {std::string(text ? PyUnicode_AsUTF8(text.get()) : "?")};
    }
    Arg list_argument(PyObject* o, const std::vector<Ref>& tensors) {
        PyObject** items = PySequence_Fast_ITEMS(o);
        Py_ssize_t n = Py_SIZE(o);
        bool any_tensor = false, any_float = false;
        for (Py_ssize_t i = 0; i < n; ++i) {
            any_tensor = any_tensor || is_placeholder(items[i], nullptr);
            any_float = any_float || PyFloat_Check(items[i]);
        }
        if (any_tensor) {
            std::vector<Ref> refs;
            for (Py_ssize_t i = 0; i < n; ++i) {
                int index;
                refs.push_back(is_placeholder(items[i], &index) ? tensors[index] : nullptr);  // null: None, as in index(x, [None, i])
            }
            return {refs};
        }
        if (any_float) {
            std::vector<double> v;
            for (Py_ssize_t i = 0; i < n; ++i) v.push_back(PyFloat_AsDouble(items[i]));
            return {v};
        }
        std::vector<int64_t> v;
        for (Py_ssize_t i = 0; i < n; ++i) v.push_back(PyLong_Check(items[i]) ? PyLong_AsLongLong(items[i]) : 0);
        PyErr_Clear();
        return {v};
    }
    // A Python number as an input; the operator converts it to its tensor's type.
    Ref scalar_input(const OpRow& op) {
        Ref& input = scalars_[op.scalar];
        if (!input) {
            out_.inputs.push_back(~op.scalar);
            input = out_.graph.input(op.scalar_is_float ? DType::f64 : DType::i64, {}, {});
        }
        DType d = row(op.tensors[0]).spec.dtype;
        if (input->dtype == d) return input;
        Attrs at;
        at.i = {int64_t(d)};
        return out_.graph.op("cast", {input}, at);
    }
    std::unordered_map<int, Ref> scalars_;
    std::vector<Arg> arguments(const OpRow& op) {
        std::vector<Ref> tensors;
        for (int t : op.tensors) tensors.push_back(value_of(t));
        std::vector<Arg> args;
        Py_ssize_t given = PyTuple_GET_SIZE(op.args.get());
        for (size_t i = 0; i < op.schema->args.size(); ++i) {
            const ArgSchema& a = op.schema->args[i];
            PyObject* v = nullptr;
            if (Py_ssize_t(i) < given)
                v = PyTuple_GET_ITEM(op.args.get(), i);
            else if (op.kwargs)
                v = PyDict_GetItemString(op.kwargs.get(), a.name.c_str());
            args.push_back(i == 1 && op.scalar ? Arg{scalar_input(op)} : argument(v ? v : default_of(*op.schema, i), tensors));
        }
        return args;
    }
    std::optional<std::vector<Ref>> apply_rule(const OpRow& op, const std::string& name) {
        const AtenRule* rule = name.empty() ? nullptr : find_aten(name);
        if (!rule || (!rule->view && !option_on(Option::kernels))) return std::nullopt;
        for (int t : op.tensors)
            if (!computable(row(t).spec.dtype) || row(t).spec.device_type != 0 || is_lazy(row(t).spec.key_set)) return std::nullopt;
        std::vector<Meta> meta;
        for (int t : op.results) {
            if (t < 0 || !computable(row(t).spec.dtype) || row(t).spec.device_type != 0) return std::nullopt;
            meta.push_back({row(t).spec.dtype, row(t).spec.sizes});
        }
        std::vector<Arg> args = arguments(op);
        if (!out_.failure.empty()) return std::nullopt;
        std::optional<std::vector<Ref>> refs;
        try {
            refs = rule->lower(out_.graph, args, meta);
        } catch (const std::exception& e) {
            out_.mistakes.push_back(name + ": " + e.what());
            return std::nullopt;
        }
        if (!refs) return std::nullopt;
        for (size_t i = 0; i < refs->size() && i < meta.size(); ++i)
            if ((*refs)[i] && ((*refs)[i]->dtype != meta[i].dtype || (*refs)[i]->shape != meta[i].shape)) {
                out_.mistakes.push_back(name + ": the rule's dtype or shape differs from the recorded result");
                return std::nullopt;
            }
        if (refs->size() != meta.size()) return std::nullopt;
        return refs;
    }
    // The result that looks at an argument's memory with another dtype, or -1.
    int other_dtype(const OpRow& op) const {
        for (int t : op.results)
            for (int a : op.tensors)
                if (t >= 0 && row(a).storage == row(t).storage && row(a).spec.torch_dtype != row(t).spec.torch_dtype) return t;
        return -1;
    }
    bool aliases_argument(const OpRow& op) const {
        for (int t : op.results)
            if (t >= 0)
                for (int a : op.tensors)
                    if (row(a).storage == row(t).storage) return true;
        return false;
    }
    // What an operator writes for certain (its arguments with an alias mark, less those whose condition is off).
    std::vector<int> written_arguments(const OpRow& op) {
        std::vector<int> rows;
        Py_ssize_t given = PyTuple_GET_SIZE(op.args.get());
        auto value = [&](size_t i) -> PyObject* {
            if (Py_ssize_t(i) < given) return PyTuple_GET_ITEM(op.args.get(), i);
            PyObject* v = op.kwargs ? PyDict_GetItemString(op.kwargs.get(), op.schema->args[i].name.c_str()) : nullptr;
            return v ? v : default_of(*op.schema, i);
        };
        for (size_t i = 0; i < op.schema->args.size(); ++i) {
            const ArgSchema& a = op.schema->args[i];
            if (!a.writes) continue;
            if (a.writes_when >= 0 && value(a.writes_when) == Py_False) continue;
            PyObject* v = value(i);
            int index;
            if (v && is_placeholder(v, &index))
                rows.push_back(op.tensors[index]);
            else if (v && (PyTuple_Check(v) || PyList_Check(v)))
                for (Py_ssize_t k = 0; k < Py_SIZE(v); ++k)
                    if (is_placeholder(PySequence_Fast_ITEMS(v)[k], &index)) rows.push_back(op.tensors[index]);
        }
        return rows;
    }

    void lower_op(const OpRow& op) {
        const OpSchema& schema = *op.schema;
        if (changes_metadata(schema.name)) {
            if (op.results.size() != 1 || op.tensors.empty() || op.results[0] == op.tensors[0])
                return fail(schema.name + " changes a tensor's metadata in place");
            value_of(op.tensors[0]);  // the same object with another look at its memory: a row of its own
            if (out_.failure.empty()) value_of(op.results[0]);
            return;
        }
        if (op.random) ++out_.random;
        std::vector<int> writes = written_arguments(op);
        if (!writes.empty()) return lower_mutation(op, writes);
        if (int t = other_dtype(op); t >= 0) {  // view_as_real: torch's own view of memory that nobody may write to from now on
            lower_extern(op, -1);
            aliases_.push_back(t);
            return;
        }
        if (schema.view || aliases_argument(op)) {
            for (int t : op.tensors) value_of(t);
            if (!out_.failure.empty()) return;
            auto refs = schema.view ? apply_rule(op, schema.name) : std::nullopt;
            for (size_t i = 0; i < op.results.size(); ++i) {
                int t = op.results[i];
                if (t < 0 || values_[t].value) continue;
                if (refs && i < refs->size() && (*refs)[i])
                    values_[t] = {(*refs)[i], storage_of(t).version};
                else
                    value_of(t);
            }
            return;
        }
        if (!op.random)
            if (auto refs = apply_rule(op, schema.name)) {
                ++out_.fused;
                if (raises_by_value(schema.name)) out_.checked_uses.push_back(use_of(op));
                for (size_t i = 0; i < op.results.size(); ++i) own(op.results[i], (*refs)[i]);
                return;
            }
        if (op.scalar) return fail(op.schema->name + " with a number that changes has no rule");
        if (out_.failure.empty()) lower_extern(op, -1);
    }
    void lower_mutation(const OpRow& op, const std::vector<int>& writes) {
        if (writes.size() > 1) return fail(op.schema->name + " writes several tensors");
        int target = writes[0];
        value_of(target);
        if (!out_.failure.empty()) return;
        if (std::find(aliases_.begin(), aliases_.end(), target) != aliases_.end())
            return fail("two inputs share memory that the region writes to");
        if (may_overlap(row(target).spec.sizes, row(target).spec.strides)) return fail("a write through a view that overlaps itself");
        StorageState& s = storage_of(target);
        bool self = op.results.size() == 1 && (op.results[0] == target || op.results[0] < 0);
        if (covers(row(target).spec, s) && self && !op.random && computable(row(target).spec.dtype)) {
            OpRow pure = op;
            pure.results = {target};
            if (auto refs = apply_rule(pure, functional_name(op.schema->name))) {
                ++out_.fused;
                return write(target, (*refs)[0]);
            }
        }
        if (out_.failure.empty()) lower_extern(op, target);
    }
    // The storage gets a new value.
    void write(int t, Ref value) {
        StorageState& s = storage_of(t);
        ++s.version;
        s.written = true;
        if (s.kind == StorageState::Memory) {
            bool dense;
            s.order = memory_order(s.sizes, s.strides, dense);
            if (!dense) return fail("an in-place operator on a tensor with gaps or overlaps in memory");
            s.kind =
                StorageState::Value;  // until the end; then it goes back into the memory of input `s.input` (or of the extern's result)
        }
        set_base(s, value);
        values_[t] = {value, s.version};
    }

    // ---- externs ----
    void lower_extern(const OpRow& op, int target) {
        ExternCall call;
        call.id = int(out_.externs.size());
        call.name = op.schema->name;
        call.raises = !never_raises(call.name);
        std::vector<Ref> in;
        std::vector<int> order;
        if (target >= 0) {
            if (op.tensors.empty() || op.tensors[0] != target) {
                auto at = std::find(op.tensors.begin(), op.tensors.end(), target);
                if (at == op.tensors.end()) return fail("an operator writes something that is no argument");
                if (at != op.tensors.begin()) return fail(op.schema->name + " writes an argument that is not its first");
            }
            if (!op.schema->args[0].writes)  // out= names its first argument
                return fail(op.schema->name + " writes an argument that is not its first");
            call.mutates = true;
        }
        for (int t : op.tensors) {
            value_of(t);
            if (!out_.failure.empty()) return;
            auto [base, window] = memory_of(t);
            if (!base && t != target) std::tie(base, window) = written_down(t);
            if (!base) return fail("an argument of " + op.schema->name + " has no memory of its own");
            in.push_back(base);
            call.args.push_back(window);
        }
        if (target >= 0) {
            bool memory = in[0]->op == &op_input || in[0]->op == &op_result;
            Shape strides = memory ? Shape(in[0]->at.i.begin() + 1, in[0]->at.i.end()) : contiguous_strides(in[0]->shape);
            call.results.push_back({in[0]->shape, strides, 0});
            call.dtypes.push_back(in[0]->dtype);
        }
        for (int t : op.results) {
            if (target >= 0 && t == target) continue;
            if (t >= 0 && target >= 0 && row(t).storage == row(target).storage) continue;
            call.results.push_back(t >= 0 ? Window{row(t).spec.sizes, row(t).spec.strides, 0} : Window{});
            call.dtypes.push_back(t >= 0 ? row(t).spec.dtype : DType::other);
        }
        Extern ext(op.overload.get(), op.args.get(), op.kwargs.get());
        if (!ext.valid()) {
            PyErr_Clear();
            return fail(op.schema->name + " cannot be called again");
        }
        out_.externs.push_back(std::move(ext));
        out_.extern_uses.push_back(use_of(op));
        Ref node = out_.graph.extern_call(call, in);
        int k = 0;
        if (target >= 0) written_by_extern(target, out_.graph.result(node, k++));
        for (int t : op.results) {
            if (target >= 0 && (t == target || (t >= 0 && row(t).storage == row(target).storage))) continue;
            if (t >= 0) adopt(t, out_.graph.result(node, k));
            ++k;
        }
    }
    void adopt(int t, Ref result) {  // memory that an extern made
        StorageState& s = storage_of(t);
        const TensorSpec& spec = row(t).spec;
        if (s.kind != StorageState::Unset) {  // a second result on the same memory
            values_[t] = {result, s.version};
            return;
        }
        s = StorageState{StorageState::Memory, result, spec.sizes, spec.strides, spec.offset, t, spec.torch_dtype};
        values_[t] = {result, 0};
    }
    void written_by_extern(int t, Ref base) {
        StorageState& s = storage_of(t);
        ++s.version;
        s.written = true;
        s.base = base;
        values_[t] = {nullptr, -1};
    }
    // Memory that holds tensor t now, and the window of t on it.
    std::pair<Ref, Window> memory_of(int t) {
        if (std::find(aliases_.begin(), aliases_.end(), t) != aliases_.end())
            return {values_[t].value, Window{row(t).spec.sizes, row(t).spec.strides, 0}};
        StorageState& s = storage_of(t);
        const TensorSpec& spec = row(t).spec;
        if (spec.offset < s.offset || spec.torch_dtype != s.torch_dtype) return {nullptr, {}};
        return {s.base, Window{spec.sizes, spec.strides, spec.offset - s.offset}};
    }

    // A value that has no memory here (view_as_real of an extern's result, flattened): computed into memory of its own, for reading, with
    // the strides it had. Dimensions of stride 0 are one element there. Null: not dense otherwise.
    std::pair<Ref, Window> written_down(int t) {
        const TensorSpec& spec = row(t).spec;
        Ref v = values_[t].value;
        Shape sizes = spec.sizes;
        for (size_t d = 0; d < sizes.size(); ++d) {
            if (spec.strides[d] != 0 || sizes[d] <= 1) continue;
            Attrs at;
            at.i = {int64_t(d), 0, sizes[d] = 1, 1};
            v = out_.graph.op("slice", {v}, at);
        }
        bool dense;
        const std::vector<int> order = memory_order(sizes, spec.strides, dense);
        if (!dense) return {};
        return {identity(order) ? v : transpose(v, order), Window{spec.sizes, spec.strides, 0}};
    }

    // ---- what must exist afterwards ----
    void finish() {
        for (size_t i = 0; i < storages_.size(); ++i) {  // inputs that were written
            StorageState& s = storages_[i];
            if (!s.written || s.input < 0) continue;
            out_.written.push_back(s.input);
            if (s.kind == StorageState::Value) out_.graph.outputs.push_back({owner_value(s), s.input});
            for (int t : aliases_)
                if (row(t).storage == int(i)) return fail("two inputs share memory that the region writes to");
        }
        std::vector<int> output_of(storages_.size(), -1);
        for (int t : wanted_) out_.tensors.push_back(place(t, output_of));
    }
    CapturedTensor place(int t, std::vector<int>& output_of) {
        CapturedTensor out;
        value_of(t);
        if (!out_.failure.empty()) return out;
        StorageState& s = storage_of(t);
        const TensorSpec& spec = row(t).spec;
        out.torch_dtype = spec.torch_dtype;
        out.window = {spec.sizes, spec.strides, spec.offset - s.offset};
        out.whole = t == s.owner;
        PyObject* now = PyWeakref_GET_OBJECT(row(t).weak.get());  // autograd marks a result after the mode has seen it
        const bool with_grad = now != Py_None ? view_of(now).requires_grad : spec.requires_grad;
        if (row(t).op >= 0 && s.input < 0 && with_grad) fail("a new tensor that requires grad");
        out.detached = s.input >= 0 && !with_grad && row(out_.inputs[s.input]).spec.requires_grad;
        if (spec.torch_dtype != s.torch_dtype) fail("a result that is a view of another dtype");
        if (int alias = row(t).constant ? -1 : input_of(t); alias >= 0) {
            out.kind = CapturedTensor::Input;
            out.index = alias;
            out.whole = true;
            return out;
        }
        if (s.input >= 0) {
            out.kind = CapturedTensor::Input;
            out.index = s.input;
            return out;
        }
        if (spec.offset < s.offset) fail("a result that begins before its storage's owner");
        int& index = output_of[row(t).storage];
        if (index < 0) {
            index = int(out_.graph.outputs.size());
            out_.graph.outputs.push_back({s.base, -1, s.kind == StorageState::Memory});
        }
        out.index = index;
        return out;
    }
};

}  // namespace

CapturedGraph lower(const Recorder& r, const std::vector<int>& wanted, bool only_needed) {
    try {
        return Lowering(r, wanted, only_needed).run();
    } catch (const std::exception& e) {  // a rule's mistake: ours, reported
        CapturedGraph failed;
        failed.failure = std::string("a bug of framejit while building the graph: ") + e.what();
        failed.mistakes.push_back(failed.failure);
        return failed;
    }
}

}  // namespace framejit
