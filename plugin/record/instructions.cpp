// What each instruction reads, writes and pushes. `before` runs with the operands on the stack, `after` with the results.
// Instructions that are not named push nothing from outside or are handled by the frames that they call.
#include "plugin/record/kinds.h"
#include "plugin/record/recorder.h"

namespace framejit {

namespace {
bool reuses_its_tuple(PyObject* it) {  // when nobody else holds it
    return Py_IS_TYPE(it, &PyEnum_Type) || Py_IS_TYPE(it, &PyZip_Type) || Py_IS_TYPE(it, &PyDictIterItem_Type) ||
           Py_IS_TYPE(it, &PyDictRevIterItem_Type) || Py_IS_TYPE(it, &PyODictIter_Type);
}
PyObject* name_at(Frame* f, int i) { return PyTuple_GET_ITEM(code_of(f)->co_names, i); }
}  // namespace

// The families of `before`. s[-1] is the shadow of the top of the stack.
struct Instructions {
    Recorder& r;
    Recorder::Shadow& sh;
    Frame* f;
    const Ins& in;
    PyObject** sp;
    int* s;

    void load_deref() {
        PyObject* cell = slots_of(f)[in.arg];
        if (!cell || !PyCell_Check(cell)) return;
        if (int* known = r.cell_shadow_.find(cell)) {  // made, or written, inside
            PyObject* v = PyCell_GET(cell);
            sh.result = v && valued(v) ? *known : int(Recorder::kOpen);
            if (sh.result <= 0) sh.result = Recorder::kOpen;
            return;
        }
        PyObject* v = PyCell_GET(cell);
        int source = cell_source(cell);
        if (source > 0) sh.result = r.sources.child(SourceKind::CellValue, source);
        if (sh.result > 0 && !v) {
            r.guard(GuardKind::Missing, sh.result);
            sh.result = Recorder::kOpen;
        }
    }
    // The source of a cell that belongs to somebody else: Internal for one made inside.
    int cell_source(PyObject* cell) {
        if (int* known = r.identity_.find(cell)) return *known;
        int first_free = locals_count(code_of(f)) - free_vars_count(code_of(f));
        if (in.arg < first_free || sh.function <= 0) return Internal;
        return r.known_source(r.sources.child(SourceKind::ClosureCell, sh.function, nullptr, in.arg - first_free), cell);
    }
    void store_deref() {
        PyObject* cell = slots_of(f)[in.arg];
        PyObject* v = in.op == Op::StoreDeref ? sp[-1] : nullptr;
        int shadow = v ? s[-1] : int(Internal), source = cell_source(cell);
        if (source > 0) r.event(EventKind::SetCell, cell, source, nullptr, Internal, v, shadow);
        r.cell_shadow_.put(cell, v && valued(v) ? shadow : int(Internal));
        r.make_internal(cell);  // keeps it alive; does not replace a source
    }
    void store_attr() {
        PyObject *o = sp[-1], *v = sp[-2], *name = name_at(f, in.arg);
        if (s[-1] == Unknown) return r.hole(o);
        if (is_tensor(o)) return r.note_break(break_metadata, o);  // a result too: it may leave, and is made anew
        if (s[-1] <= 0) {
            if (valued(v)) r.use_value(v, s[-2]);
            return;
        }
        static PyObject* setattr = PyUnicode_InternFromString("__setattr__");
        r.use_type(o, s[-1]);
        PyObject* how = _PyType_Lookup(Py_TYPE(o), setattr);
        r.type_lookup(Py_TYPE(o), setattr, how);
        if (how && PyFunction_Check(how)) {  // a __setattr__ in Python is a frame of the recording
            PyObject* args[3] = {o, name, v};
            int shadows[3] = {s[-1], Internal, s[-2]};
            return r.expect_frame(how, args, shadows, 3);
        }
        r.set_attribute(o, s[-1], name, v, s[-2]);
    }
    void store_subscr() {
        PyObject *key = sp[-1], *o = sp[-2], *v = sp[-3];
        r.use(key, s[-1]);
        if (s[-2] == Unknown) return r.hole(o);
        if (is_tensor(o)) {
            index_of_tensor(key);
            r.use(o, s[-2]);
            r.use(v, s[-3]);
            return;
        }
        if (s[-2] <= 0) {
            if (PyDict_Check(o)) r.pinned(key, s[-1]);
            if (valued(v)) r.use_value(v, s[-3]);
            return;
        }
        r.set_item(o, s[-2], key, v, s[-3]);
    }
    // Torch reads tensors in a list of indices without an operator.
    void index_of_tensor(PyObject* key) {
        bool known = !PyList_Check(key) || r.data_inside(key, false);
        if (PyTuple_CheckExact(key))
            for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i)
                known = known && (!PyList_Check(PyTuple_GET_ITEM(key, i)) || r.data_inside(PyTuple_GET_ITEM(key, i), false));
        if (!known) r.note_break(break_data);
    }
    // The module that sys.modules has under the name: another one may stand there in the next call.
    void import_name() {
        PyObject *level = sp[-2], *from = sp[-1], *name = name_at(f, in.arg), *modules = PyImport_GetModuleDict();
        if (!PyLong_CheckExact(level) || PyLong_AsLong(level) != 0 || !modules) return;
        Py_ssize_t dot = from == Py_None ? PyUnicode_FindChar(name, '.', 0, PyUnicode_GET_LENGTH(name), 1) : -1;
        PyRef wanted = dot < 0 ? PyRef::share(name) : PyRef::steal(PyUnicode_Substring(name, 0, dot));
        PyObject* module = wanted ? PyDict_GetItemWithError(modules, wanted.get()) : nullptr;
        if (!module || !PyDict_GetItemWithError(modules, name)) return;
        const int table = r.sources.constant(modules);
        if (dot >= 0) r.guard(GuardKind::Present, r.sources.child(SourceKind::Item, table, name));
        sh.result = r.sources.child(SourceKind::Item, table, wanted.get());
        r.guard(GuardKind::Identity, sh.result, module);
    }
    void branch() {
        PyObject* v = sp[-1];
        sh.result = s[-1];
        if (container(v) && s[-1] > 0)
            r.length(v, s[-1]);
        else
            r.use(v, s[-1]);
    }
    void is_op() {
        for (int i = 1; i <= 2; ++i) {
            PyObject *v = sp[-i], *other = sp[-(3 - i)];
            if (s[-i] == Unknown)
                r.hole(v);
            else if (s[-i] > 0 && valued(v)) {
                if (other == Py_None && v != Py_None)
                    r.use_type(v, s[-i]);
                else
                    r.guard(GuardKind::Value, s[-i], v);
            } else if (s[-i] > 0 && code_like(v) && other != Py_None)
                r.guard(GuardKind::Identity, s[-i], v);
            else if (s[-i] > 0 && s[-(3 - i)] > 0 && other != Py_None)
                r.guard(v == other ? GuardKind::Same : GuardKind::NotSame, s[-i], nullptr, s[-(3 - i)]);
            else
                r.use_type(v, s[-i]);
        }
    }
    void binary() {
        int kind = r.arithmetic(SourceKind::Binary, in.arg, sp[-2], s[-2], sp[-1], s[-1]);
        if (kind != Recorder::kOpen) {
            sh.result = kind;
            return;
        }
        if (native(sp[-2], s[-2]) || native(sp[-1], s[-1])) return;
        bool left = is_tensor(sp[-2]), right = is_tensor(sp[-1]);
        if (left) r.guard_operator(sp[-2], in.arg, false);
        if (right) r.guard_operator(sp[-1], in.arg, true);
        if (left != right && r.defer_scalar(left ? sp[-1] : sp[-2], left ? s[-1] : s[-2]))
            return r.use(left ? sp[-2] : sp[-1], left ? s[-2] : s[-1]);
        for (int i : {2, 1})  // of a sum of lists only the elements matter, and they keep where they come from
            if (in.arg % 13 == 0 && container(sp[-i]))
                r.contents(sp[-i], s[-i]);
            else
                r.use(sp[-i], s[-i]);
        if (PyUnicode_Check(sp[-2])) r.told(sp[-1], s[-1], "__repr__");  // "%s" % o
        if (in.arg >= 13 && s[-2] > 0 && (PyList_Check(sp[-2]) || PyDict_Check(sp[-2]) || PyAnySet_Check(sp[-2]))) augmented();
    }
    // x += y on a container from outside, as operator.iadd(x, y); where the class does it in Python, frames say what happens.
    void augmented() {
        static PyObject* const module = PyImport_ImportModule("_operator");
        const std::string name = std::string("i") + operator_name(in.arg);
        PyRef method = PyRef::steal(PyUnicode_FromFormat("__%s__", name.c_str()));
        if (PyObject* how = _PyType_Lookup(Py_TYPE(sp[-2]), method.get()); how && PyFunction_Check(how)) return;
        r.mutating(sp[-2], s[-2], false);
        r.stored(s[-2], sp[-1], s[-1]);
        PyRef function = PyRef::steal(module ? PyObject_GetAttrString(module, name.c_str()) : nullptr);
        PyObject* args[2] = {sp[-2], sp[-1]};
        int shadows[2] = {s[-2], s[-1]};
        if (function) r.call_event(function.get(), Internal, args, shadows, 2, nullptr);
        PyErr_Clear();
    }
    // An object of C code from outside (a numpy array): what is computed from it has no guard.
    bool native(PyObject* v, int shadow) {
        if (shadow <= 0 || valued(v) || container(v) || is_tensor(v) || code_like(v) || (Py_TYPE(v)->tp_flags & Py_TPFLAGS_HEAPTYPE))
            return false;
        r.note_break(r.foreign(shadow) ? break_foreign : break_opaque_object, v);
        return true;
    }
    // A container from outside takes the top of the stack: by `+=` and `|=`, or because a break fell into its display or comprehension.
    void change(const char* method, int depth, bool append_only) {
        r.mutating(sp[-depth], s[-depth], append_only);
        r.stored(s[-depth], sp[-1], s[-1]);
        PyRef descr = PyRef::steal(PyObject_GetAttrString((PyObject*)Py_TYPE(sp[-depth]), method));
        PyObject* args[2] = {sp[-depth], sp[-1]};
        int shadows[2] = {s[-depth], s[-1]};
        if (descr)
            r.call_event(descr.get(), Internal, args, shadows, 2, nullptr);
        else
            PyErr_Clear();
    }
    void add_to(const char* method, bool append_only) {
        int depth = in.arg + 1;
        bool many = in.op != Op::ListAppend && in.op != Op::SetAdd;
        if (many) iterate();
        if (s[-depth] > 0)
            change(method, depth, append_only);
        else if (!many)
            leave_slots(1);
    }
    void compare() {
        int kind = r.arithmetic(SourceKind::Compare, in.arg, sp[-2], s[-2], sp[-1], s[-1]);
        if (kind != Recorder::kOpen) {
            sh.result = kind;
            return;
        }
        r.use(sp[-2], s[-2]);
        r.use(sp[-1], s[-1]);
        if (in.arg == Py_EQ || in.arg == Py_NE) r.compared(sp[-2], s[-2], sp[-1], s[-1]);
    }
    void contains() {
        r.use(sp[-2], s[-2]);
        if (s[-1] > 0 && PyDict_Check(sp[-1]) && !r.in_python(sp[-1], "__contains__")) {
            if (!plain_key(sp[-2])) return r.hole(sp[-2]);
            r.use_type(sp[-1], s[-1]);
            if (r.written(s[-1], sp[-2]) || r.mutated_.count(s[-1])) return;
            int item = r.sources.child(SourceKind::Item, s[-1], sp[-2]);
            bool there = PyDict_GetItemWithError(sp[-1], sp[-2]) != nullptr;
            if (!PyUnicode_CheckExact(sp[-2]) && !PyLong_CheckExact(sp[-2]))
                r.contents(sp[-1], s[-1]);
            else
                r.guard(there ? GuardKind::Present : GuardKind::Missing, item);
            return;
        }
        r.use(sp[-1], s[-1]);
        if (container(sp[-1])) r.sought(sp[-2], s[-2], sp[-1]);
    }
    void unary(int what) {
        int kind = r.arithmetic(SourceKind::Unary, what, sp[-1], s[-1], nullptr, 0);
        if (kind != Recorder::kOpen)
            sh.result = kind;
        else if (what == 3 && container(sp[-1]))
            r.length(sp[-1], s[-1]);
        else
            r.use(sp[-1], s[-1]);
    }
    // Immutable values that go into a new object leave the slots.
    void leave_slots(int n) {
        for (int i = 1; i <= n; ++i) {
            if (s[-i] == Unknown)
                r.hole(sp[-i]);
            else if (valued(sp[-i]))
                r.use_value(sp[-i], s[-i]);
        }
    }
    void iterate() {
        PyObject* v = sp[-1];
        if (s[-1] == Unknown)
            r.hole(v);
        else if (s[-1] > 0) {
            if (PyIter_Check(v) && !container(v) && Py_TYPE(v)->tp_iter == PyObject_SelfIter)
                r.note_break(break_iterator, v);
            else if (container(v))
                r.contents(v, s[-1]);
            else
                r.use(v, s[-1]);
        }
    }
    void for_iter() {
        PyObject* v = sp[-1];
        if (s[-1] > 0) r.note_break(break_iterator, v);
    }
    void call() {
        int method = sp[-(in.arg + 2)] != nullptr, total = in.arg + method;
        int positional = total - (r.kwnames_ ? int(PyTuple_GET_SIZE(r.kwnames_)) : 0);
        PyObject* kw = std::exchange(r.kwnames_, nullptr);
        sh.result = r.call(sh, sp[-(total + 1)], s[-(total + 1)], sp - total, s - total, total, positional, kw);
    }
    void call_ex() {
        int kw = in.arg & 1;
        PyObject *fn = sp[-2 - kw], *args = sp[-1 - kw], *kwargs = kw ? sp[-1] : nullptr;
        int fs = s[-2 - kw];
        for (int i = 1; i <= 1 + kw; ++i)
            if (s[-i] > 0) r.contents(sp[-i], s[-i]);
        const bool sequence = PyTuple_CheckExact(args) || PyList_CheckExact(args);
        if (!sequence || (kwargs && !PyDict_CheckExact(kwargs))) {
            r.pending_.function = nullptr;
            if (fs == Unknown) r.hole(fn);
            return;
        }
        // The same as a plain call with the elements; their shadows are found by identity.
        std::vector<PyObject*>& all = r.unpacked_;
        std::vector<int>& shadows = r.unpacked_shadows_;
        all.clear();
        shadows.clear();
        auto add = [&](PyObject* v) {
            all.push_back(v);
            shadows.push_back(r.lookup(v, true));
        };
        Py_ssize_t n = Py_SIZE(args);
        for (Py_ssize_t i = 0; i < n; ++i) add(PySequence_Fast_ITEMS(args)[i]);
        PyRef names;
        if (kwargs && PyDict_GET_SIZE(kwargs)) {
            names = PyRef::steal(PyTuple_New(PyDict_GET_SIZE(kwargs)));
            PyObject *k, *v;
            Py_ssize_t pos = 0, i = 0;
            while (PyDict_Next(kwargs, &pos, &k, &v)) {
                PyTuple_SET_ITEM(names.get(), i++, Py_NewRef(k));
                add(v);
            }
        }
        sh.result = r.call(sh, fn, fs, all.data(), shadows.data(), int(all.size()), int(n), names.get());
        if (sh.kept_names) Py_CLEAR(sh.kept_names);
        sh.kept_names = names.release();  // `pending_` points at it until the frame starts
    }
    void run();
};

