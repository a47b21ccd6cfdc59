// Calls. Python functions become frames of the recording; for C callables the call policy (call_policy.def) says what their result and
// their effects depend on. A C callable without a row is a break: its result could come from hidden state.
#include "plugin/record/call_policy.h"
#include "plugin/record/kinds.h"
#include "plugin/record/recorder.h"
#include <algorithm>
#include <cstring>
#include <string>
#include <unordered_map>

namespace framejit {

PyObject* break_function = nullptr;   // framejit.graph_break
PyObject* disabled_marker = nullptr;  // attribute of functions made by framejit.disable

static PyObject* function_of_module(const char* module, const char* name) {  // new reference, null without an error
    PyRef m = PyRef::steal(PyImport_ImportModule(module));
    PyObject* found = m ? PyObject_GetAttrString(m.get(), name) : nullptr;
    PyErr_Clear();
    return found;
}
// isinstance() and issubclass() ask a metaclass that may look at anything of the object. ABCMeta asks C, which looks at its class.
static bool asks_python(PyObject* type) {
    static PyObject* const check = PyUnicode_InternFromString("__instancecheck__");
    static PyObject* const abstract = function_of_module("abc", "ABCMeta");
    PyObject* how = PyType_Check(type) ? _PyType_Lookup(Py_TYPE(type), check) : nullptr;
    return how && PyFunction_Check(how) && how != _PyType_Lookup((PyTypeObject*)abstract, check);
}
static bool any_asks_python(PyObject* types) {
    if (!PyTuple_Check(types)) return asks_python(types);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(types); ++i)
        if (any_asks_python(PyTuple_GET_ITEM(types, i))) return true;
    return false;
}

static bool has_slots(PyTypeObject* t) {
    static PyObject* const slots = PyUnicode_InternFromString("__slots__");
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(t->tp_mro); ++i)
        if (PyObject* own = PyDict_GetItemWithError(((PyTypeObject*)PyTuple_GET_ITEM(t->tp_mro, i))->tp_dict, slots)) {
            const Py_ssize_t n = PyObject_Length(own);
            if (n < 0) PyErr_Clear();
            if (n != 0) return true;
        }
    return false;
}

// The handlers of SPECIAL rows. Each returns the shadow of the result (kOpen: by identity).
struct CallPolicy {
    Recorder& r;
    PyObject* fn;
    PyObject** args;
    const int* shadows;
    int total;
    const std::string& name;

