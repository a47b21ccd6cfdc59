#include "plugin/replay/session.h"
#include "plugin/record/kinds.h"
#include "plugin/replay/tell.h"
#include "plugin/torch/internals.h"
#include <atomic>
#include <cstring>
#include <unordered_map>

namespace framejit {

thread_local Session* session = nullptr;
extern PyObject* disabled_marker;

namespace {
std::atomic<int> sessions{0};  // the hook is installed while there are any

// torch's own Python that sets something up when it is first needed, in the middle of whatever is done: no part of a region.
bool sets_up_torch(PyCodeObject* co) {
    static const struct {
        PyObject* name;  // interned, as the names of code objects are
        const char* file;
    } functions[] = {{PyUnicode_InternFromString("__getattr__"), "torch/_ops.py"},
                     {PyUnicode_InternFromString("_get_packet"), "torch/_ops.py"},
                     {PyUnicode_InternFromString("lazy_load_decompositions"), "torch/_functorch/predispatch.py"},
                     {PyUnicode_InternFromString("lazy_load_decompositions"), "torch/_functorch/vmap.py"}};
    for (const auto& f : functions) {
        if (co->co_name != f.name) continue;
        const char* file = PyUnicode_AsUTF8(co->co_filename);
        if (file && std::string_view(file).ends_with(f.file)) return true;
    }
    return false;
}
PyObject* hook(PyThreadState* ts, Frame* f, int throwflag) {
    Session* s = session;
    if (!s) return eval_default(ts, f, throwflag);
    // Every operator under a dispatch mode asks Python for a rule of (operator, mode); ours has none. Answering here saves 1.2 us per
    // operator.
    if (!throwflag && is_dispatch_rule_lookup(code_of(f))) {
        finish_frame_without_running(f);
        return Py_NewRef(Py_None);
    }
    if (active_recorder && sets_up_torch(code_of(f))) {
        Recorder* r = std::exchange(active_recorder, nullptr);
        PyObject* result = eval_default(ts, f, throwflag);
        active_recorder = r;
        return result;
    }
    if (!s->watches_new_frames() || traced(ts)) return eval_default(ts, f, throwflag);
    const Code* code = decode(code_of(f));
    if (!code || code->native) return eval_default(ts, f, throwflag);
    return interpret(ts, f, throwflag, code);
}
// The frame's names are its slots: the body of a class keeps them in a dict.
bool keeps_slots(Frame* f) { return code_of(f)->co_flags & CO_OPTIMIZED; }
bool generator_code(PyCodeObject* co) { return co->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR); }
}  // namespace

Session::Session(FunctionProgram& p) : program_(p), outer_(session), outer_watcher_(watcher), idle_before_(idle_operators) {
    if (sessions++ == 0) set_eval_hook(hook);
    session = this;
    watcher = this;
    watch_calls_ = true;  // the compiled function's own frame
}
Session::~Session() {
    if (recorder_ && recorder_->broken()) program_.note(recorder_->found);  // under fullgraph, raised where it happened
    if (recorder_) abandon("");
    stop_recording();
    program_.operators_between = std::max(program_.operators_between, idle_operators - idle_before_);
    watcher = outer_watcher_;
    session = outer_;
    if (--sessions == 0) set_eval_hook(nullptr);
}

bool Session::watches_new_frames() const { return recorder_ ? active_recorder == recorder_.get() : watch_calls_; }

void* Session::enter(Frame* f, int throwflag) {
    Activation* a;
    if (free_.empty()) {
        pool_.emplace_back();
        a = &pool_.back();
    } else {
        a = free_.back();
        free_.pop_back();
    }
    *a = Activation{};
    a->frame = f;
    a->watched_before = watch_calls_;
    if (recorder_) {
        a->recording = serial_;
        a->shadow = recorder_->enter(f);
        return a;
    }
    bool first = !entered_;
    entered_ = true;
    if (first && code_of(f) != program_.owner->code) watch_calls_ = false;  // something else stands before it (a descriptor): keep looking
    PyObject* marks = PyFunction_Check(function_of(f)) ? ((PyFunctionObject*)function_of(f))->func_dict : nullptr;
    bool disabled = marks && PyDict_GetItemWithError(marks, disabled_marker);
    bool fresh = !disabled && !throwflag && !has_started(f) && !is_generator(f) && !generator_code(code_of(f)) && keeps_slots(f);
    a->driven = fresh && (!first || code_of(f) == program_.owner->code);
    a->at_point = a->driven;
    watch_calls_ = false;
    return a;
}

