// From the logs of a recording to a plan, and running it: tensors, objects, events, exit state.
#include "plugin/frame/frame.h"
#include "plugin/replay/plan.h"
#include "plugin/replay/tell.h"
#include <cmath>
#include <cstring>

namespace framejit {

namespace {
struct SourceList {  // sources that the plan reads, numbered
    std::vector<int>& list;
    std::unordered_map<int, int> at;
    int operator()(int source) {
        auto [it, fresh] = at.try_emplace(source, int(list.size()));
        if (fresh) list.push_back(source);
        return it->second;
    }
};
}  // namespace

// Operators that raise where an index is out of range, and whose result nobody uses: wanted all the same. How many.
static size_t want_unread_checks(const Recorder& r, std::vector<int>& wanted) {
    std::unordered_set<int> read(wanted.begin(), wanted.end());
    const size_t before = wanted.size();
    for (size_t i = r.ops.size(); i-- > 0;) {  // backwards: what is only read by operators that nobody reads is unread too
        const OpRow& op = r.ops[i];
        const bool has_result = op.results.size() && op.results[0] >= 0;
        bool needed = op.schema->mutates || std::any_of(op.results.begin(), op.results.end(), [&](int t) { return read.count(t) != 0; });
        if (!needed && has_result && raises_by_value(op.schema->name)) {
            wanted.push_back(op.results[0]);
            needed = true;
        }
        if (needed) read.insert(op.tensors.begin(), op.tensors.end());
    }
    return wanted.size() - before;
}

// long: numbers sources, tensors and constants in the one order that run() relies on
std::unique_ptr<RegionPlan> RegionPlan::build(Recorder& r, ExitState exit, std::string& error) {
    auto p = std::make_unique<RegionPlan>();
    p->exit = std::move(exit);
    for (const Event& e : r.events) {
        std::vector<int> recipes = {r.recipe_of(e.target), r.recipe_of(e.key), r.recipe_of(e.value)};
        for (const Operand& a : e.args) recipes.push_back(r.recipe_of(a));
        p->event_recipes_.push_back(std::move(recipes));
    }
    if (!r.failure.empty()) {
        error = r.failure;
        return nullptr;
    }
    for (const Event& e : r.events) {
        auto made = e.result ? r.recipes.memo.find(e.result.get()) : r.recipes.memo.end();
        p->result_recipes_.push_back(made == r.recipes.memo.end() ? -1 : made->second);
    }
    for (const Recipe& recipe : r.recipes.rows)
        for (int part : recipe.parts)
            if (r.recipes.rows[size_t(part)].kind == Recipe::EventResult) {
                error = "a container holds what a call with an effect returns";
                return nullptr;
            }
    SourceList source{p->sources_, {}};
    std::unordered_map<int, int> wanted;
    for (Recipe& recipe : r.recipes.rows) {
        if (recipe.kind == Recipe::Src) {
            if (r.sources[recipe.id].kind != SourceKind::Slot)
                r.guards.push_back({GuardKind::Present, recipe.id, {}, 0});  // passed on without a look
            recipe.id = source(recipe.id);
        }
        if (recipe.kind == Recipe::Tensor) {
            auto [it, fresh] = wanted.try_emplace(recipe.id, int(p->wanted_rows_.size()));
            if (fresh) p->wanted_rows_.push_back(recipe.id);
            recipe.id = it->second;
        }
    }
    p->extra_ = want_unread_checks(r, p->wanted_rows_);
    for (const DataGuard& g : r.data_guards) {
        (g.deferred ? p->deferred_ : p->data_guards_).push_back(g);
        if (g.deferred) p->wanted_rows_.push_back(g.row);
    }
    auto bind = [&](const TensorProgram& program, std::vector<int>& inputs) {
        for (int t : program.input_rows()) {
            if (t < 0) {  // a Python number
                inputs.push_back(source(~t));
                continue;
            }
            const TensorRow& row = r.tensors[t];
            if (row.source > 0)
                inputs.push_back(source(row.source));
            else if (row.constant) {
                inputs.push_back(~int(p->constants_.size()));
                p->constants_.push_back(row.constant);
            } else {
                error = "a tensor that no captured operator made";
                return false;
            }
        }
        return true;
    };
    CapturedGraph graph = lower(r, p->wanted_rows_, false);
    if (!graph.failure.empty()) {
        error = graph.failure;
        return nullptr;
    }
    if (!p->deferred_.empty() && (graph.random || !graph.written.empty())) {
        error = "a test of a tensor's value comes together with writes or random numbers";
        return nullptr;
    }
    graph.graph.name = region_name(r.root_code, r.entry_unit);
    p->program_ = TensorProgram::build(std::move(graph), error);
    if (!p->program_ || !bind(*p->program_, p->program_inputs_)) return nullptr;
    if (!p->data_guards_.empty()) {
        std::vector<int> rows;
        for (const DataGuard& g : p->data_guards_) rows.push_back(g.row);
        CapturedGraph data = lower(r, rows, true);
        if (!data.failure.empty()) {
            error = data.failure;
            return nullptr;
        }
        p->data_ = TensorProgram::build(std::move(data), error);
        if (!p->data_ || !bind(*p->data_, p->data_inputs_)) return nullptr;
    }
    p->recipes_.rows = std::move(r.recipes.rows);
    p->events_ = std::move(r.events);
    p->simple_ = p->events_.empty() && p->exit.slots.size() == 1 && p->recipes_.rows[p->exit.slots[0]].kind == Recipe::Tensor;
    for (Event& e : p->events_)  // what recipes say is all that is needed: let go of the recording's objects
        for (Operand* o : {&e.target, &e.key, &e.value}) o->object = {};
    for (Event& e : p->events_) e.args.clear(), e.result = {};
    return p;
}

// ---- objects ----
struct RegionPlan::Made {
    PyObject* const* values;
    const Objects& tensors;
    std::vector<PyRef> objects;  // by recipe
};

namespace {
PyObject* raise_missing() {
    PyErr_SetString(PyExc_SystemError, "framejit: a value that the plan needs is missing");
    return nullptr;
}
PyTypeObject* builtin_base(PyTypeObject* t) {
    while (t->tp_flags & Py_TPFLAGS_HEAPTYPE) t = t->tp_base;
    return t;
}
}  // namespace

// long: one case per kind of recipe
PyObject* RegionPlan::make(Made& m, int i) const {  // borrowed; null with a Python error, or null without for Recipe::Null
    const Recipe& r = recipes_.rows[i];
    if (r.kind == Recipe::Const) return r.object.get();
    if (r.kind == Recipe::Null) return nullptr;
    if (m.objects[i]) return m.objects[i].get();
    if (r.kind == Recipe::EventResult) return nullptr;  // until its event has happened
    auto part = [&](size_t k) { return make(m, r.parts[k]); };
    auto done = [&](PyObject* o) {
        m.objects[i] = PyRef::steal(o);
        return o;
    };
    auto missing = [] { return PyErr_Occurred() ? nullptr : raise_missing(); };
    switch (r.kind) {
    case Recipe::Src: return m.values[r.id] ? done(Py_NewRef(m.values[r.id])) : nullptr;  // null: an unbound local passed on
    case Recipe::Tensor: return done(Py_NewRef(m.tensors[r.id]));
    case Recipe::List: {
        PyObject* list = done(PyList_New(0));  // entered before its items: it may hold itself
        for (size_t k = 0; list && k < r.parts.size(); ++k) {
            PyObject* x = part(k);
            if (!x || PyList_Append(list, x) < 0) return missing();
        }
        return list;
    }
    case Recipe::Tuple:
    case Recipe::Set:
    case Recipe::FrozenSet:
    case Recipe::TypeCall: {
        PyRef items = PyRef::steal(PyTuple_New(Py_ssize_t(r.parts.size())));
        for (size_t k = 0; items && k < r.parts.size(); ++k) {
            PyObject* x = part(k);
            if (!x) return missing();
            PyTuple_SET_ITEM(items.get(), Py_ssize_t(k), Py_NewRef(x));
        }
        if (r.kind == Recipe::Tuple) return done(items.release());
        if (r.kind == Recipe::TypeCall) return done(PyObject_CallOneArg(r.object.get(), PyTuple_GET_ITEM(items.get(), 0)));
        return done(r.kind == Recipe::Set ? PySet_New(items.get()) : PyFrozenSet_New(items.get()));
    }
    case Recipe::Dict: {
        PyObject* d = done(PyDict_New());
        for (size_t k = 0; d && k + 1 < r.parts.size(); k += 2) {
            PyObject *key = part(k), *x = key ? part(k + 1) : nullptr;
            if (!x || PyDict_SetItem(d, key, x) < 0) return missing();
        }
        return d;
    }
    case Recipe::Cell: {
        PyObject* cell = done(PyCell_New(nullptr));
        PyObject* x = part(0);
        if (!x && PyErr_Occurred()) return nullptr;
        if (x) PyCell_Set(cell, x);
        return cell;
    }
    case Recipe::Method: {
        PyObject *fn = part(0), *self = fn ? part(1) : nullptr;
        return self ? done(PyMethod_New(fn, self)) : nullptr;
    }
    case Recipe::BoundBuiltin: {
        PyObject* self = part(0);
        return self ? done(PyObject_GetAttr(self, r.object.get())) : nullptr;
    }
    case Recipe::Function: return make_function(m, i);
    case Recipe::Instance: return make_instance(m, i);
    case Recipe::Reduced: return make_reduced(m, i);
    default: return raise_missing();
    }
}
PyObject* RegionPlan::make_function(Made& m, int i) const {
    const Recipe& r = recipes_.rows[i];
    auto* like = (PyFunctionObject*)r.object.get();
    PyObject* fn = PyFunction_NewWithQualName(like->func_code, like->func_globals, like->func_qualname);
    if (!fn) return nullptr;
    m.objects[i] = PyRef::steal(fn);  // a closure may hold the function itself
    PyObject *defaults = make(m, r.parts[0]), *kwdefaults = defaults ? make(m, r.parts[1]) : nullptr;
    if (!kwdefaults) return nullptr;
    if (defaults != Py_None && PyFunction_SetDefaults(fn, defaults) < 0) return nullptr;
    if (kwdefaults != Py_None && PyFunction_SetKwDefaults(fn, kwdefaults) < 0) return nullptr;
    if (r.parts.size() > 2) {
        PyRef closure = PyRef::steal(PyTuple_New(Py_ssize_t(r.parts.size()) - 2));
        for (size_t k = 2; closure && k < r.parts.size(); ++k) {
            PyObject* cell = make(m, r.parts[k]);
            if (!cell) return nullptr;
            PyTuple_SET_ITEM(closure.get(), Py_ssize_t(k) - 2, Py_NewRef(cell));
        }
        if (!closure || PyFunction_SetClosure(fn, closure.get()) < 0) return nullptr;
    }
    if (like->func_annotations &&
        PyFunction_SetAnnotations(
            fn, PyRef::steal(PyFunction_GetAnnotations((PyObject*)like) ? Py_NewRef(like->func_annotations) : nullptr).get()) < 0)
        PyErr_Clear();
    if (r.dict >= 0) {
        PyObject* d = make(m, r.dict);
        if (!d || PyObject_SetAttrString(fn, "__dict__", d) < 0) return nullptr;
    }
    return fn;
}
PyObject* RegionPlan::make_instance(Made& m, int i) const {
    const Recipe& r = recipes_.rows[i];
    auto* type = (PyTypeObject*)r.object.get();
    PyTypeObject* base = builtin_base(type);
    PyRef args = PyRef::steal(PyTuple_New(0));
    std::vector<PyObject*> parts;
    if (base == &PyTuple_Type) {  // immutable: its items come first
        PyRef items = PyRef::steal(PyTuple_New(Py_ssize_t(r.parts.size())));
        for (size_t k = 0; k < r.parts.size(); ++k) {
            PyObject* x = make(m, r.parts[k]);
            if (!x) return nullptr;
            PyTuple_SET_ITEM(items.get(), Py_ssize_t(k), Py_NewRef(x));
        }
        args = PyRef::steal(PyTuple_Pack(1, items.get()));
    }
    PyObject* o = base->tp_new(type, args.get(), nullptr);
    if (!o) return nullptr;
    m.objects[i] = PyRef::steal(o);
    for (size_t k = 0; base != &PyTuple_Type && k < r.parts.size();) {
        PyObject* x = make(m, r.parts[k++]);
        if (!x) return nullptr;
        int bad = 0;
        if (PyDict_Check(o)) {
            PyObject* v = make(m, r.parts[k++]);
            bad = !v || (PyODict_Check(o) ? PyODict_SetItem(o, x, v) : PyDict_SetItem(o, x, v)) < 0;
        } else if (PyList_Check(o))
            bad = PyList_Append(o, x) < 0;
        else
            bad = PyObject_SetAttrString(o, "args", x) < 0;
        if (bad) return nullptr;
    }
    if (r.dict >= 0) {
        PyObject* contents = make(m, r.dict);
        PyRef d = PyRef::steal(contents ? PyObject_GenericGetDict(o, nullptr) : nullptr);
        if (!d || PyDict_Update(d.get(), contents) < 0) return nullptr;
    }
    return o;
}
PyObject* RegionPlan::make_reduced(Made& m, int i) const {
    const Recipe& r = recipes_.rows[i];
    PyObject *fn = make(m, r.parts[0]), *args = fn ? make(m, r.parts[1]) : nullptr;
    if (!args) return nullptr;
    PyObject* o = PyObject_CallObject(fn, args);
    if (!o) return nullptr;
    m.objects[i] = PyRef::steal(o);
    PyObject* state = r.parts.size() > 2 ? make(m, r.parts[2]) : Py_None;
    if (!state) return nullptr;
    if (state != Py_None) {
        PyRef setstate = PyRef::steal(PyObject_GetAttrString(o, "__setstate__"));
        if (setstate) {
            if (PyRef ok = PyRef::steal(PyObject_CallOneArg(setstate.get(), state)); !ok) return nullptr;
        } else {
            PyErr_Clear();
            PyRef d = PyRef::steal(PyObject_GenericGetDict(o, nullptr));
            if (!d || PyDict_Update(d.get(), PyTuple_Check(state) ? PyTuple_GET_ITEM(state, 0) : state) < 0) return nullptr;
        }
    }
    for (size_t k = 3; k < r.parts.size(); ++k) {
        PyObject* items = make(m, r.parts[k]);
        if (!items) return nullptr;
        if (items == Py_None) continue;
        for (Py_ssize_t n = 0; n < PyList_GET_SIZE(items); ++n) {
            PyObject* x = PyList_GET_ITEM(items, n);
            PyRef ok = k == 3 ? PyRef::steal(PyObject_CallMethod(o, "append", "(O)", x))
                              : PyRef::share(PyObject_SetItem(o, PyTuple_GET_ITEM(x, 0), PyTuple_GET_ITEM(x, 1)) < 0 ? nullptr : Py_None);
            if (!ok) return nullptr;
        }
    }
    return o;
}

// ---- events ----
int RegionPlan::perform(size_t index, Made& m) const {
    const Event& e = events_[index];
    const std::vector<int>& recipes = event_recipes_[index];
    auto get = [&](int k) { return make(m, recipes[k]); };
    PyObject* target = get(0);
    if (!target) {
        if (!PyErr_Occurred()) raise_missing();
        return -1;
    }
    PyObject *key = get(1), *value = get(2);
    if (PyErr_Occurred()) return -1;
    switch (e.kind) {
    case EventKind::SetAttr:
        return PyModule_Check(target) ? PyObject_SetAttr(target, key, value) : PyObject_GenericSetAttr(target, key, value);
    case EventKind::DelAttr: return PyObject_GenericSetAttr(target, key, nullptr);
    case EventKind::SetItem: return PyObject_SetItem(target, key, value);
    case EventKind::DelItem: return PyObject_DelItem(target, key);
    case EventKind::SetCell: return PyCell_Set(target, value);
    case EventKind::Call: {
        std::vector<PyObject*> args;
        for (size_t k = 3; k < recipes.size(); ++k) {
            args.push_back(get(int(k)));
            if (!args.back()) return -1;
        }
        size_t names = e.kwnames ? size_t(PyTuple_GET_SIZE(e.kwnames.get())) : 0;
        PyRef result = PyRef::steal(PyObject_Vectorcall(target, args.data(), args.size() - names, e.kwnames.get()));
        if (const int made = result_recipes_[index]; made >= 0) m.objects[size_t(made)] = result;
        return result ? 0 : -1;
    }
    }
    return -1;
}

// ---- running ----
namespace {
struct Inputs {  // tensors for a program, from source values and constants; held while it runs
    Objects list;
    Inputs(const std::vector<int>& positions, PyObject* const* values, const std::vector<PyRef>& constants) {
        list.reserve(positions.size());
        for (int i : positions) list.push_back(Py_NewRef(i < 0 ? constants[~i].get() : values[i]));
    }
    ~Inputs() {
        for (PyObject* t : list) Py_DECREF(t);
    }
};
}  // namespace

namespace {
std::string bytes_of(PyObject* t) {
    TensorView v = view_of(t);
    std::string s;
    int size = size_of(v.dtype);
    for (int64_t k = 0; k < v.numel; ++k) {
        int64_t at = 0, rest = k;
        for (int d = v.ndim; d-- > 0; rest /= v.sizes[d]) at += rest % v.sizes[d] * v.strides[d];
        s.append((const char*)v.data + at * size, size);
    }
    return s;
}
}  // namespace

bool RegionPlan::deferred_hold(const Objects& tensors) const {
    const size_t first = tensors.size() - deferred_.size();
    for (size_t i = 0; i < deferred_.size(); ++i)
        if (bytes_of(tensors[first + i]) != deferred_[i].expected) return false;
    return true;
}

int RegionPlan::run(PyObject* const* given, std::vector<PyObject*>& slots) const {
    Objects tensors;
    // Something else may run while the program does, and check the same guards: hold what the recipes need.
    struct Held {
        std::vector<PyObject*> list;
        ~Held() {
            for (PyObject* o : list) Py_XDECREF(o);
        }
    } held;
    if (!simple_) {
        held.list.assign(given, given + sources_.size());
        for (PyObject* o : held.list) Py_XINCREF(o);
    }
    PyObject* const* values = simple_ ? given : held.list.data();
    {
        Inputs inputs(program_inputs_, values, constants_);
        if (int status = program_->run(inputs.list.data(), tensors)) return status;
    }
    struct Owned {
        Objects& list;
        ~Owned() {
            for (PyObject* t : list) Py_DECREF(t);
        }
    } owned{tensors};
    if (!deferred_hold(tensors)) return kAnotherTruth;
    slots.clear();
    if (simple_) {
        slots.push_back(Py_NewRef(tensors[recipes_.rows[exit.slots[0]].id]));
        return 0;
    }
    Made m{values, tensors, std::vector<PyRef>(recipes_.rows.size())};
    // All objects first: an event may change or free what a source led to.
    bool good = true;
    for (const auto& recipes : event_recipes_)
        for (int i : recipes) good = good && (make(m, i) || !PyErr_Occurred());
    for (int i : exit.slots) good = good && (make(m, i) || !PyErr_Occurred());
    for (size_t e = 0; e < events_.size() && good; ++e) good = perform(e, m) == 0;
    for (size_t k = 0; k < exit.slots.size() && good; ++k) slots.push_back(Py_XNewRef(make(m, exit.slots[k])));
    if (!good) {
        for (PyObject* o : slots) Py_XDECREF(o);
        slots.clear();
        return -1;
    }
    return 0;
}

int RegionPlan::run_returning(PyObject* const* values, PyObject** result) const {
    thread_local std::vector<PyObject*> slots;
    std::vector<PyObject*> mine;
    mine.swap(slots);  // a nested call gets its own
    int status = run(values, mine);
    if (status == 0) *result = mine[0];
    mine.clear();
    slots.swap(mine);
    return status;
}

bool RegionPlan::data_holds(PyObject* const* values, int* failed) const {
    if (!data_) return true;
    Objects tensors;
    Inputs inputs(data_inputs_, values, constants_);
    if (data_->run(inputs.list.data(), tensors)) {
        PyErr_Clear();
        return false;
    }
    bool same = true;
    for (size_t i = 0; i < tensors.size(); ++i) {
        if (same && bytes_of(tensors[i]) != data_guards_[i].expected) {
            same = false;
            if (failed) *failed = int(i);
        }
        Py_DECREF(tensors[i]);
    }
    return same;
}

int RegionPlan::traverse(visitproc visit, void* arg) const {
    for (const Recipe& r : recipes_.rows) Py_VISIT(r.object.get());
    for (const PyRef& c : constants_) Py_VISIT(c.get());
    for (const Event& e : events_) Py_VISIT(e.kwnames.get());
    for (const TensorProgram* p : {program_.get(), data_.get()})
        if (p)
            if (int r = p->traverse(visit, arg)) return r;
    return 0;
}

}  // namespace framejit