    int length() {
        PyObject* v = args[0];
        if (shadows[0] <= 0 || !(container(v) || PyUnicode_CheckExact(v))) return open();
        r.use_type(v, shadows[0]);
        if (r.mutated_.count(shadows[0])) return Internal;
        int len = r.sources.child(SourceKind::Len, shadows[0]);
        const int64_t extra = PyObject_Length(v) - r.entry_length(v, shadows[0]);
        if (!extra) return len;
        PyRef n = PyRef::steal(PyLong_FromLongLong(extra));
        return r.sources.combine(SourceKind::Binary, len, r.sources.constant(n.get()), 0);
    }
    // copy and pickle: the state is the object's own dict; C reads slots, for which there is no source.
    int state() {
        PyObject* d = dict_of(args[0]);
        if (shadows[0] <= 0) return open();
        if (!d || has_slots(Py_TYPE(args[0]))) return r.note_break(break_opaque_object, args[0], fn), int(Recorder::kOpen);
        for (int i = 1; i < total; ++i) r.use(args[i], shadows[i]);
        container(args[0]) ? r.use(args[0], shadows[0]) : r.use_type(args[0], shadows[0]);
        const int of_dict = r.known_source(r.sources.child(SourceKind::Dict, shadows[0]), d);
        if (!PyDict_GET_SIZE(d)) r.keys(d, of_dict);  // then there is none
        return Recorder::kOpen;
    }
    int open() {  // all arguments looked at through protocols
        for (int i = 0; i < total; ++i) r.use(args[i], shadows[i]);
        return Recorder::kOpen;
    }
    int is_instance() {
        if (shadows[0] == Unknown)
            r.hole(args[0]);
        else if (shadows[0] > 0) {
            if (args[0] == Py_None || (total > 1 && valued(args[0]) && any_asks_python(args[1])))
                r.guard(GuardKind::Value, shadows[0], args[0]);
            else if (PyType_Check(args[0]))
                r.guard(GuardKind::Identity, shadows[0], args[0]);
            else
                r.guard(GuardKind::Type, shadows[0], (PyObject*)Py_TYPE(args[0]));
        }
        if (total > 1 && shadows[1] > 0) {
            if (PyTuple_Check(args[1]))
                r.contents(args[1], shadows[1]);
            else
                r.guard(GuardKind::Identity, shadows[1], args[1]);
        }
        return Internal;
    }
    // What an abstract class says of others holds until something is registered with any of them, which moves the token.
    int abstract_check() {
        static PyObject* const token = function_of_module("_abc", "get_cache_token");
        PyRef now = PyRef::steal(token ? PyObject_CallNoArgs(token) : nullptr);
        if (!now) PyErr_Clear();
        if (!now || total != 2) return open();
        r.guard(GuardKind::Value, r.sources.child(SourceKind::Answer, r.sources.constant(token)), now.get());
        PyObject* object_and_class[2] = {args[1], args[0]};
        const int their_shadows[2] = {shadows[1], shadows[0]};
        return CallPolicy{r, fn, object_and_class, their_shadows, 2, name}.is_instance();
    }
    int get_attribute() {
        if (total < 2 || !PyUnicode_Check(args[1])) return open();
        r.use(args[1], shadows[1]);
        if (total > 2) r.use(args[2], shadows[2]);
        int s = r.attribute(args[0], shadows[0], interned(args[1]).get());
        if (name != "builtins.hasattr") return s;
        if (s > 0) r.guard(GuardKind::Present, s);
        return Internal;
    }
    int set_attribute() {
        if (total != 3 || !PyUnicode_Check(args[1])) return open();
        r.use(args[1], shadows[1]);
        if (shadows[0] == Unknown) r.hole(args[0]);
        if (shadows[0] <= 0) {
            if (valued(args[2])) r.use_value(args[2], shadows[2]);
            return Internal;
        }
        if (is_tensor(args[0])) {
            r.note_break(break_metadata, args[0]);
            return Internal;
        }
        static PyObject* setattr = PyUnicode_InternFromString("__setattr__");
        PyObject* how = _PyType_Lookup(Py_TYPE(args[0]), setattr);
        r.use_type(args[0], shadows[0]);
        r.type_lookup(Py_TYPE(args[0]), setattr, how);
        if (how && PyFunction_Check(how)) {
            if (valued(args[2])) r.use_value(args[2], shadows[2]);  // goes through C into the frame
        } else
            r.set_attribute(args[0], shadows[0], interned(args[1]).get(), args[2], shadows[2]);
        return Internal;
    }
    // Torch reads index tensors here without an operator.
    int split_at() {
        if (total > 1 && is_tensor(args[1]) && !r.guard_data(args[1])) r.note_break(break_data, nullptr, fn);
        return open();
    }
    int delete_attribute() {
        for (int i = 1; i < total; ++i) r.use(args[i], shadows[i]);
        if (total == 2) r.delete_attribute(args[0], shadows[0], interned(args[1]).get());
        return Internal;
    }
    int identity() {
        // As a hash it only finds the tensor again in what the region made: containers from outside with such keys break where they are
        // read.
        bool hash = r.now && !PyUnicode_CompareWithASCIIString(code_of(r.now)->co_name, "__hash__");
        if (shadows[0] > 0 && is_tensor(args[0]) && hash)
            r.guard_tensor(args[0], shadows[0]);
        else if (shadows[0] > 0 && is_tensor(args[0]))
            r.note_break(break_impure_call, nullptr, fn);  // no guard may hold a tensor
        else if (shadows[0] > 0 && !valued(args[0]))
            r.guard(GuardKind::Identity, shadows[0], args[0]);
        return Internal;
    }
    int absolute() {
        int s = r.arithmetic(SourceKind::Unary, 7, args[0], shadows[0], nullptr, 0);
        return s != Recorder::kOpen ? s : open();
    }
    int dict_get() {
        if (total < 2 || !PyDict_Check(args[0]) || !plain_key(args[1])) return open();
        if (total > 2) r.use(args[2], shadows[2]);
        int s = r.item(args[0], shadows[0], args[1], shadows[1]);
        return PyDict_GetItemWithError(args[0], args[1]) ? s : int(Recorder::kOpen);
    }
    int dict_setdefault() {
        if (total < 2 || shadows[0] <= 0 || !plain_key(args[1])) return open();
        if (PyDict_GetItemWithError(args[0], args[1])) return r.item(args[0], shadows[0], args[1], shadows[1]);
        r.item(args[0], shadows[0], args[1], shadows[1]);
        r.set_item(args[0], shadows[0], args[1], total > 2 ? args[2] : Py_None, total > 2 ? shadows[2] : int(Internal));
        return Recorder::kWritten;
    }
    int append() {
        if (total != 2) return open();
        if (shadows[0] == Unknown) r.hole(args[0]);
        if (shadows[0] > 0) {
            r.mutating(args[0], shadows[0], true);
            r.stored(shadows[0], args[1], shadows[1]);
            r.call_event(fn, Internal, args, shadows, total, nullptr);
        } else if (valued(args[1]))
            r.use_value(args[1], shadows[1]);
        return Internal;
    }
    int context_get() {
        int v = shadows[0] > 0 ? shadows[0] : r.sources.constant(args[0]);
        if (total > 1) r.use(args[1], shadows[1]);
        PyRef key = PyRef::steal(PyUnicode_FromString("contextvar"));
        if (r.written(v, key.get())) return Recorder::kWritten;
        int s = r.sources.child(SourceKind::ContextVar, v);
        PyObject* value = nullptr;
        if (PyContextVar_Get(args[0], nullptr, &value) < 0) PyErr_Clear();
        if (!value) r.guard(GuardKind::Missing, s);
        Py_XDECREF(value);
        return value ? s : int(Recorder::kOpen);
    }
    // What is read back is what was written; after the reset of a `set` of this region, what it was before.
    int context_set() {
        if (total != 2) return open();
        int v = shadows[0] > 0 ? shadows[0] : r.sources.constant(args[0]), now = valued(args[1]) ? shadows[1] : int(Internal);
        PyRef key = PyRef::steal(PyUnicode_FromString("contextvar"));
        r.call_event(fn, Internal, args, shadows, total, nullptr);
        auto& sets = r.context_sets_;
        if (name == "_contextvars.ContextVar.set") {
            sets.push_back({v, r.written(v, key.get()) ? r.written_shadow_ : FlatMap::kDead, {}});
            r.result_of_event_ = !r.broken();
        } else {
            auto last = std::find_if(sets.rbegin(), sets.rend(), [&](const auto& s) { return s.variable == v; });
            const bool ours = last != sets.rend() && last->token.get() == args[1];
            now = ours ? last->before : int(Unknown);
            if (ours) sets.erase(std::next(last).base());
        }
        r.wrote(v, key.get(), now);
        return Internal;
    }
    // A lock from outside holds others back while the region runs, not when events are replayed.
    int lock() {
        if (total && shadows[0] > 0) r.note_break(break_held, nullptr, fn);
        return open();
    }
};
int (CallPolicy::* special_of(const std::string& name))() {
    static const std::unordered_map<std::string, int (CallPolicy::*)()> table = {
        {"builtins.len", &CallPolicy::length},
        {"builtins.isinstance", &CallPolicy::is_instance},
        {"builtins.issubclass", &CallPolicy::is_instance},
        {"builtins.callable", &CallPolicy::is_instance},
        {"_abc._abc_instancecheck", &CallPolicy::abstract_check},
        {"_abc._abc_subclasscheck", &CallPolicy::abstract_check},
        {"builtins.getattr", &CallPolicy::get_attribute},
        {"builtins.hasattr", &CallPolicy::get_attribute},
        {"builtins.setattr", &CallPolicy::set_attribute},
        {"builtins.delattr", &CallPolicy::delete_attribute},
        {"builtins.id", &CallPolicy::identity},
        {"builtins.abs", &CallPolicy::absolute},
        {"object.__reduce_ex__", &CallPolicy::state},
        {"object.__reduce__", &CallPolicy::state},
        {"object.__getstate__", &CallPolicy::state},
        {"torch._C.TensorBase.tensor_split", &CallPolicy::split_at},
        {"torch.tensor_split", &CallPolicy::split_at},
        {"dict.get", &CallPolicy::dict_get},
        {"dict.setdefault", &CallPolicy::dict_setdefault},
        {"list.append", &CallPolicy::append},
        {"_contextvars.ContextVar.get", &CallPolicy::context_get},
        {"_contextvars.ContextVar.set", &CallPolicy::context_set},
        {"_contextvars.ContextVar.reset", &CallPolicy::context_set},
    };
    if (name.starts_with("_thread.")) return &CallPolicy::lock;
    return table.at(name);
}

