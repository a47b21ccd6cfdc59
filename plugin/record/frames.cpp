// Frames of a recording: where the values in their slots come from when they start, and what happens to them when they end.
#include "plugin/record/call_policy.h"
#include "plugin/record/kinds.h"
#include "plugin/record/recorder.h"
#include "plugin/torch/internals.h"
#include <algorithm>

namespace framejit {

namespace {
std::string utf8(PyObject* o) {
    const char* s = o && PyUnicode_Check(o) ? PyUnicode_AsUTF8(o) : nullptr;
    if (!s) PyErr_Clear();
    return s ? s : "?";
}
bool suspends(PyCodeObject* co) { return co->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR); }
bool of_framejit(Frame* f) { return utf8(code_of(f)->co_filename).find("/framejit/") != std::string::npos; }
std::string source_line(const std::string& file, int line) {
    PyRef linecache = PyRef::steal(PyImport_ImportModule("linecache"));
    PyRef text = PyRef::steal(linecache ? PyObject_CallMethod(linecache.get(), "getline", "si", file.c_str(), line) : nullptr);
    if (!text) {
        PyErr_Clear();
        return "";
    }
    std::string s = utf8(text.get());
    size_t a = s.find_first_not_of(" \t"), b = s.find_last_not_of(" \t\r\n");
    return a == s.npos ? "" : s.substr(a, b - a + 1);
}
}  // namespace

Recorder::Recorder(Frame* f) : root(f), root_code(code_of(f)), entry_unit(0), entry_depth(0), state(global_state()) {
    inference_ = inference_mode();
    guards.reserve(1024);
    keep_.reserve(1024);
    gc_was_on_ = PyGC_Disable();  // a recording keeps what it sees: collections would run often and find nothing
}
Recorder::~Recorder() {
    if (gc_was_on_) PyGC_Enable();
    for (PyObject* o : keep_) Py_DECREF(o);
    for (auto& s : shadows_) {
        Py_CLEAR(s->kept_names);
        Py_CLEAR(s->returned);
    }
}

void Recorder::note_break(const BreakReason& reason, PyObject* subject, PyObject* callee) {
    if (broken_) return;
    broken_ = true;
    found.reason = &reason;
    if (callee) found.detail = callable_name(callee);
    if (subject) found.detail += (callee ? " of " : "") + std::string(Py_TYPE(subject)->tp_name);
    PyObject *t, *v, *tb;
    PyErr_Fetch(&t, &v, &tb);
    struct Unwatched {  // linecache is Python and no part of the region
        Recorder* r = std::exchange(active_recorder, nullptr);
        ~Unwatched() { active_recorder = r; }
    } unwatched;
    for (Frame* f = current_frame(); f; f = caller_of(f)) {
        if (!of_framejit(f)) {
            if (!found.line) {
                found.line = line_of(f);
                found.file = utf8(code_of(f)->co_filename);
                found.function = utf8(code_of(f)->co_qualname);
            }
            found.stack.push_back(utf8(code_of(f)->co_filename) + ":" + std::to_string(line_of(f)) + " in " +
                                  utf8(code_of(f)->co_qualname));
        }
        if (f == root) break;
    }
    found.source_line = source_line(found.file, found.line);
    for (Shadow* a : active_) chain.emplace_back(code_of(a->frame), a->unit);
    PyErr_Restore(t, v, tb);
}

Recorder::Shadow* Recorder::enter_root(Frame* f, int depth) {
    shadows_.push_back(std::make_unique<Shadow>());
    Shadow* sh = shadows_.back().get();
    active_.push_back(sh);
    sh->frame = f;
    PyCodeObject* co = code_of(f);
    sh->s.assign(locals_count(co) + stack_size(co) + 2, Internal);
    sh->function = sources.slot(-1);
    entry_depth = depth;
    now = f;
    int nargs = co->co_argcount + co->co_kwonlyargcount;
    int packs = nargs + !!(co->co_flags & CO_VARARGS) + !!(co->co_flags & CO_VARKEYWORDS);
    int count = has_started(f) ? depth : packs;
    for (int i = 0; i < count; ++i) {
        PyObject* v = slots_of(f)[i];
        if (!v) continue;
        sh->s[i] = known_source(sources.slot(i), v);
        if (!has_started(f) && i >= nargs && container(v)) contents(v, sh->s[i]);  // *args, **kwargs: the caller's values, one level down
    }
    // An object function itself may hold closures; whether it is another one than recorded shows only when it is used.
    identity_.emplace(function_of(f), sh->function);
    return sh;
}

