// The operator log: an object on torch's dispatch-mode stack sees every operator, calls it and notes it. Rows hold numbers and weak
// references, never tensors. Storage numbers say which rows share memory: decided when an operator returns, while its arguments are alive.
#include "plugin/clock.h"
#include "plugin/interpret/members.h"
#include "plugin/record/kinds.h"
#include "plugin/record/recorder.h"
#include "plugin/torch/internals.h"
#include <algorithm>
#include <cstring>

namespace framejit {

thread_local Recorder* active_recorder = nullptr;
thread_local long idle_operators = 0;
namespace {
PyObject *push_function, *pop_function, *mode, *top_of_stack;
PyCodeObject* rule_code;
constexpr int64_t kMaxGuardedData = 1024;  // elements
constexpr int kMaxGuardedOps = 64;
constexpr int kMaxDeferredAtOnePlace = 8;
}  // namespace

TensorRow* Recorder::tensor_row(PyObject* t) {
    int i = tensor_number(t);
    return i < 0 ? nullptr : &tensors[i];
}
int Recorder::tensor_number(PyObject* t) {
    int* i = tensor_at_.find(t);
    return i && PyWeakref_GET_OBJECT(tensors[*i].weak.get()) == t ? *i : -1;
}
int Recorder::storage_number(const void* address, const std::vector<int>* among) {
    int* known = storage_at_.find(address ? address : (const void*)8);
    if (known && address) {
        bool same = false;  // a freed storage's address may belong to a new one: somebody who has it must be alive
        if (among) {
            for (int r : *among) same = same || (r >= 0 && tensors[r].storage == *known);
        } else {
            for (size_t r = tensors.size(); r-- > 0 && !same;)
                same = tensors[r].storage == *known && PyWeakref_GET_OBJECT(tensors[r].weak.get()) != Py_None;
        }
        if (same) return *known;
    }
    int number = int(storage_owner_.size());
    storage_owner_.push_back(int(tensors.size()));
    if (address) storage_at_.put(address, number);
    return number;
}
bool Recorder::made_inside(const void* storage) {
    const int* known = storage_at_.find(storage);
    return known && tensors[storage_owner_[*known]].op >= 0;
}
// The row of a tensor. `result`: an operator has just returned it (the caller sets op and storage).
int Recorder::note_tensor(PyObject* t, bool result) {
    if (int i = tensor_number(t); i >= 0) return i;
    TensorRow row;
    row.weak = PyRef::steal(PyWeakref_NewRef(t, nullptr));
    row.spec = spec_of(t);
    if (!result) {
        row.storage = storage_number(view_of(t).storage, nullptr);
    }
    tensors.push_back(std::move(row));
    int i = int(tensors.size()) - 1;
    tensor_at_.put(t, i);
    return i;
}

// Whether it holds for all tensors of an operator's arguments or results.
static bool all_of(PyObject* o, bool (*holds)(PyObject*)) {
    if (is_tensor(o)) return holds(o);
    if (PyTuple_Check(o) || PyList_Check(o))
        for (Py_ssize_t i = 0; i < Py_SIZE(o); ++i)
            if (!all_of(PySequence_Fast_ITEMS(o)[i], holds)) return false;
    return true;
}
// A copy of an operator's arguments with placeholders in place of tensors.
PyRef Recorder::with_placeholders(PyObject* o, std::vector<int>& rows) {
    if (is_tensor(o)) {
        int i = tensor_number(o);
        if (i < 0) {
            i = note_tensor(o, false);
            TensorRow& row = tensors[i];
            if (row.source <= 0) {
                bool alias =
                    storage_owner_[row.storage] != i;  // made without an operator from a tensor that is known (.data, Parameter(x))
                if (!alias && (row.spec.sizes.empty() || lifting_))
                    row.constant = PyRef::steal(PyObject_CallMethod(o, "clone", nullptr));  // as it is now: the region may write to it
                else if (!alias)
                    note_break(break_unknown_tensor, o);
            }
        }
        if (tensors[i].source > 0) guard_tensor(o, tensors[i].source);
        rows.push_back(i);
        return PyRef::steal(make_placeholder(int(rows.size()) - 1));
    }
    if (PyTuple_Check(o) && !plain_c_value(o)) {
        PyRef copy = PyRef::steal(PyTuple_New(PyTuple_GET_SIZE(o)));
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i)
            PyTuple_SET_ITEM(copy.get(), i, with_placeholders(PyTuple_GET_ITEM(o, i), rows).release());
        return copy;
    }
    if (PyList_CheckExact(o)) {
        PyRef copy = PyRef::steal(PyList_New(PyList_GET_SIZE(o)));
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(o); ++i)
            PyList_SET_ITEM(copy.get(), i, with_placeholders(PyList_GET_ITEM(o, i), rows).release());
        return copy;
    }
    if (PyDict_CheckExact(o)) {
        PyRef copy = PyRef::steal(PyDict_New());
        PyObject *k, *v;
        Py_ssize_t pos = 0;
        while (PyDict_Next(o, &pos, &k, &v)) PyDict_SetItem(copy.get(), k, with_placeholders(v, rows).get());
        return copy;
    }
    return PyRef::share(o);
}
void Recorder::flatten_results(PyObject* o, std::vector<int>& rows) {
    if (is_tensor(o)) {
        int i = tensor_number(o);
        if (i < 0) i = note_tensor(o, true);
        rows.push_back(i);
    } else if (PyTuple_Check(o) || PyList_Check(o))
        for (Py_ssize_t i = 0; i < Py_SIZE(o); ++i) flatten_results(PySequence_Fast_ITEMS(o)[i], rows);
    else
        rows.push_back(-1);
}
void Recorder::note_op(PyObject* overload, PyObject* args, PyObject* kwargs, PyObject* result) {
    if (broken_) return;
    const OpSchema* schema = schema_of(overload);
    if (!schema) {
        PyErr_Clear();
        return note_break(break_higher_order);
    }
    if (!all_of(args, is_strided_tensor) || !all_of(result, is_strided_tensor)) return note_break(break_layout);
    if (!all_of(result, [](PyObject* t) { return !is_lazy(view_of(t).key_set); })) return note_break(break_layout);
    OpRow op;
    op.schema = schema;
    op.overload = PyRef::share(overload);
    op.random = draws(*schema, args, kwargs);
    lifting_ = schema->name.rfind("aten::lift", 0) == 0;
    op.args = with_placeholders(args, op.tensors);
    if (kwargs) op.kwargs = with_placeholders(kwargs, op.tensors);
    lifting_ = false;
    if (grad_enabled())
        for (int t : op.tensors)
            if (tensors[t].spec.requires_grad)
                fail("gradients: operators on tensors that require grad stay eager until training is supported (for inference, call it "
                     "under "
                     "torch.no_grad())");
    if (op.tensors.size() == 1 && is_tensor(result) && tensor_number(result) == op.tensors[0] && tensors[op.tensors[0]].source <= 0 &&
        !matches(result, tensors[op.tensors[0]].spec))
        tensor_at_.put(result, FlatMap::kDead);  // as_strided_ and its kind: from now on the object is another row
    size_t known = tensors.size();
    flatten_results(result, op.results);
    take_scalar(op);
    op.code = now ? code_of(now) : nullptr;
    op.unit = now ? unit_of(now) : 0;
    int k = 0;
    auto values = [&](auto&& self, PyObject* o) -> void {  // rows of new results get their maker and storage while everything is alive
        if (is_tensor(o)) {
            int i = op.results[k];
            if (size_t(i) >= known && tensors[i].op < 0) {
                tensors[i].op = int(ops.size());
                tensors[i].result = k;
                tensors[i].storage = storage_number(view_of(o).storage, &op.tensors);
            }
            ++k;
        } else if (PyTuple_Check(o) || PyList_Check(o))
            for (Py_ssize_t i = 0; i < Py_SIZE(o); ++i) self(self, PySequence_Fast_ITEMS(o)[i]);
        else
            ++k;
    };
    values(values, result);
    if (schema->data_dependent && !guard_shape(op)) return note_break(break_dynamic_shape);
    ops.push_back(std::move(op));
}