// torch.autograd.Function.apply makes the `ctx` that forward() gets: of this class. Null: something else is called.
static PyObject* context_class(PyObject* fn) {
    PyObject* self = PyCFunction_Check(fn) ? PyCFunction_GET_SELF(fn) : nullptr;
    if (!self || !PyType_Check(self) || strcmp(reinterpret_cast<PyCFunctionObject*>(fn)->m_ml->ml_name, "apply") != 0) return nullptr;
    static PyObject* const name = PyUnicode_InternFromString("_backward_cls");
    PyObject* found = _PyType_Lookup(reinterpret_cast<PyTypeObject*>(self), name);
    return found && PyType_Check(found) ? found : nullptr;
}

// np.sqrt(64) and what is computed from it; arrays are not numbers.
static bool only_numbers(PyObject** args, const int* shadows, int total) {
    for (int i = 0; i < total; ++i)
        if (!number(args[i]) && !(shadows[i] == Internal && numpy_scalar(args[i]))) return false;
    return total > 0;
}

// long: one case per policy, which read best side by side
int Recorder::c_call(Shadow& sh, PyObject* fn, PyObject** args, const int* shadows, int total, int positional, PyObject* kw) {
    const CallRow& row = row_of(fn);
    Policy policy = row.policy;
    if (fn == break_function) {
        note_break(break_asked);
        if (const char* why = total && PyUnicode_Check(args[0]) ? PyUnicode_AsUTF8(args[0]) : nullptr; why && *why) found.detail = why;
        return Internal;
    }
    if (assumed_pure(fn)) policy = Policy::PURE;
    bool heap_type = PyType_Check(fn) && PyType_HasFeature((PyTypeObject*)fn, Py_TPFLAGS_HEAPTYPE);
    if (heap_type && policy == Policy::UNKNOWN) policy = Policy::PROTOCOL;  // __new__ and __init__ are frames, or C that makes a new object
    if (PyType_Check(fn)) constructing_ = fn;
    if (PyObject* context = context_class(fn)) {
        constructing_ = context;
        for (int i = 0; i < total && grad_enabled(); ++i)
            if (is_tensor(args[i]) && view_of(args[i]).requires_grad) fail("gradients: a torch.autograd.Function is applied");
    }
    if (int s = slot_wrapper(fn, args, shadows, total, kw); s != kOpen - 100) return s;
    if (fn == (PyObject*)&PyType_Type && total == 1) {
        if (shadows[0] > 0 && is_tensor(args[0]))
            guard(GuardKind::Type, shadows[0], (PyObject*)Py_TYPE(args[0]));
        else
            use_type(args[0], shadows[0]);
        return Internal;
    }
    const bool numpy = numpy_function(fn) || (row.name.starts_with("numpy.") && !row.name.starts_with("numpy.random."));
    if (policy == Policy::UNKNOWN && numpy && !kw && only_numbers(args, shadows, total)) policy = Policy::PURE;
    for (int i = 0; i < total && policy == Policy::READS; ++i)
        if (shadows[i] > 0 && !is_tensor(args[i])) note_break(break_opaque_object, args[i], fn);
    const bool tensors = PyType_Check(fn) && row.name.starts_with("torch.") && row.name.ends_with("Tensor");  // torch.FloatTensor([t])
    if (policy == Policy::DATA || policy == Policy::LENGTHS || tensors || fn == (PyObject*)tensor_type())
        for (int i = 0; i < total; ++i)
            if (!data_inside(args[i], policy == Policy::LENGTHS)) note_break(break_data, nullptr, fn);
    if (policy == Policy::NESTING) autocast_nesting += row.name.ends_with("increment_nesting") ? 1 : -1;
    if (policy == Policy::HIDDEN) return hidden_mode_ = pop_mode() == 0, Internal;
    switch (policy) {
    case Policy::ASKS:
    case Policy::SPECIAL:
        if (total && !kw) return (CallPolicy{*this, fn, args, shadows, total, row.name}.*row.special)();
        break;
    case Policy::OWN:
    case Policy::MUTATE:
        if (total && is_tensor(args[0])) break;  // operator.iadd: dispatch sees it
        if (total && shadows[0] > 0 &&
            (policy == Policy::OWN || opaque_value(args[0]))) {  // operator.iadd on an array; what it hands out has no source
            note_break(foreign(shadows[0]) ? break_foreign : break_opaque_object, args[0], fn);
            return kOpen;
        }
        [[fallthrough]];
    case Policy::STORES:
        if (total && shadows[0] > 0) {
            mutating(args[0], shadows[0], false);
            read_stored(shadows[0]);  // its result may be what was put in before
            for (int i = 1; i < total; ++i) {
                if (!is_tensor(args[i])) use(args[i], shadows[i]);
                if (container(args[0])) sought(args[i], shadows[i], args[0]);  // remove(o)
            }
            call_event(fn, Internal, args, shadows, total, kw);
            return kOpen;
        }
        for (int i = 0; i < total; ++i) {  // a new container: what goes in leaves the slots
            if (shadows[i] == Unknown)
                hole(args[i]);
            else if (valued(args[i]))
                use_value(args[i], shadows[i]);
            else if (i && container(args[i]))
                use(args[i], shadows[i]);
        }
        return kOpen;
    case Policy::EFFECT: {
        bool plain = true;
        for (int i = 0; i < positional; ++i) plain = plain && (valued(args[i]) || code_like(args[i]));
        if (!plain) return note_break(break_effect, nullptr, fn), Internal;
        call_event(fn, Internal, args, shadows, total, kw);
        unwatch();
        return Internal;
    }
    case Policy::WARNS: return warns(fn, args, shadows, total, positional, kw), Internal;
    case Policy::LEAK: {
        if (total == 1 && row.name == "torch._C.TensorBase.tolist" && is_tensor(args[0]) && guard_data(args[0])) {
            use(args[0], shadows[0]);
            return kOpen;
        }
        bool came_out = false;  // of an earlier break: its consequence, not another one
        for (int i = 0; i < total; ++i) came_out = came_out || (shadows[i] > 0 && !is_tensor(args[i]) && foreign(shadows[i]));
        note_break(came_out ? break_foreign : break_leak, nullptr, fn);
        return kOpen;
    }
    case Policy::ANSWERS:
        if (!total) return sources.child(SourceKind::Answer, sources.constant(fn));
        [[fallthrough]];
    case Policy::IMPURE: note_break(break_impure_call, nullptr, fn); return kOpen;
    case Policy::UNKNOWN:
        if (Py_IS_TYPE(fn, &PyMethod_Type) || !strcmp(Py_TYPE(fn)->tp_name, "functools._lru_cache_wrapper") ||
            !strcmp(Py_TYPE(fn)->tp_name, "functools.partial") || !strncmp(Py_TYPE(fn)->tp_name, "operator.", 9) ||
            !strncmp(Py_TYPE(fn)->tp_name, "framejit.", 9))
            break;  // calls through to others, which are recorded
        if (!(Py_TYPE(fn)->tp_flags & Py_TPFLAGS_HEAPTYPE) || PyCFunction_Check(fn)) note_break(break_unknown_call, nullptr, fn);
        break;
    default: break;
    }
    const bool protocol = through_protocols(policy);
    for (int i = 0; i < total; ++i) {
        bool opaque = shadows[i] > 0 && !is_tensor(args[i]) && !valued(args[i]) && !container(args[i]) && !code_like(args[i]);
        if (opaque && !protocol && !heap_type && policy != Policy::UNKNOWN) hole(args[i], fn);
        if (shadows[i] > 0 && protocol && PyIter_Check(args[i]) && Py_TYPE(args[i])->tp_iter == PyObject_SelfIter && !container(args[i]))
            note_break(break_iterator, args[i]);
        if (policy == Policy::ITERATE && container(args[i])) {
            contents(args[i], shadows[i]);
            continue;
        }
        use(args[i], shadows[i]);
        if (!heap_type) handed_to_c(args[i]);
    }
    for (int i = 0; i < total; ++i) {  // with what they hold, which is known by now
        if (policy == Policy::COMPARES) pinned(args[i], shadows[i]);
        if (policy == Policy::PRINTS) told(args[i], shadows[i], "__repr__");
        if (policy == Policy::HASHES) told(args[i], shadows[i], "__hash__");
    }
    return kOpen;
}