const Ins* Session::before(void* p, Frame* f, const Ins& ins, PyObject**& sp) {
    Activation& a = *static_cast<Activation*>(p);
    if (recorder_ && recorder_->broken() && !give_up_or_raise()) return nullptr;
    if (records(a)) {
        bool moved = &ins != a.begun;
        if (a.is_root && moved && !whole_ && program_.is_site(code_of(f), ins.start)) {
            if (!finish(a, f, ins, sp, nullptr)) return nullptr;
        } else {
            recorder_->before(*a.shadow, f, ins, sp);
            if (!recorder_->broken()) return &ins;
            if (!give_up_or_raise()) return nullptr;
        }
    }
    if (!recorder_ && a.driven && a.at_point) {
        a.at_point = false;
        const Ins* next = point(a, f, ins, sp);
        if (next != &ins || recorder_) return next;
    }
    if (!recorder_) watch_calls_ = a.driven && program_.is_site(code_of(f), ins.start) && !program_.is_quiet(code_of(f), ins.start);
    return &ins;
}

bool Session::moves(void* p, Frame* f, const Ins& ins, PyObject** sp) {
    Activation& a = *static_cast<Activation*>(p);
    return records(a) && !a.is_root && !recorder_->broken() && recorder_->moves(*a.shadow, f, ins, sp);
}
void Session::after(void* p, Frame* f, const Ins& ins, PyObject** sp) {
    Activation& a = *static_cast<Activation*>(p);
    if (recorder_ && recorder_->broken() && !program_.options.fullgraph) give_up();
    if (records(a)) {
        recorder_->after(*a.shadow, f, ins, sp);
        if (recorder_->broken() && !program_.options.fullgraph) give_up();
        return;
    }
    if (recorder_) return;
    watch_calls_ = false;
    if (program_.is_site(code_of(f), ins.start) && (a.driven || a.shadow || a.recording) && !is_generator(f) && keeps_slots(f)) {
        a.driven = true;
        a.at_point = true;
    }
}
void Session::unwound(void* p, Frame* f, int depth) {
    Activation& a = *static_cast<Activation*>(p);
    if (records(a)) recorder_->unwound(*a.shadow, f, depth);
}
void Session::leave(void* p, Frame* f, PyObject* result, int depth, Exit exit) {
    Activation& a = *static_cast<Activation*>(p);
    if (recorder_ && recorder_->broken() && !program_.options.fullgraph) give_up();
    if (records(a)) {
        if (!a.is_root)
            recorder_->leave(a.shadow, f, result, depth, exit == Exit::Yield);
        else if (exit == Exit::Return && !recorder_->broken()) {
            PyObject** sp = slots_of(f) + depth;
            Ins last{Op::ReturnValue, 0, 0, 0, -1};
            if (!finish(a, f, last, sp, result)) PyErr_WriteUnraisable(nullptr);
        } else if (!recorder_->broken())
            abandon(exit == Exit::Error ? "it raises an exception" : "its frame is handed over to CPython");
    }
    watch_calls_ = a.watched_before;
    free_.push_back(&a);
}