// An operator whose result's shape depends on data: small integers and masks that follow from the inputs are guarded as if Python had
// looked at them, and the shape is theirs. False: a break is needed. With integer indices the shape of index.Tensor is known.
bool Recorder::guard_shape(const OpRow& op) {
    bool indexing = op.schema->name == "aten::index.Tensor";
    for (size_t k = indexing ? 1 : 0; k < op.tensors.size(); ++k) {
        const TensorRow& row = tensors[op.tensors[k]];
        bool mask = row.spec.dtype == DType::b1 || row.spec.dtype == DType::u8;
        bool values_only = op.schema->name == "aten::masked_select" && k == 0;
        if ((indexing && !mask) || values_only) continue;
        PyObject* t = row.constant ? row.constant.get() : PyWeakref_GET_OBJECT(row.weak.get());
        if (t == Py_None || !guard_data(t)) return false;
    }
    return true;
}

// The number that Python combined with a tensor, as the operator's second argument: an input of the graph. Only where the conversion to the
// tensor's type is the operator's own (float32 and float64), so that the result stays eager's.
void Recorder::take_scalar(OpRow& op) {
    if (!scalar_ || op.tensors.size() != 1 || op.results.size() > 1 || PyTuple_GET_SIZE(op.args.get()) < 2) return;
    static const char* const allowed[] = {"aten::add.Tensor", "aten::sub.Tensor", "aten::mul.Tensor", "aten::div.Tensor"};
    bool known = false;
    for (const char* a : allowed) known = known || op.schema->name == a;
    DType d = tensors[op.tensors[0]].spec.dtype;
    PyObject* v = PyTuple_GET_ITEM(op.args.get(), 1);
    if (!known || (d != DType::f32 && d != DType::f64) || Py_TYPE(v) != Py_TYPE(scalar_.get()) ||
        !is_placeholder(PyTuple_GET_ITEM(op.args.get(), 0), nullptr))
        return;
    if (PyObject_RichCompareBool(v, scalar_.get(), Py_EQ) != 1) return PyErr_Clear();
    op.scalar = scalar_shadow_;
    numbers[op.scalar] = scalar_;
    op.scalar_is_float = PyFloat_CheckExact(v);
    scalar_ = {};
}