// C code is about to call a Python function with these: their shadows go into its parameters.
void Recorder::expect_frame(PyObject* function, PyObject* const* args, const int* shadows, int total) {
    pending_.function = function;
    pending_.args.clear();
    pending_.kwnames = nullptr;
    pending_.positional = total;
    for (int i = 0; i < total; ++i) pending_.args.emplace_back(args[i], shadows[i]);
}

// long: what kind of callable it is decides where its frame or its policy is found
int Recorder::call(Shadow& sh, PyObject* fn, int fn_shadow, PyObject** args, const int* shadows, int total, int positional, PyObject* kw) {
    if (fn_shadow == Unknown) hole(fn);
    if (fn_shadow > 0) {
        if (PyFunction_Check(fn))
            guard_function(fn, fn_shadow);
        else if (PyObject* method = unbound(fn))
            guard(GuardKind::Bound, fn_shadow, method);
        else if (code_like(fn))
            guard(GuardKind::Identity, fn_shadow, fn);
        else if (!strcmp(Py_TYPE(fn)->tp_name, "operator.methodcaller"))
            note_break(break_opaque_object, fn);  // of what, only C knows
        else
            use_type(fn, fn_shadow);
    }
    pending_.function = nullptr;
    result_of_event_ = false;
    PyObject *target = fn, *self = nullptr;
    int self_shadow = Internal;
    if (PyMethod_Check(fn)) {
        target = PyMethod_GET_FUNCTION(fn);
        self = PyMethod_GET_SELF(fn);
        self_shadow = call_target(fn, fn_shadow);
    } else if (!PyFunction_Check(fn) && !PyCFunction_Check(fn) && !PyType_Check(fn) && (Py_TYPE(fn)->tp_flags & Py_TPFLAGS_HEAPTYPE)) {
        static PyObject* dunder_call = PyUnicode_InternFromString("__call__");
        PyObject* how = _PyType_Lookup(Py_TYPE(fn), dunder_call);
        if (how && PyFunction_Check(how)) {  // a module: its class's __call__ with the object as self
            type_lookup(Py_TYPE(fn), dunder_call, how);
            target = how;
            self = fn;
            self_shadow = fn_shadow;
        }
    }
    if (PyFunction_Check(target)) {
        if (disabled_marker && ((PyFunctionObject*)target)->func_dict &&
            PyDict_GetItemWithError(((PyFunctionObject*)target)->func_dict, disabled_marker)) {
            note_break(break_disabled, nullptr, target);
            return kOpen;
        }
        if (target == fn && fn_shadow > 0) known_source(fn_shadow, fn);
        pending_.function = target;
        pending_.args.clear();
        pending_.kwnames = kw;
        if (self) pending_.args.emplace_back(self, self_shadow);
        pending_.positional = positional + (self ? 1 : 0);
        for (int i = 0; i < total; ++i) pending_.args.emplace_back(args[i], shadows[i]);
        return kOpen;
    }
    if (fn_shadow > 0 && !PyCFunction_Check(fn) && !strcmp(Py_TYPE(fn)->tp_name, "functools.partial"))
        for (const char* part : {"func", "args", "keywords"})
            if (PyRef value = PyRef::steal(PyObject_GetAttrString(fn, part)),
                name = interned(PyRef::steal(PyUnicode_FromString(part)).get());
                value)
                use(value.get(), known_source(sources.child(SourceKind::Attr, fn_shadow, name.get()), value.get()));
    if (!strcmp(Py_TYPE(fn)->tp_name, "functools.partial")) handed_to_c(fn);
    if (int kept = kept_result(fn, fn_shadow, args, shadows, total, kw); kept != kOpen) return kept;
    if (PyObject* method = unbound(fn)) {  // as if self were an argument
        PyObject* bound = PyCFunction_GET_SELF(fn);
        std::vector<PyObject*> a(args, args + total);
        std::vector<int> s(shadows, shadows + total);
        a.insert(a.begin(), bound);
        s.insert(s.begin(), fn_shadow > 0 ? known_source(sources.child(SourceKind::MethodSelf, fn_shadow), bound) : lookup(bound, true));
        return c_call(sh, method, a.data(), s.data(), total + 1, positional + 1, kw);
    }
    return c_call(sh, fn, args, shadows, total, positional, kw);
}

}  // namespace framejit