Recorder::Shadow* Recorder::enter(Frame* f) {
    if (!active_.empty()) consumed(*active_.back());
    Shadow* sh;
    if (free_.empty()) {
        shadows_.push_back(std::make_unique<Shadow>());
        sh = shadows_.back().get();
    } else {
        sh = free_.back();
        free_.pop_back();
    }
    PyCodeObject* co = code_of(f);
    ++entered_;
    sh->own_events = 0;
    sh->direct = false;
    sh->frame = f;
    sh->unit = 0;
    sh->result = kOpen;
    active_.push_back(sh);
    sh->s.assign(locals_count(co) + stack_size(co) + 2, Internal);
    if (is_generator(f)) {
        if (auto it = suspended_.find(f); it != suspended_.end() && has_started(f)) {
            sh->s = it->second.s;
            now = f;
            return sh;
        }
        let_go(generator_of(f));
    }
    int args = co->co_argcount + co->co_kwonlyargcount;
    int all = args + !!(co->co_flags & CO_VARARGS) + !!(co->co_flags & CO_VARKEYWORDS);
    if (int* known = identity_.find(function_of(f)))
        sh->function = *known;
    else
        sh->function = sources.constant(function_of(f));
    if (!has_started(f) && pending_.function == function_of(f)) {
        sh->direct = true;
        bind_pending(*sh, f, args, all);
    } else if (!has_started(f))
        called_by_c(*sh, f, all);
    else  // a generator's first run, or a frame that was not seen from its start
        for (int i = 0; i < locals_count(co); ++i) sh->s[i] = lookup(slots_of(f)[i], false);
    pending_.function = nullptr;
    now = f;
    return sh;
}
// Called directly by an interpreted CALL: shadows go from the caller's stack into the parameters.
void Recorder::bind_pending(Shadow& sh, Frame* f, int nargs, int all) {
    PyCodeObject* co = code_of(f);
    PyObject** slots = slots_of(f);
    std::vector<bool> used(pending_.args.size());
    for (int i = 0; i < pending_.positional && i < co->co_argcount; ++i) {
        sh.s[i] = pending_.args[i].second;
        used[i] = true;
    }
    if (pending_.kwnames)
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(pending_.kwnames); ++k)
            for (int i = 0; i < nargs; ++i)
                if (PyTuple_GET_ITEM(local_names(co), i) == PyTuple_GET_ITEM(pending_.kwnames, k) ||
                    PyUnicode_Compare(PyTuple_GET_ITEM(local_names(co), i), PyTuple_GET_ITEM(pending_.kwnames, k)) == 0) {
                    size_t a = pending_.positional + k;
                    sh.s[i] = pending_.args[a].second;
                    used[a] = true;
                }
    // What went into *args or **kwargs has left the slots: immutable values are guarded now.
    for (size_t a = 0; a < used.size(); ++a)
        if (!used[a] && pending_.args[a].second > 0 && valued(pending_.args[a].first))
            guard(GuardKind::Value, pending_.args[a].second, pending_.args[a].first);
    for (int i = 0; i < all; ++i) {
        if (sh.s[i] != Internal || !slots[i] || valued(slots[i])) continue;
        int l = lookup(slots[i], false);
        if (l == Unknown && i < nargs) l = known_source(default_source(sh.function, co, i, slots[i]), slots[i]);
        sh.s[i] = l;
    }
}
// The source of a parameter's default value.
int Recorder::default_source(int function, PyCodeObject* co, int i, PyObject* value) {
    if (function <= 0) return Internal;
    if (i >= co->co_argcount) return sources.child(SourceKind::KwDefault, function, PyTuple_GET_ITEM(local_names(co), i));
    (void)value;
    PyObject* fn = nullptr;
    if (sources[function].kind == SourceKind::Const) fn = sources[function].key.get();
    for (Shadow* a : active_)
        if (a->function == function) fn = function_of(a->frame);
    PyObject* defaults = fn && PyFunction_Check(fn) ? ((PyFunctionObject*)fn)->func_defaults : nullptr;
    if (!defaults) return Unknown;
    int first = co->co_argcount - int(PyTuple_GET_SIZE(defaults));
    return i >= first ? sources.child(SourceKind::Default, function, nullptr, i - first) : int(Unknown);
}
void Recorder::called_by_c(Shadow& sh, Frame* f, int all) {
    now = f;
    PyObject** slots = slots_of(f);
    PyObject* self = all ? slots[0] : nullptr;
    if (self && code_of(f)->co_argcount && PyFunction_Check(function_of(f))) guard_special(self, function_of(f));
    if (self && constructing_ && PyType_IsSubtype(Py_TYPE(self), (PyTypeObject*)constructing_) && !identity_.find(self))
        make_internal(self);  // __init__ of a new object
    PyCodeObject* co = code_of(f);
    int nargs = co->co_argcount + co->co_kwonlyargcount;
    for (int i = 0; i < all; ++i) {
        sh.s[i] = lookup(slots[i], false);
        if (sh.s[i] != Unknown) continue;
        int d = i < nargs ? default_source(sh.function, co, i, slots[i]) : int(Unknown);
        if (d > 0 && d != Unknown)
            sh.s[i] = known_source(d, slots[i]);
        else if (i >= nargs && container(slots[i]) && Py_REFCNT(slots[i]) <= 2) {  // a pack made for this call
            make_internal(slots[i]);
            sh.s[i] = Internal;
        }
    }
}