bool Recorder::data_inside(PyObject* v, bool integers) {
    if (is_tensor(v)) {
        if (!integers || is_float(view_of(v).dtype)) return true;
        if (int s = tensor_number(v) < 0 ? lookup(v, false) : int(Internal); s > 0) guard_tensor(v, s);
        return guard_data(v);
    }
    if (!PyList_Check(v) && !PyTuple_CheckExact(v)) return true;
    for (Py_ssize_t i = 0; i < Py_SIZE(v); ++i) {
        PyObject* x = PySequence_Fast_ITEMS(v)[i];
        if (is_tensor(x) && !integers) {
            if (int s = tensor_number(x) < 0 ? lookup(x, false) : int(Internal); s > 0) guard_tensor(x, s);
            if (!guard_data(x)) return false;
        } else if (!data_inside(x, integers))
            return false;
    }
    return true;
}
// Only integer inputs, a few operators without effects. Guards the inputs.
bool Recorder::follows_from_integers(int row) {
    std::vector<int> work = {row};
    std::unordered_set<int> seen;
    int count = 0;
    for (size_t i = 0; i < work.size(); ++i) {
        const TensorRow& r = tensors[work[i]];
        if (!seen.insert(work[i]).second) continue;
        if (r.source > 0) {
            if (is_float(r.spec.dtype)) return false;
            if (PyObject* input = PyWeakref_GET_OBJECT(r.weak.get()); input != Py_None) guard_tensor(input, r.source);
            continue;
        }
        if (r.op < 0) {
            if (!r.constant) return false;
            continue;
        }
        const OpRow& op = ops[r.op];
        if (op.schema->mutates || op.random || ++count > kMaxGuardedOps) return false;
        for (int a : op.tensors) work.push_back(a);
    }
    for (const OpRow& op : ops)  // a later write into what the value came from would have to be replayed too
        if (op.schema->mutates)
            for (int a : op.tensors)
                for (int used : seen)
                    if (tensors[a].storage == tensors[used].storage) return false;
    return true;
}
// Checks, as programs write them: any(), all(), their opposites, equality of integers. A comparison decides something and may go either
// way: a break. Nor the condition of a loop, which would unroll for ever.
bool Recorder::may_defer(int row) const {
    const OpSchema* made_by = nullptr;
    int made_from = row;
    while (tensors[made_from].spec.dtype == DType::b1 && tensors[made_from].op >= 0) {
        const OpRow& op = ops[tensors[made_from].op];
        if (op.tensors.empty()) return false;
        made_by = op.schema;
        made_from = op.tensors[0];
        if (made_by->name != "aten::logical_not" && made_by->name != "aten::bitwise_not") break;
    }
    if (!made_by || !now) return false;
    bool check = false;
    for (const char* start : {"aten::all", "aten::any", "aten::_is_all_true", "aten::_is_any_true"})
        check |= made_by->name == start || made_by->name.starts_with(std::string(start) + ".");
    const bool equals = made_by->name == "aten::eq.Scalar" || made_by->name == "aten::ne.Scalar";  // mask.min() == 1
    check |= equals && !is_float(tensors[made_from].spec.dtype);
    const int unit = unit_of(now);
    auto here = [&](const DataGuard& g) { return g.deferred && g.code == code_of(now) && g.unit == unit; };
    return check && std::count_if(data_guards.begin(), data_guards.end(), here) < kMaxDeferredAtOnePlace;
}
bool Recorder::guard_data(PyObject* t) {
    int row = tensor_number(t);
    if (row < 0 || broken_) return false;
    TensorView v = view_of(t);
    if (v.numel > kMaxGuardedData || v.device_type != 0 || is_float(v.dtype) || !computable(v.dtype) || !v.data) return false;
    if (no_data_guards && now && no_data_guards->count(data_place(code_of(now), unit_of(now)))) return false;
    for (const DataGuard& other : data_guards)
        if (other.row == row) return true;
    DataGuard g;
    g.deferred = !follows_from_integers(row);
    if (g.deferred && (v.numel != 1 || !may_defer(row))) return false;
    g.row = row;
    g.code = now ? code_of(now) : nullptr;
    g.unit = now ? unit_of(now) : 0;
    g.line = now ? line_of(now) : 0;
    int size = size_of(v.dtype);
    for (int64_t k = 0; k < v.numel; ++k) {
        int64_t at = 0, rest = k;
        for (int d = v.ndim; d-- > 0;) at += rest % v.sizes[d] * v.strides[d], rest /= v.sizes[d];
        g.expected.append((const char*)v.data + at * size, size);
    }
    data_guards.push_back(std::move(g));
    return true;
}