// long: one row per instruction
void Instructions::run() {
    switch (in.op) {
    case Op::LoadGlobal: sh.result = r.global(globals_of(f), builtins_of(f), name_at(f, in.arg >> 1)); break;
    case Op::LoadName: break;
    case Op::LoadClassderef:
    case Op::LoadDeref: load_deref(); break;
    case Op::StoreDeref:
    case Op::DeleteDeref: store_deref(); break;
    case Op::MakeCell: sh.result = sh.s[in.arg]; break;
    case Op::LoadClosure:
        if (PyObject* cell = slots_of(f)[in.arg]; cell && PyCell_Check(cell)) {
            if (cell_source(cell) == Internal) r.make_internal(cell);
        }
        break;
    case Op::LoadAttr: sh.result = r.attribute(sp[-1], s[-1], name_at(f, in.arg)); break;
    case Op::LoadMethod:
        sh.self = s[-1];
        sh.result = r.attribute(sp[-1], s[-1], name_at(f, in.arg));
        break;
    case Op::BinarySubscr:
        if (is_tensor(sp[-2])) index_of_tensor(sp[-1]);
        sh.result = r.item(sp[-2], s[-2], sp[-1], s[-1]);
        break;
    case Op::StoreAttr: store_attr(); break;
    case Op::DeleteAttr: r.delete_attribute(sp[-1], s[-1], name_at(f, in.arg)); break;
    case Op::StoreSubscr: store_subscr(); break;
    case Op::DeleteSubscr:
        r.use(sp[-1], s[-1]);
        if (s[-2] > 0 && !r.in_python(sp[-2], "__delitem__") && r.mutating(sp[-2], s[-2], false))
            r.event(EventKind::DelItem, sp[-2], s[-2], sp[-1], s[-1], nullptr, Internal);
        break;
    case Op::StoreGlobal: {
        int g = r.sources.constant(globals_of(f));
        r.adding(globals_of(f), g, name_at(f, in.arg));
        r.event(EventKind::SetItem, globals_of(f), g, name_at(f, in.arg), Internal, sp[-1], s[-1]);
        r.wrote(g, name_at(f, in.arg), s[-1]);
        break;
    }
    case Op::DeleteGlobal: r.note_break(break_unknown_value); break;
    case Op::BinaryOp: binary(); break;
    case Op::CompareOp: compare(); break;
    case Op::ContainsOp: contains(); break;
    case Op::IsOp: is_op(); break;
    case Op::UnaryNegative: unary(0); break;
    case Op::UnaryPositive: unary(1); break;
    case Op::UnaryInvert: unary(2); break;
    case Op::UnaryNot: unary(3); break;
    case Op::FormatValue:
        r.use(sp[-1], s[-1]);
        if (in.arg & 4) r.use(sp[-2], s[-2]);  // value and format specification
        r.told(sp[in.arg & 4 ? -2 : -1], s[in.arg & 4 ? -2 : -1], "__repr__");
        break;
    case Op::PushExcInfo: sh.result = s[-1]; break;
    case Op::WithExceptStart:
        if (PyMethod_Check(sp[-4])) r.call_target(sp[-4], s[-4]);
        break;
    case Op::CheckExcMatch:
        r.use_type(sp[-2], s[-2]);
        r.use(sp[-1], s[-1]);
        break;
    case Op::MatchMapping:
    case Op::MatchSequence: r.use_type(sp[-1], s[-1]); break;
    case Op::MatchKeys: r.use(sp[-2], s[-2]); break;
    case Op::MatchClass:
        if (s[-3] > 0) r.note_break(break_unknown_value, sp[-3]);
        break;
    case Op::GetAwaitable:
    case Op::GetAiter:
    case Op::GetAnext:
        if (s[-1] > 0) r.note_break(break_iterator, sp[-1]);
        break;
    case Op::GetLen:
        if (container(sp[-1]))
            r.length(sp[-1], s[-1]);
        else
            r.use(sp[-1], s[-1]);
        break;
    case Op::PopJumpIfFalse:
    case Op::PopJumpIfTrue:
    case Op::JumpIfFalseOrPop:
    case Op::JumpIfTrueOrPop: branch(); break;
    case Op::BeforeWith:
        if (static PyObject* const enter = PyUnicode_InternFromString("__enter__"); s[-1] > 0) {
            PyObject* how = _PyType_Lookup(Py_TYPE(sp[-1]), enter);
            if (how && !PyFunction_Check(how)) r.note_break(break_held, sp[-1]);  // a lock, a file
        }
        [[fallthrough]];
    case Op::PopJumpIfNone:
    case Op::PopJumpIfNotNone:
        if (s[-1] == Unknown)
            r.hole(sp[-1]);
        else
            r.use_type(sp[-1], s[-1]);
        break;
    case Op::GetIter:
    case Op::UnpackSequence:
    case Op::UnpackEx: iterate(); break;
    case Op::ForIter: for_iter(); break;
    case Op::Send:
        if (s[-2] > 0) r.note_break(break_iterator, sp[-2]);
        break;
    case Op::BuildTuple:
    case Op::BuildList:
    case Op::BuildString:
    case Op::BuildSlice: leave_slots(in.arg); break;
    case Op::BuildSet:
        r.hashed(sp, s, in.arg, 1);
        leave_slots(in.arg);
        break;
    case Op::BuildConstKeyMap: leave_slots(in.arg + 1); break;
    case Op::BuildMap:
        r.hashed(sp, s, in.arg, 2);
        leave_slots(2 * in.arg);
        break;
    case Op::ListAppend: add_to("append", true); break;
    case Op::SetAdd: add_to("add", false); break;
    case Op::ListExtend: add_to("extend", true); break;
    case Op::DictUpdate:
    case Op::DictMerge:
    case Op::SetUpdate: add_to("update", false); break;
    case Op::MapAdd:
        if (int target = s[-2 - in.arg]; target > 0) {
            r.use(sp[-2], s[-2]);
            r.set_item(sp[-2 - in.arg], target, sp[-2], sp[-1], s[-1]);
        } else {
            leave_slots(2);
        }
        break;
    case Op::Precall:
        if (!sp[-(in.arg + 2)] && PyMethod_Check(sp[-(in.arg + 1)])) sh.self = s[-(in.arg + 1)];
        break;
    case Op::Call: call(); break;
    case Op::CallFunctionEx: call_ex(); break;
    case Op::ImportName: import_name(); break;
    case Op::ImportFrom: sh.result = r.attribute(sp[-1], s[-1], name_at(f, in.arg)); break;
    case Op::ImportStar: r.note_break(break_unknown_value); break;
    default: break;
    }
}

