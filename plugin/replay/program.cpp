#include "plugin/replay/program.h"
#include "framejit/options.h"
#include "plugin/replay/retired.h"
#include "plugin/replay/tell.h"
#include <algorithm>
#include <cmath>

namespace framejit {

std::vector<CompiledFunction*>& compiled_functions() {
    static std::vector<CompiledFunction*> all;
    return all;
}

namespace {
void free_program(void* p) { delete static_cast<FunctionProgram*>(p); }
int traverse_program(void* p, visitproc visit, void* arg) { return static_cast<FunctionProgram*>(p)->traverse(visit, arg); }
void clear_program(void* p) {
    retire(*static_cast<FunctionProgram*>(p));
    static_cast<FunctionProgram*>(p)->clear();
}

bool option_flag(PyObject* options, const char* name, bool otherwise) {
    PyObject* v = options ? PyDict_GetItemString(options, name) : nullptr;
    return v && v != Py_None ? PyObject_IsTrue(v) == 1 : otherwise;
}
std::string utf8(PyObject* o) {
    const char* s = o && PyUnicode_Check(o) ? PyUnicode_AsUTF8(o) : nullptr;
    if (!s) PyErr_Clear();
    return s ? s : "?";
}
}  // namespace

FunctionProgram* program_of(CompiledFunction* f) {
    if (!f->state) {
        f->state = new FunctionProgram(f);
        f->free_state = free_program;
        f->traverse_state = traverse_program;
        f->clear_state = clear_program;
    }
    return static_cast<FunctionProgram*>(f->state);
}

FunctionProgram::FunctionProgram(CompiledFunction* f) : owner(f) {
    options.fullgraph = option_flag(f->options, "fullgraph", false);
    options.self_check = option_flag(f->options, "self_check", option_on(Option::self_check));
    options.recompile_limit = int(option(Option::recompile_limit));
    if (PyObject* limit = f->options ? PyDict_GetItemString(f->options, "recompile_limit") : nullptr; limit && PyLong_Check(limit))
        options.recompile_limit = int(PyLong_AsLong(limit));
    entry_ = &point(f->code, 0);
    compiled_functions().push_back(f);
}
FunctionProgram::~FunctionProgram() {
    std::erase(compiled_functions(), owner);
    retire(*this);
}
void FunctionProgram::forget() {
    std::vector<std::shared_ptr<Entry>> dropped;  // last: what they hold may run finalizers
    for (auto& [key, p] : points_) {
        std::move(p->entries.begin(), p->entries.end(), std::back_inserter(dropped));
        *p = Point{.code = p->code, .unit = p->unit};
    }
    sites_.clear();
    quiet_.clear();
    operators_between = 0;
    breaks_.clear();
    tried_whole_ = false;
    eager_notes.clear();
    no_data_guards.clear();
    data_misses_.clear();
    calls = {};
}
void FunctionProgram::clear() {
    forget();
    points_.clear();
    codes_.clear();
    entry_ = owner->code ? &point(owner->code, 0) : nullptr;
}

Point& FunctionProgram::point(PyCodeObject* code, int unit) {
    auto& p = points_[{code, unit}];
    if (!p) {
        p = std::make_unique<Point>();
        p->code = code;
        p->unit = unit;
        codes_.push_back(PyRef::share((PyObject*)code));
    }
    return *p;
}
void FunctionProgram::add_site(PyCodeObject* code, int unit, bool quiet) {
    if (quiet) quiet_.insert(data_place(code, unit));
    if (sites_.insert(data_place(code, unit)).second) codes_.push_back(PyRef::share((PyObject*)code));
}

bool FunctionProgram::try_whole(const Point& p) {
    constexpr long kCalls = 8;
    if (tried_whole_ || &p != entry_ || sites_.empty() || calls.compiled < kCalls) return false;
    tried_whole_ = true;
    return !p.eager && int(p.entries.size()) < options.recompile_limit;
}

void FunctionProgram::breaks_are_over() {
    std::vector<std::shared_ptr<Entry>> dropped;  // last: what they hold may run finalizers
    for (auto& [key, p] : points_)
        std::erase_if(p->entries, [&](const auto& e) {
            const bool piece = p.get() != entry_ || !e->plan->exit.returns;
            if (piece) dropped.push_back(e);
            return piece;
        });
    sites_.clear();
    quiet_.clear();
    breaks_.clear();
    operators_between = 0;
}

std::shared_ptr<Entry> FunctionProgram::find(Point& p, PyObject* const* slots, const std::vector<const Entry*>* not_these) {
    for (size_t i = 0; i < p.entries.size(); ++i) {
        if (not_these && std::find(not_these->begin(), not_these->end(), p.entries[i].get()) != not_these->end()) continue;
        if (!p.entries[i]->state.matches() || !p.entries[i]->guards.check(slots)) continue;
        std::shared_ptr<Entry> e = p.entries[i];
        // The data program may let other threads run, who check the same set: its values are ours only right after our own check.
        if (e->plan->has_data_guards() && !(data_holds(*e) && e->guards.check(slots))) continue;
        if (i > 0 && i < p.entries.size() && p.entries[i] == e)
            std::rotate(p.entries.begin(), p.entries.begin() + long(i), p.entries.begin() + long(i) + 1);  // most recently used first
        return e;
    }
    return nullptr;
}
bool FunctionProgram::data_holds(const Entry& e) {
    int failed = 0;
    if (e.plan->data_holds(e.guards.values(), &failed)) return true;
    changes_too_often(e.plan->data_guards()[failed]);
    return false;
}
bool FunctionProgram::changes_too_often(const DataGuard& g) {
    const uint64_t place = data_place(g.code, g.unit);
    if (++data_misses_[place] < 4) return false;
    no_data_guards.insert(place);  // a break from now on
    return true;
}
void FunctionProgram::another_truth(Point& p, const std::shared_ptr<Entry>& e) {
    bool often = false;
    for (const DataGuard& g : e->plan->deferred()) often |= changes_too_often(g);
    auto at = std::find(p.entries.begin(), p.entries.end(), e);
    if (at == p.entries.end()) return;
    if (often)
        p.entries.erase(at);
    else
        std::rotate(at, at + 1, p.entries.end());
}

namespace {
Failure data_failure(const Entry& e) {
    std::string place;
    for (const auto* guards : {&e.plan->data_guards(), &e.plan->deferred()})
        for (const DataGuard& g : *guards)
            place +=
                (place.empty() ? " read in line " : ", ") + std::to_string(g.line) + " of " + utf8(g.code ? g.code->co_filename : nullptr);
    return {"data", "a tensor's value" + place, "as recorded", "another"};
}
}  // namespace
void FunctionProgram::note_miss(Point& p, PyObject* const* slots) {
    if (p.entries.empty()) return;
    const Entry& e = *p.entries[0];
    Failure f;
    if (!e.state.matches())
        f = {"global state", "torch", "as recorded", e.state.difference()};
    else
        f = e.guards.explain(slots);
    if (f.guard.empty()) f = data_failure(e);
    tell_recompile(p.code, f);
    for (Miss& m : p.misses)
        if (m.failure.source == f.source && m.failure.guard == f.guard) {
            ++m.count;
            m.failure = f;
            return;
        }
    p.misses.push_back({f, 1});
}

bool FunctionProgram::worth_recording(Point& p) {
    ++p.visits;
    if (p.eager || p.visits < p.try_again) return false;
    std::vector<std::shared_ptr<Entry>> dropped;
    std::erase_if(p.entries, [&](const auto& e) { return e->guards.dead() && (dropped.push_back(e), true); });
    if (int(p.entries.size()) >= options.recompile_limit) {
        std::string why = "the recompile limit (" + std::to_string(options.recompile_limit) + ") is reached";
        if (!p.misses.empty()) {
            const Miss& m =
                *std::max_element(p.misses.begin(), p.misses.end(), [](const Miss& a, const Miss& b) { return a.count < b.count; });
            why += ": " + m.failure.source + " keeps changing (expected " + m.failure.expected + ", got " + m.failure.got + ")";
        }
        stays_eager(p, why);
        p.try_again = p.visits + 1000;  // objects may have died by then
        return false;
    }
    return true;
}

void FunctionProgram::note(const Break& b) {
    tell_break(b);
    for (BreakCount& c : breaks_)
        if (c.where.line == b.line && c.where.file == b.file && c.where.reason == b.reason) {
            ++c.count;
            return;
        }
    breaks_.push_back({b, 1});
}
void FunctionProgram::stays_eager(Point& p, const std::string& why) {
    EagerNote& n = eager_notes[why];
    n.why = why;
    n.file = utf8(p.code->co_filename);
    n.line = line_at(p.code, p.unit);
    if (n.line <= 0) n.line = p.code->co_firstlineno;  // before the first line: cells are being made
    ++n.count;
}

namespace {
PyObject* text_list(const std::vector<std::string>& lines) {
    PyObject* list = PyList_New(0);
    for (const std::string& s : lines) {
        PyRef t = PyRef::steal(PyUnicode_FromString(s.c_str()));
        if (list && t) PyList_Append(list, t.get());
    }
    return list;
}
PyRef or_none(bool known, PyObject* (*make)(double), double value) { return known ? PyRef::steal(make(value)) : PyRef::share(Py_None); }
PyObject* region_row(const Point& p, int id) {
    int ops = 0, fused = 0, kernels = 0, externs = 0, from = 1 << 30, to = 0;
    double record = 0, compile = 0;
    const Entry* busiest = p.entries[0].get();
    std::string unchecked;
    for (const auto& e : p.entries) {
        const TensorProgram* t = e->plan->tensors();
        ops = std::max(ops, t->captured().ops);
        if (const Executable* x = t->executable()) {
            fused = std::max(fused, t->captured().fused);
            kernels = std::max(kernels, x->kernels);
            externs = std::max(externs, int(x->externs.size()));
        }
        record += e->record_ms;
        compile += e->compile_ms;
        if (e->hits > busiest->hits) busiest = e.get();
        if (!e->unchecked.empty()) unchecked = e->unchecked;
        from = std::min(from, e->line_from);
        to = std::max(to, e->line_to);
    }
    PyRef name = PyRef::share(p.code->co_qualname);
    const bool ran = busiest->compiled_ms > 0;
    PyRef compiled = or_none(ran, PyFloat_FromDouble, busiest->compiled_ms);
    // After how many calls the first one's extra time has come back.
    const double gain = busiest->eager_ms - busiest->compiled_ms, spent = record + compile - busiest->eager_ms;
    PyRef calls = or_none(ran && gain > 0, PyLong_FromDouble, std::ceil(std::max(spent, 0.) / gain));
    if (!compiled || !calls) return nullptr;
    return Py_BuildValue("{s:i,s:O,s:O,s:i,s:i,s:i,s:i,s:i,s:i,s:n,s:d,s:d,s:d,s:O,s:O,s:O,s:s}", "id", id, "function", name.get(), "file",
                         p.code->co_filename, "line_from", from, "line_to", to, "ops", ops, "fused_ops", fused, "kernels", kernels,
                         "externs", externs, "entries", Py_ssize_t(p.entries.size()), "record_ms", record, "compile_ms", compile,
                         "eager_ms", busiest->eager_ms, "compiled_ms", compiled.get(), "break_even_calls", calls.get(), "checked",
                         unchecked.empty() ? Py_True : Py_False, "unchecked", unchecked.c_str());
}
}  // namespace

PyObject* FunctionProgram::report() const {
    PyRef regions = PyRef::steal(PyList_New(0)), breaks = PyRef::steal(PyList_New(0)), recompiles = PyRef::steal(PyList_New(0)),
          eager = PyRef::steal(PyList_New(0));
    auto add = [](PyRef& list, PyObject* row) {
        PyRef r = PyRef::steal(row);
        return r && PyList_Append(list.get(), r.get()) == 0;
    };
    bool good = regions && breaks && recompiles && eager;
    int id = 0;
    for (const auto& [key, p] : points_) {
        if (!p->entries.empty()) good = good && add(regions, region_row(*p, id++));
        for (const Miss& m : p->misses)
            good = good && add(recompiles,
                               Py_BuildValue("{s:s,s:s,s:s,s:s,s:l}", "guard", m.failure.guard.c_str(), "source", m.failure.source.c_str(),
                                             "expected", m.failure.expected.c_str(), "got", m.failure.got.c_str(), "count", m.count));
    }
    for (const BreakCount& b : breaks_) {
        std::string reason = b.where.reason->text + (b.where.detail.empty() ? "" : ": " + b.where.detail);
        PyRef stack = PyRef::steal(text_list(b.where.stack));
        good =
            good && stack &&
            add(breaks, Py_BuildValue("{s:s,s:s,s:s,s:i,s:s,s:s,s:l,s:s,s:O}", "reason", reason.c_str(), "code", b.where.reason->code,
                                      "file", b.where.file.c_str(), "line", b.where.line, "function", b.where.function.c_str(), "source",
                                      b.where.source_line.c_str(), "count", b.count, "hint", b.where.reason->hint, "stack", stack.get()));
    }
    for (const auto& [why, n] : eager_notes)
        good = good &&
               add(eager, Py_BuildValue("{s:s,s:s,s:i,s:l}", "why", why.c_str(), "file", n.file.c_str(), "line", n.line, "count", n.count));
    if (!good) return nullptr;
    long outside = operators_between;
    for (const auto& [key, p] : points_) outside += p->eager_operators;
    PyCodeObject* code = owner->code;
    std::string name = utf8(code->co_qualname);
    return Py_BuildValue("{s:s,s:O,s:i,s:{s:l,s:l,s:l,s:l},s:O,s:O,s:O,s:O,s:O,s:l}", "name", name.c_str(), "file", code->co_filename,
                         "line", code->co_firstlineno, "calls", "total", calls.total, "recorded", calls.recorded, "eager", calls.eager,
                         "compiled", calls.compiled, "regions", regions.get(), "breaks", breaks.get(), "recompiles", recompiles.get(),
                         "eager", eager.get(), "target", owner->target, "ops_outside", outside);
}

int FunctionProgram::traverse(visitproc visit, void* arg) const {
    for (const auto& [key, p] : points_)
        for (const auto& e : p->entries) {
            if (int r = e->guards.traverse(visit, arg)) return r;
            if (int r = e->plan->traverse(visit, arg)) return r;
        }
    for (const PyRef& c : codes_) Py_VISIT(c.get());
    return 0;
}

}  // namespace framejit