// ---- the mode ----
PyObject* raise_break(const Break&);
namespace {
PyObject* composite_key() {
    PyRef keys = PyRef::steal(torch_c_function("DispatchKey"));
    return keys ? PyObject_GetAttrString(keys.get(), "CompositeImplicitAutograd") : nullptr;
}
PyObject* run_decomposed(PyObject* self, PyObject* overload, PyObject* args,
                         PyObject* kwargs) {  // a composite came whole: look inside, with the mode on
    // What OpOverload.decompose calls: its own Python would be part of the recording.
    static PyObject* const key = composite_key();
    PyRef decompose = PyRef::steal(key ? PyObject_GetAttrString(overload, "_op_dk") : nullptr);
    PyRef first = PyRef::steal(decompose ? PyTuple_Pack(1, key) : nullptr);
    PyRef all = PyRef::steal(first ? PySequence_Concat(first.get(), args) : nullptr);
    PyRef ok = all ? PyRef::steal(PyObject_CallOneArg(push_function, self)) : PyRef();
    if (!ok) return nullptr;
    PyObject* result = PyObject_Call(decompose.get(), all.get(), kwargs);
    PyObject *t, *v, *tb;
    PyErr_Fetch(&t, &v, &tb);
    Py_XDECREF(PyObject_CallOneArg(pop_function, Py_None));
    PyErr_Restore(t, v, tb);
    return result;
}
PyObject* mode_dispatch(PyObject* self, PyObject* const* a, Py_ssize_t n) {
    PyObject *overload = a[0], *args = n > 2 ? a[2] : nullptr;
    PyObject* kwargs = n > 3 && a[3] != Py_None && PyDict_GET_SIZE(a[3]) ? a[3] : nullptr;
    struct Off {  // torch's own Python is no part of the region
        Recorder* r = std::exchange(active_recorder, nullptr);
        ~Off() { active_recorder = r; }
    } off;
    const OpSchema* schema = schema_of(overload);
    if (!schema) {
        PyErr_Clear();
        if (off.r) off.r->note_break(break_higher_order);
        return PyObject_Call(overload, args, kwargs);
    }
    if (schema->decomposes) {
        active_recorder = off.r;  // its operators are ours
        return run_decomposed(self, overload, args, kwargs);
    }
    Recorder* r = off.r;
    idle_operators += !r || r->broken();
    bool scalar = schema->name == "aten::_local_scalar_dense";
    if (r && scalar && !r->guard_data(PyTuple_GET_ITEM(args, 0))) r->note_break(break_data);
    if (r && r->strict && r->broken()) return raise_break(r->found);
    if (r && r->keeps_entry && (schema->mutates || draws(*schema, args, kwargs)) && !r->broken())
        r->entry.keep(*schema, args, kwargs, [r](void* storage) { return r->made_inside(storage); });
    const double start = r ? now_ms() : 0;
    PyObject* result = PyObject_Call(schema->callable.get(), args, kwargs);
    if (r) r->operators_ms += now_ms() - start;
    if (r && result && !scalar) r->note_op(overload, args, kwargs, result);
    return result;
}
PyObject* return_true(PyObject*, PyObject*) { Py_RETURN_TRUE; }
PyObject* return_false(PyObject*, PyObject*) { Py_RETURN_FALSE; }
PyMethodDef mode_methods[] = {{"__torch_dispatch__", (PyCFunction)(void*)mode_dispatch, METH_FASTCALL, nullptr},
                              {"is_infra_mode", return_false, METH_NOARGS | METH_CLASS, nullptr},
                              {"ignore_compile_internals", return_true, METH_NOARGS | METH_CLASS, nullptr},
                              {"_should_skip_dynamo", return_true, METH_NOARGS | METH_CLASS, nullptr},
                              {}};
PyType_Slot mode_slots[] = {{Py_tp_methods, mode_methods}, {0, nullptr}};
PyType_Spec mode_spec = {"framejit._C.RecordingMode", sizeof(PyObject), 0, Py_TPFLAGS_DEFAULT, mode_slots};
}  // namespace