// ---- points ----
PyObject* const* Session::entry_slots(Frame* f, int depth) {  // [-1] is the function
    int n = depth;
    slots_.resize(n + 1);
    slots_[0] = function_of(f);
    std::copy(slots_of(f), slots_of(f) + n, slots_.begin() + 1);
    return slots_.data() + 1;
}
const Ins* Session::point(Activation& a, Frame* f, const Ins& ins, PyObject**& sp) {
    if (mode_pushed_ && pop_mode() == 0) mode_pushed_ = false;
    if (mode_pushed_ || mode_is_on()) return &ins;  // one that the function has entered, maybe above ours
    Point& p = program_.point(code_of(f), ins.start);
    if (program_.try_whole(p)) {
        whole_ = true;
        recording_point_ = &p;
        start(a, f, ins, sp);
        return &ins;
    }
    int depth = int(sp - slots_of(f));
    PyObject* const* slots = entry_slots(f, depth);
    std::vector<const Entry*> others;
    while (std::shared_ptr<Entry> e = program_.find(p, slots, &others)) {
        int status = 0;
        const Ins* next = replay(a, f, *e, sp, status);
        if (status <= 0) return next;
        if (status != RegionPlan::kAnotherTruth) return &ins;  // an operator raises, and eager will say so
        others.push_back(e.get());
        program_.another_truth(p, e);
    }
    if (program_.worth_recording(p)) {
        program_.note_miss(p, slots);
        recording_point_ = &p;
        start(a, f, ins, sp);
    }
    return &ins;
}
// Puts the frame into the exit state of the region.
const Ins* Session::replay(Activation& a, Frame* f, Entry& e, PyObject**& sp, int& status) {
    std::vector<PyObject*> made;
    status = run_entry(e, [&] { return e.plan->run(e.guards.values(), made); });
    e.guards.release();
    if (status != 0) return nullptr;
    ++e.hits;
    compiled = true;
    if (e.plan->exit.returns) {
        *sp++ = made[0];
        return return_instruction();
    }
    PyObject** slots = slots_of(f);
    int before = int(sp - slots), after = int(made.size());
    std::vector<PyObject*> old(slots, slots + before);
    for (int i = 0; i < after; ++i) slots[i] = made[i];
    for (int i = after; i < before; ++i) slots[i] = nullptr;
    sp = slots + after;
    for (PyObject* o : old) Py_XDECREF(o);  // last: a finalizer may look at the frame
    const Code* code = decode(code_of(f));
    a.at_point = false;
    return &code->ins[code->at[e.plan->exit.unit]];
}

void Session::start(Activation& a, Frame* f, const Ins& ins, PyObject** sp) {
    for (PyObject** slot = slots_of(f); slot < sp; ++slot)
        if (*slot && Py_REFCNT(*slot) == 1 && has_finalizer(*slot)) return put_off("a local object has a finalizer (__del__)");
    // The mode would be pushed inside the level, and a break in one of its operators would pop it while they save and restore modes.
    if (inside_transform()) return put_off("a transform of torch.func has been entered before");
    auto recorder = std::make_unique<Recorder>(f);  // notes torch's state as it is without our mode
    if (!mode_pushed_) {
        if (init_dispatch() < 0 || push_mode() < 0) {
            PyErr_Clear();
            return;
        }
        mode_pushed_ = true;
    }
    recorded = true;
    ++recording_point_->recordings;
    recorder_ = std::move(recorder);
    ++serial_;
    recorder_->no_data_guards = &program_.no_data_guards;
    recorder_->entry_unit = ins.start;
    recorder_->strict = program_.options.fullgraph;
    recorder_->keeps_entry = program_.options.self_check;
    a.recording = serial_;
    a.is_root = true;
    a.begun = &ins;
    active_recorder = recorder_.get();
    exception_at_start_ = exception_in_flight(PyThreadState_Get());
    started_ms_ = now_ms();
    tell_bytecode(code_of(f));
    a.shadow = recorder_->enter_root(f, int(sp - slots_of(f)));
    recorder_->before(*a.shadow, f, ins, sp);
}

// The mode goes with the recording: guards compare torch's state without it.
void Session::stop_recording() {
    active_recorder = nullptr;
    whole_ = false;
    watch_calls_ = false;
    if (!mode_pushed_) return;
    PyObject *t, *v, *tb;
    PyErr_Fetch(&t, &v, &tb);
    if (pop_mode() == 0) mode_pushed_ = false;
    PyErr_Restore(t, v, tb);
}