// Gives back what only the recorder still holds, newest first: a container before what it holds.
void Recorder::release(size_t mark) {
    Recorder* self = std::exchange(active_recorder, nullptr);  // a __del__ that runs now is no part of the region
    size_t kept = mark;
    for (size_t i = keep_.size(); i-- > mark;) {
        PyObject* o = keep_[i];
        int* known = Py_REFCNT(o) == 1 ? identity_.find(o) : nullptr;
        if (known && *known == Internal) {
            *known = FlatMap::kDead;
            if (PyCell_Check(o)) cell_shadow_.put(o, FlatMap::kDead);  // the address may come back as another cell
            keep_[i] = nullptr;
            Py_DECREF(o);
        }
    }
    for (size_t i = mark; i < keep_.size(); ++i)
        if (keep_[i]) keep_[kept++] = keep_[i];
    keep_.resize(kept);
    active_recorder = self;
}

// A generator that has started ends when its last user lets go of it: from now on the recorder only knows its address, until it has ended.
void Recorder::let_go(PyObject* generator) {
    auto kept = std::find(keep_.rbegin(), keep_.rend(), generator);
    if (kept == keep_.rend()) return;
    keep_.erase(std::next(kept).base());
    Py_DECREF(generator);
}
void Recorder::ended(PyObject* generator) {
    if (int* known = identity_.find(generator); known && *known == Internal) *known = FlatMap::kDead;
}
void Recorder::suspended(Frame* f, const std::vector<int>& shadows) {
    Suspended& generator = suspended_[f];
    generator.s = shadows;
    generator.waits = PyRef::steal(has_handlers(code_of(f)) ? PyWeakref_NewRef(generator_of(f), nullptr) : nullptr);
    PyErr_Clear();
}
bool Recorder::leaves_generators() const {
    return std::any_of(suspended_.begin(), suspended_.end(),
                       [](const auto& s) { return s.second.waits && PyWeakref_GET_OBJECT(s.second.waits.get()) != Py_None; });
}

void Recorder::leave(Shadow* sh, Frame* f, PyObject* result, int depth, bool yields) {
    if (!result) raised(*sh);
    consumed(*sh);
    if (!yields && suspended_.erase(f)) ended(generator_of(f));
    if (yields)
        suspended(f, sh->s);
    else if (!result && suspends(code_of(f)) && !is_generator(f))
        for (int i = 0; i < locals_count(code_of(f)); ++i)  // moves into a generator object: values leave the slots
            if (PyObject* v = slots_of(f)[i]; v && valued(v)) guard(GuardKind::Value, sh->s[i], v);
    for (size_t i = active_.size(); i-- > 0;)
        if (active_[i] == sh) {
            active_.erase(active_.begin() + i);
            break;
        }
    free_.push_back(sh);
    now = caller_of(f);
    if (!result || active_.empty() || is_tensor(result)) return;  // a tensor is found by its row
    Shadow& below = *active_.back();
    below.returned = Py_NewRef(result);
    below.returned_shadow = sh->s[depth];
    below.returned_direct = sh->direct;
}
void Recorder::unwound(Shadow& sh, Frame* f, int depth) {
    raised(sh);
    consumed(sh);
    for (int i = std::max(locals_count(code_of(f)), depth - 2); i < depth; ++i) sh.s[i] = lookup(slots_of(f)[i], false);
    now = f;
}

}  // namespace framejit
