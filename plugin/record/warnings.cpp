// warnings.warn: the frame that `stacklevel` names decides file, line, module and registry, and at replay there is no such frame. So the
// event says where the warning came from; whether it is shown, ignored or raised is decided when it is replayed.
#include "plugin/record/kinds.h"
#include "plugin/record/recorder.h"
#include <cstring>

namespace framejit {
namespace {

void add_frame(PyObject* frames, Py_ssize_t i) {
    auto* code = reinterpret_cast<PyCodeObject*>(PyTuple_GET_ITEM(frames, i));
    const bool is_root = i + 2 == PyTuple_GET_SIZE(frames);
    if (Frame* f = current_frame(); is_root && f && code_of(f) == code) return;  // the region began in its middle: it is there
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    const char *function = PyUnicode_AsUTF8(code->co_name), *file = PyUnicode_AsUTF8(code->co_filename);
    const long line = PyLong_AsLong(PyTuple_GET_ITEM(frames, i + 1));
    PyErr_Restore(type, error, traceback);
    if (function && file) _PyTraceback_Add(function, file, int(line));
}

// warn_at(message, category, source, globals, line, frames): as _warnings.warn from a frame with these globals.
// frames: (code, line, ...) from the frame that warns to the root, for the traceback of a warning that is an error.
PyObject* warn_at(PyObject*, PyObject* const* args, Py_ssize_t) {
    PyObject *globals = args[3], *frames = args[6];
    static PyObject* const registry_name = PyUnicode_InternFromString("__warningregistry__");
    static PyObject* const module_name = PyUnicode_InternFromString("__name__");
    PyRef registry = PyRef::share(PyDict_GetItemWithError(globals, registry_name));
    if (!registry || registry.get() == Py_None) {
        registry = PyRef::steal(PyDict_New());
        if (!registry || PyDict_SetItem(globals, registry_name, registry.get()) < 0) return nullptr;
    }
    PyObject* module = PyDict_GetItemWithError(globals, module_name);
    PyRef named =
        module && (PyUnicode_Check(module) || module == Py_None) ? PyRef::share(module) : PyRef::steal(PyUnicode_FromString("<string>"));
    PyRef warnings = PyRef::steal(PyImport_ImportModule("_warnings"));
    PyRef explicitly = PyRef::steal(warnings ? PyObject_GetAttrString(warnings.get(), "warn_explicit") : nullptr);
    if (!explicitly || !named) return nullptr;
    PyObject* all[] = {args[0], args[1], args[4], args[5], named.get(), registry.get(), Py_None, args[2]};
    PyObject* result = PyObject_Vectorcall(explicitly.get(), all, std::size(all), nullptr);
    for (Py_ssize_t i = 0; !result && i + 1 < PyTuple_GET_SIZE(frames); i += 2) add_frame(frames, i);
    return result;
}
PyMethodDef warn_at_def = {"warn_at", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(warn_at)), METH_FASTCALL, nullptr};

bool contains(PyObject* text, const char* part) {
    const char* s = PyUnicode_AsUTF8(text);
    if (!s) PyErr_Clear();
    return s && strstr(s, part);
}
// Not counted by `stacklevel`: the rule is not repeated here.
bool imports(Frame* f) { return contains(code_of(f)->co_filename, "importlib") && contains(code_of(f)->co_filename, "_bootstrap"); }

enum { kMessage, kCategory, kLevel, kSource, kParameters };
constexpr const char* kNames[] = {"message", "category", "stacklevel", "source"};

}  // namespace

// The frame that is named, null when it lies outside of the recording; and the frames from the one that warns to the root.
Frame* Recorder::warned_frame(long level, PyObject* frames) {
    Frame* named = nullptr;
    for (Frame* f = now; f; f = caller_of(f)) {
        if (imports(f)) return nullptr;
        if (level-- <= 1 && !named) named = f;
        PyRef line = PyRef::steal(PyLong_FromLong(line_of(f)));
        PyObject* code = reinterpret_cast<PyObject*>(code_of(f));
        if (!line || PyList_Append(frames, code) < 0 || PyList_Append(frames, line.get()) < 0) return PyErr_Clear(), nullptr;
        if (f == root) return named;
    }
    return nullptr;
}

// A warning is shown by what stands in the module `warnings` at that moment: what the region has put there is not there yet at replay.
bool Recorder::warnings_changed() {
    static PyObject* const module = PyImport_ImportModule("warnings");
    const int* known = module ? identity_.find(module) : nullptr;
    if (!known || *known <= 0) return false;
    const int dict = sources.child(SourceKind::Dict, *known), globals = sources.constant(PyModule_GetDict(module));
    for (const char* name : {"filters", "showwarning", "_showwarnmsg", "_showwarnmsg_impl", "defaultaction", "onceregistry"}) {
        PyRef key = PyRef::steal(PyUnicode_InternFromString(name));
        if (written(dict, key.get()) || written(globals, key.get())) return true;
    }
    return false;
}

void Recorder::warns(PyObject* fn, PyObject** args, const int* shadows, int total, int positional, PyObject* kw) {
    PyObject* given[kParameters] = {nullptr, Py_None, nullptr, Py_None};
    int from[kParameters] = {};
    bool plain = positional <= kParameters && !warnings_changed();
    for (int i = 0; i < total && plain; ++i) {
        int at = i;
        for (at = i < positional ? i : 0; i >= positional && at < kParameters; ++at)
            if (!PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kw, i - positional), kNames[at])) break;
        if (at == kParameters) return note_break(break_effect, nullptr, fn);
        given[at] = args[i];
        from[at] = shadows[i];
        at == kMessage ? use_type(args[i], shadows[i]) : use(args[i], shadows[i]);
    }
    PyObject *message = given[kMessage], *category = given[kCategory], *level = given[kLevel];
    const bool object = message && PyObject_IsInstance(message, PyExc_Warning) == 1;
    plain = plain && message && (object ? from[kMessage] == Internal : PyUnicode_CheckExact(message)) && given[kSource] == Py_None &&
            (!level || PyLong_CheckExact(level));
    if (object)
        category = (PyObject*)Py_TYPE(message);
    else if (category == Py_None)
        category = PyExc_UserWarning;
    plain = plain && PyType_Check(category) && PyType_IsSubtype((PyTypeObject*)category, (PyTypeObject*)PyExc_Warning);
    PyRef frames = PyRef::steal(PyList_New(0));
    Frame* named = plain && frames ? warned_frame(level ? PyLong_AsLong(level) : 1, frames.get()) : nullptr;
    PyErr_Clear();
    if (!named) return note_break(break_effect, nullptr, fn);
    static PyObject* const replayed = PyCFunction_New(&warn_at_def, nullptr);
    PyRef line = PyRef::steal(PyLong_FromLong(line_of(named))), chain = PyRef::steal(PyList_AsTuple(frames.get()));
    PyObject* all[] = {message, category, given[kSource], globals_of(named), code_of(named)->co_filename, line.get(), chain.get()};
    const int where[] = {from[kMessage], Internal, Internal, sources.constant(globals_of(named)), Internal, Internal, Internal};
    call_event(replayed, Internal, all, where, int(std::size(all)), nullptr);
    unwatch();
}

}  // namespace framejit