int init_dispatch() {
    if (mode) return 0;
    PyRef type = PyRef::steal(PyType_FromSpec(&mode_spec));
    if (!type) return -1;
    push_function = torch_c_function("_push_on_torch_dispatch_stack");
    pop_function = torch_c_function("_pop_torch_dispatch_stack");
    top_of_stack = torch_c_function("_get_dispatch_stack_at");
    PyRef rule = PyRef::steal(dispatch_rule_lookup());
    if (rule && PyFunction_Check(rule.get())) rule_code = (PyCodeObject*)Py_NewRef(PyFunction_GET_CODE(rule.get()));
    if (!push_function || !pop_function || !top_of_stack || !rule) return -1;
    if (PyObject_SetAttrString(type.get(), "supports_higher_order_operators", Py_True) < 0) return -1;
    if (PyRef getattr = PyRef::steal(module_getattr())) {
        std::vector<PyRef> dicts;
        for (const char* name : {"_parameters", "_buffers", "_modules"}) dicts.push_back(PyRef::steal(PyUnicode_InternFromString(name)));
        note_member_getattr(getattr.get(), std::move(dicts));
    }
    PyErr_Clear();
    mode = PyObject_CallNoArgs(type.get());
    return mode ? 0 : -1;
}
int push_mode() {
    PyRef ok = PyRef::steal(PyObject_CallOneArg(push_function, mode));
    return ok ? 0 : -1;
}
int pop_mode() {
    static PyObject* length = nullptr;
    if (!length) {
        length = torch_c_function("_len_torch_dispatch_stack");
        if (!length) return -1;
    }
    PyRef n = PyRef::steal(PyObject_CallNoArgs(length));
    Py_ssize_t count = n ? PyLong_AsSsize_t(n.get()) : -1;
    if (count <= 0) return -1;
    PyRef last = PyRef::steal(PyLong_FromSsize_t(count - 1));
    PyRef top = PyRef::steal(PyObject_CallOneArg(top_of_stack, last.get()));
    if (!top) return -1;
    if (top.get() != mode) return 1;
    PyRef ok = PyRef::steal(PyObject_CallOneArg(pop_function, Py_None));
    return ok ? 0 : -1;
}
bool is_dispatch_rule_lookup(PyCodeObject* code) { return code == rule_code; }

}  // namespace framejit