// False: a break is an error here, and it is set.
bool Session::give_up_or_raise() {
    const Break b = recorder_->found;
    give_up();
    if (program_.options.fullgraph) raise_break(b);
    return !program_.options.fullgraph;
}
// A break: the frames on its chain are cut there from now on.
void Session::give_up() {
    const Break b = recorder_->found;
    const bool quiet = b.reason == &break_effect || b.reason == &break_held || b.reason == &break_leak || b.reason == &break_impure_call;
    for (auto& place : recorder_->chain) program_.add_site(place.first, place.second, quiet && &place == &recorder_->chain.back());
    if (b.reason != &break_iterator && b.reason != &break_foreign) program_.note(b);  // those two are consequences of an earlier one
    stop_recording();
    recorder_.reset();
}
void Session::abandon(const std::string& why) {
    stop_recording();
    if (recording_point_ && !why.empty()) put_off(why);
    recorder_.reset();
}
void Session::put_off(const std::string& why) {
    Point& p = *recording_point_;
    ++p.failures;
    p.try_again = p.visits + (1L << std::min(p.failures, 20));
    program_.stays_eager(p, why);
}

// ---- the end of a region ----
// What a live `with` changed belongs to the exit state. Only the grad mode can be set again; other differences fail the region.
void Session::restore_modes() {
    if (recorder_->state.matches()) return;
    static PyObject* set = torch_c_function("_set_grad_enabled");
    bool grad = grad_enabled();
    auto set_grad = [&](bool on) { Py_XDECREF(PyObject_CallOneArg(set, on ? Py_True : Py_False)); };
    if (set) {
        set_grad(!grad);
        bool same = recorder_->state.matches();
        set_grad(grad);
        if (same) {
            Event e{EventKind::Call};
            e.target = {Operand::Const, 0, PyRef::share(set)};
            e.args.push_back({Operand::Const, 0, PyRef::share(grad ? Py_True : Py_False)});
            recorder_->events.push_back(std::move(e));
            return;
        }
    }
    recorder_->fail("torch's state is changed where the region ends: " + recorder_->state.difference());
}
ExitState Session::exit_state(Activation& a, Frame* f, const Ins& ins, PyObject** sp, PyObject* result) {
    ExitState exit;
    exit.returns = result != nullptr;
    int depth = int(sp - slots_of(f));
    if (exception_in_flight(PyThreadState_Get()) != exception_at_start_)
        recorder_->fail(result ? "the region leaves an exception handler" : "the region ends inside an exception handler");
    if (result) {
        exit.slots.push_back(recorder_->recipe_of(result, a.shadow->s[depth]));
        return exit;
    }
    exit.unit = ins.start;
    for (int i = 0; i < depth; ++i) exit.slots.push_back(recorder_->recipe_of(slots_of(f)[i], a.shadow->s[i]));
    return exit;
}
bool Session::finish(Activation& a, Frame* f, const Ins& ins, PyObject** sp, PyObject* result) {
    const bool whole = whole_ && result;
    stop_recording();
    double record_ms = now_ms() - started_ms_;
    a.is_root = false;
    a.recording = 0;
    if (mode_pushed_ || mode_is_on())  // one that the region has entered: it would see what we ask torch
        return abandon("a dispatch mode or function mode of torch is on where it ends"), true;
    std::unique_ptr<Recorder> r = std::move(recorder_);  // first: nothing below is part of the region
    Point& p = *recording_point_;
    if (r->ops.empty() && r->failure.empty()) {  // nothing to gain; other paths from here may have some
        ++p.empty;
        p.try_again = p.visits + (1L << std::min(p.empty, 20));
        return true;
    }
    recorder_ = std::move(r);
    PyObject *t, *v, *tb;
    PyErr_Fetch(&t, &v, &tb);
    if (!result)
        restore_modes();
    else if (!recorder_->state.matches())
        recorder_->fail("torch's state is changed by the region: " + recorder_->state.difference());
    if (recorder_->leaves_generators()) recorder_->fail("a generator with try or with is left before its end");
    if (recorder_->autocast_nesting) recorder_->fail("it ends inside torch.autocast");
    ExitState exit = exit_state(a, f, ins, sp, result);
    r = std::move(recorder_);
    r->record_ms = record_ms;
    const size_t entries = p.entries.size();
    store(*r, std::move(exit), result ? line_of(f) : line_at(code_of(f), ins.start));
    if (whole && p.entries.size() > entries) program_.breaks_are_over();
    r.reset();
    PyErr_Restore(t, v, tb);
    return true;
}
namespace {
// The graph was built for inputs that share memory, or do not, as they did: the first must be so again, the second only where it writes.
void guard_aliasing(Recorder& r, const CapturedGraph& g) {
    auto source = [&](size_t i) { return g.inputs[i] < 0 ? 0 : r.tensors[g.inputs[i]].source; };
    auto add = [&](GuardKind kind, size_t i, size_t j) { r.guards.push_back({kind, source(i), {}, source(j)}); };
    std::unordered_map<int, size_t> first;  // by storage
    for (size_t i = 0; i < g.inputs.size(); ++i) {
        if (source(i) <= 0) continue;
        auto [at, fresh] = first.try_emplace(r.tensors[g.inputs[i]].storage, i);
        if (!fresh) add(GuardKind::SharedStorage, at->second, i);
    }
    for (int w : g.written)
        for (const auto& [storage, i] : first)
            if (source(size_t(w)) > 0 && storage != r.tensors[g.inputs[size_t(w)]].storage) add(GuardKind::Disjoint, size_t(w), i);
}
}  // namespace
namespace {
constexpr int kFillings = 8;  // recordings that fill a cache, before they count as failures
}
void Session::store(Recorder& r, ExitState exit, int line) {
    Point& p = *recording_point_;
    double start_ms = now_ms();
    std::string error;
    auto fails = [&](const std::string& why) {
        p.eager_operators = long(r.ops.size());
        put_off(why);
    };
    if (r.fills_a_cache()) {
        if (++p.unsettled > kFillings) fails("a functools.lru_cache gets something new in every recorded call");
        return;
    }
    std::unique_ptr<RegionPlan> plan = RegionPlan::build(r, std::move(exit), error);
    if (!plan) {
        bool again = false;
        for (const DataGuard& g : r.data_guards)
            if (g.deferred) again |= program_.no_data_guards.insert(data_place(g.code, g.unit)).second;
        return again ? void() : fails(error);  // the next recording breaks at those places
    }
    auto e = std::make_shared<Entry>();
    if (program_.options.self_check) {
        std::string wrong = plan->self_check(r, e->unchecked);
        if (!wrong.empty()) {
            PyErr_WarnFormat(PyExc_RuntimeWarning, 1, "framejit: a compiled region of %U gave a wrong result and stays eager: %s",
                             r.root_code->co_qualname, wrong.c_str());
            PyErr_Clear();
            return fails("the self-check failed: " + wrong);
        }
    }
    if (plan->tensors()) guard_aliasing(r, plan->tensors()->captured());
    tell_guards(r.root_code, r.sources, r.guards);
    e->state = r.state;
    e->guards = GuardSet(r.sources, std::move(r.guards), std::move(r.specs), plan->sources(), PyRef::share(local_names(r.root_code)));
    e->plan = std::move(plan);
    e->record_ms = r.record_ms;
    e->eager_ms = r.operators_ms;
    e->compile_ms = now_ms() - start_ms;
    e->line_from = std::max(line_at(r.root_code, r.entry_unit), r.root_code->co_firstlineno);
    e->line_to = line;
    p.failures = p.unsettled = 0;
    p.eager_operators = 0;
    p.entries.insert(p.entries.begin(), std::move(e));
}

}  // namespace framejit