void Recorder::before(Shadow& sh, Frame* f, const Ins& in, PyObject** sp) {
    now = f;
    if (sh.returned) consumed(sh);
    pending_.function = nullptr;
    sh.result = sh.self = kOpen;
    sh.unit = in.start;
    sh.keep_mark = keep_.size();
    sh.event_mark = events.size();
    sh.entered_mark = entered_;
    if (!moves(sh, f, in, sp)) Instructions{*this, sh, f, in, sp, sh.s.data() + (sp - slots_of(f))}.run();
    sh.own_events = events.size() - sh.event_mark;
}

// long: one row per instruction
void Recorder::after(Shadow& sh, Frame* f, const Ins& in, PyObject** sp) {
    now = f;
    sh.own_events = 0;
    PyObject** slots = slots_of(f);
    int* s = sh.s.data() + (sp - slots);
    PyObject* top = sp > slots + locals_count(code_of(f)) ? sp[-1] : nullptr;
    if (keep_.size() > sh.keep_mark) release(sh.keep_mark);  // the frames that ran below have been cleared by now
    bool claimed = false;                                    // what a frame returned is the result
    auto settle = [&](int result) {
        claimed = passes(sh, in.op, top);
        if (result == kWritten) return top && valued(top) ? written_shadow_ : lookup(top, true);
        if (result == kOpen) return claimed ? sh.returned_shadow : lookup(top, true);
        if (result == kInside && top && !is_tensor(top) && lookup(top, false) == Unknown) make_internal(top);
        if (result == Internal || result == kInside) return lookup(top, false);
        return known_source(result, top);
    };
    switch (in.op) {
    case Op::LoadGlobal:
        s[-1] = settle(sh.result);
        if (in.arg & 1) s[-2] = Internal;
        break;
    case Op::ImportName:
    case Op::ImportFrom:
    case Op::LoadDeref: s[-1] = settle(sh.result); break;
    case Op::LoadName: s[-1] = lookup(top, true); break;
    case Op::LoadClassderef:
        s[-1] = settle(sh.result);
        if (s[-1] > 0) use(top, s[-1]);  // the class body's own names come first: a value of theirs then fails the guard
        break;
    case Op::MakeCell:
        make_internal(slots[in.arg]);
        cell_shadow_.put(slots[in.arg],
                         sh.result > 0 && PyCell_GET(slots[in.arg]) && valued(PyCell_GET(slots[in.arg])) ? sh.result : int(Internal));
        sh.s[in.arg] = Internal;
        break;
    case Op::LoadClosure:
    case Op::LoadAssertionError:
    case Op::LoadBuildClass: s[-1] = Internal; break;
    case Op::LoadAttr:
    case Op::BinarySubscr: s[-1] = settle(sh.result); break;
    case Op::LoadMethod:
        s[-2] = Internal;
        s[-1] = sp[-2] ? sh.self : settle(sh.result);
        break;
    case Op::Precall:
        if (int *fn = s - (in.arg + 2), *self = s - (in.arg + 1); sp[-(in.arg + 2)]) {
            PyObject *function = sp[-(in.arg + 2)], *object = sp[-(in.arg + 1)];
            if (sh.self > 0) {  // a bound method was taken apart
                *fn = known_source(sources.child(SourceKind::MethodFunc, sh.self), function);
                *self = known_source(sources.child(SourceKind::MethodSelf, sh.self), object);
            }
            if (*self == Internal) *self = lookup(object, false);
            if (is_lru_cache(function)) *fn = lookup(function, false);
        }
        break;
    case Op::Call:
    case Op::CallFunctionEx:
        Py_CLEAR(sh.kept_names);
        show_mode();
        s[-1] = settle(sh.result);
        if (std::exchange(result_of_event_, false)) events.back().result = context_sets_.back().token = PyRef::share(top);
        break;
    case Op::ForIter:
        if (top && PyTuple_CheckExact(top) && sp - slots >= 2 && sp[-2] && reuses_its_tuple(sp[-2])) {
            s[-1] = Internal;
            enter_yielded(top);
            break;
        }
        [[fallthrough]];
    case Op::Send:
        if (top) s[-1] = settle(kOpen);
        break;
    case Op::UnpackSequence:
        for (int i = 1; i <= in.arg; ++i) s[-i] = lookup(sp[-i], true);
        break;
    case Op::UnpackEx:
        for (int i = 1; i <= 1 + (in.arg & 255) + (in.arg >> 8); ++i) s[-i] = lookup(sp[-i], true);
        break;
    case Op::BinaryOp:
    case Op::CompareOp:
    case Op::UnaryNegative:
    case Op::UnaryInvert:
    case Op::UnaryPositive:
    case Op::UnaryNot:
        settle_scalar();
        s[-1] = settle(sh.result);
        break;
    case Op::BuildTuple:
    case Op::BuildList:
    case Op::BuildSet:
    case Op::BuildMap:
    case Op::BuildConstKeyMap:
    case Op::MakeFunction:
    case Op::ListToTuple:
    case Op::GetIter:
        s[-1] = Internal;
        make_internal(top);
        break;
    case Op::ContainsOp:
    case Op::IsOp:
    case Op::BuildString:
    case Op::BuildSlice:
    case Op::FormatValue:
    case Op::GetLen:
    case Op::CheckExcMatch:
    case Op::MatchMapping:
    case Op::MatchSequence: s[-1] = Internal; break;
    case Op::MatchKeys:
    case Op::MatchClass: s[-1] = lookup(top, false); break;
    case Op::BeforeWith:
        s[-1] = settle(kOpen);
        s[-2] = Internal;
        break;
    case Op::WithExceptStart: s[-1] = lookup(top, false); break;
    case Op::PushExcInfo:
        s[-1] = sh.result > 0 ? sh.result : int(Internal);
        s[-2] = Internal;
        break;
    case Op::CopyFreeVars: {
        int n = locals_count(code_of(f)), first = n - free_vars_count(code_of(f));
        for (int i = first; i < n && sh.function > 0; ++i)
            if (slots[i]) sh.s[i] = known_source(sources.child(SourceKind::ClosureCell, sh.function, nullptr, i - first), slots[i]);
        break;
    }
    default: break;
    }
    if (!sh.returned) return;
    if (claimed)
        Py_CLEAR(sh.returned);
    else
        consumed(sh);
}

}  // namespace framejit
