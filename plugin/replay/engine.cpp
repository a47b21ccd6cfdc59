// Calls of compiled functions: the fast path without a frame, the slow path through a session; and what `_C` offers for them.
#include "framejit/options.h"
#include "plugin/record/recorder.h"
#include "plugin/replay/retired.h"
#include "plugin/replay/session.h"
#include "plugin/replay/tell.h"

namespace framejit {

void assume_pure(PyObject*);
extern PyObject* break_function;
extern PyObject* disabled_marker;

namespace {
thread_local bool enabled = !option_on(Option::disable);
bool torch_set_up = false;

int set_up_torch() {
    if (torch_set_up) return 0;
    if (init_torch() < 0) return -1;
    torch_set_up = true;
    return 0;
}
PyObject* class_of_error(const char* name) {  // new reference
    PyRef errors = PyRef::steal(PyImport_ImportModule("framejit.errors"));
    return errors ? PyObject_GetAttrString(errors.get(), name) : nullptr;
}
}  // namespace

bool replay_enabled() { return enabled; }

PyObject* raise_break(const Break& b) {
    std::string text = text_of(b);
    if (!b.source_line.empty()) text += "\n    " + b.source_line;
    text += "\n  hint: " + std::string(b.reason->hint);
    for (const std::string& s : b.stack) text += "\n  at " + s;
    if (PyRef type = PyRef::steal(class_of_error("GraphBreakError"))) PyErr_SetString(type.get(), text.c_str());
    return nullptr;
}

// Guards directly on the bound arguments. Only regions that reach the function's return can be served without a frame.
PyObject* call_region(CompiledFunction* f, PyObject* const* slots, bool* handled) {
    *handled = false;
    if (!enabled || active_recorder || !torch_set_up) return nullptr;
    FunctionProgram& program = *program_of(f);
    Point& p = *program.entry_point();
    if (p.entries.empty() || !p.entries[0]->plan->exit.returns) return nullptr;
    std::shared_ptr<Entry> e = program.find(p, slots);  // slot -1 is the function
    if (!e || !e->plan->exit.returns) return nullptr;
    PyObject* result = nullptr;
    int status = run_entry(*e, [&] { return e->plan->run_returning(e->guards.values(), &result); });
    e->guards.release();
    if (status > 0) return nullptr;
    *handled = true;
    ++e->hits;
    ++program.calls.total;
    ++program.calls.compiled;
    return result;
}

PyObject* call_slow(CompiledFunction* f, PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
    bool plain = !enabled || active_recorder || session || traced(PyThreadState_Get());
    if (plain) return PyObject_Vectorcall(callable, args, nargsf, kwnames);
    if (set_up_torch() < 0) return nullptr;
    FunctionProgram& program = *program_of(f);
    if (mode_is_on()) {  // the program's own: it is to see every operator. No region was recorded under one, so none has been found
        ++program.calls.total;
        ++program.calls.eager;
        program.stays_eager(*program.entry_point(), "a dispatch mode or function mode of torch is on while it is called");
        return PyObject_Vectorcall(callable, args, nargsf, kwnames);
    }
    PyRef keep = PyRef::share(reinterpret_cast<PyObject*>(f));
    PyObject* result;
    bool recorded, compiled;
    {
        Session s(program);
        result = PyObject_Vectorcall(callable, args, nargsf, kwnames);
        recorded = s.recorded;
        compiled = s.compiled;
    }
    ++program.calls.total;
    if (compiled)
        ++program.calls.compiled;  // at least one region served, whatever else was recorded
    else if (recorded)
        ++program.calls.recorded;
    else
        ++program.calls.eager;
    return result;
}

namespace {
PyObject* py_init_torch(PyObject*, PyObject*) {
    if (set_up_torch() < 0) return nullptr;
    Py_RETURN_NONE;
}
// Held: what is done with them may run finalizers or the cycle collector, which may end some of them.
std::vector<PyRef> living_functions() {
    std::vector<PyRef> all;
    for (CompiledFunction* f : compiled_functions()) all.push_back(PyRef::share(reinterpret_cast<PyObject*>(f)));
    return all;
}
PyObject* py_report(PyObject*, PyObject* which) {
    PyRef list = PyRef::steal(PyList_New(0));
    if (!list) return nullptr;
    auto add = [&](CompiledFunction* f) {
        PyRef row = PyRef::steal(program_of(f)->report());
        return row && PyList_Append(list.get(), row.get()) == 0;
    };
    if (which == Py_None) {
        for (const PyRef& f : living_functions())
            if (!add(as_compiled(f.get()))) return nullptr;
        if (add_retired_rows(list.get()) < 0) return nullptr;
    } else {
        CompiledFunction* f = as_compiled(which);
        if (!f) return PyErr_Format(PyExc_TypeError, "report() takes a compiled function, not %.100s", Py_TYPE(which)->tp_name);
        if (!add(f)) return nullptr;
    }
    return list.release();
}
PyObject* py_wait(PyObject*, PyObject*) { Py_RETURN_TRUE; }  // compilation happens in the call that recorded
PyObject* py_reset(PyObject*, PyObject*) {
    for (const PyRef& f : living_functions()) program_of(as_compiled(f.get()))->forget();
    forget_retired();
    Py_RETURN_NONE;
}
PyObject* py_set_enabled(PyObject*, PyObject* on) {
    int value = PyObject_IsTrue(on);
    if (value < 0) return nullptr;
    return PyBool_FromLong(std::exchange(enabled, value != 0));
}
PyObject* py_graph_break(PyObject*, PyObject* const*, Py_ssize_t, PyObject*) { Py_RETURN_NONE; }  // known to the recorder
PyObject* py_is_compiling(PyObject*, PyObject*) { return PyBool_FromLong(active_recorder != nullptr); }
PyObject* py_assume_pure(PyObject*, PyObject* fn) {
    if (!PyCallable_Check(fn)) return PyErr_Format(PyExc_TypeError, "assume_pure() takes a callable, not %.100s", Py_TYPE(fn)->tp_name);
    assume_pure(fn);
    return Py_NewRef(fn);
}
PyMethodDef methods[] = {
    {"init_torch", py_init_torch, METH_NOARGS, "Imports torch and looks how its tensors are laid out; UnsupportedVersionError below 2.10."},
    {"report", py_report, METH_O, "report(compiled or None): one dictionary per function"},
    {"wait", py_wait, METH_O, "wait(timeout or None): True when nothing is compiling any more"},
    {"reset", py_reset, METH_NOARGS, "reset(): forget everything that was recorded and compiled"},
    {"set_enabled", py_set_enabled, METH_O, "set_enabled(bool) -> previous value, for this thread"},
    {"graph_break", (PyCFunction)(void*)py_graph_break, METH_FASTCALL | METH_KEYWORDS,
     "graph_break(msg=\"\"): end the captured graph here"},
    {"is_compiling", py_is_compiling, METH_NOARGS, "is_compiling(): whether a compiled function is being recorded"},
    {"assume_pure", py_assume_pure, METH_O, "assume_pure(fn): the result of this C function depends on its arguments only; returns fn"},
    {}};
}  // namespace

int add_replay(PyObject* module) {
    if (PyModule_AddFunctions(module, methods) < 0) return -1;
    break_function = PyObject_GetAttrString(module, "graph_break");
    disabled_marker = PyUnicode_InternFromString("_framejit_disable");
    return break_function && disabled_marker ? 0 : -1;
}

}  // namespace framejit
