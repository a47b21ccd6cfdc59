// Thunks: `RESUME; LOAD_FAST...; THE_OPCODE; RETURN_VALUE` in a code object that CPython itself runs.
//
// They stand in for C helpers that libpython hides (_PyAsyncGenValueWrapperNew, _PyExc_PrepReraiseStar, match_class, ...), so nothing of
// CPython is copied and a new version costs nothing here. A thunk that raises leaves its own entry at the head of the traceback; it is
// dropped.
#include "plugin/frame/decode.h"
#include "plugin/frame/running.h"

#include <unordered_map>

namespace framejit {
namespace {

PyObject* template_code;  // a function of kMaxThunkOperands arguments, whose code `replace` turns into thunks
PyObject* thunk_globals;

void append(std::string& bytes, Op op, int arg) {  // arg < 2^16: pattern counts, names and small flags
    const Opcode* row = opcode_row(op);
    if (arg > 0xFF) {
        bytes += (char)kExtendedArg;
        bytes += (char)(arg >> 8);
    }
    bytes += (char)row->number;
    bytes += (char)(arg & 0xFF);
    bytes.append(2 * row->caches, '\0');
}

std::string thunk_bytes(Op op, int arg, int operands, Results results) {
    std::string bytes;
    append(bytes, Op::Resume, 0);
    for (int i = 0; i < operands; ++i) append(bytes, Op::LoadFast, i);
    append(bytes, op, arg);
    if (results == Results::Pair) append(bytes, Op::BuildTuple, 2);
    append(bytes, Op::ReturnValue, 0);
    return bytes;
}

// The template with some fields replaced; takes the reference to `fields`.
PyRef replace_code(PyObject* fields) {
    PyRef keywords = PyRef::steal(fields);
    PyRef replace = PyRef::steal(keywords ? PyObject_GetAttrString(template_code, "replace") : nullptr);
    if (!replace) return {};
    PyRef code = PyRef::steal(PyObject_VectorcallDict(replace.get(), nullptr, 0, keywords.get()));
    if (code) mark_native((PyCodeObject*)code.get());
    return code;
}

PyRef make_thunk(Op op, int arg, int operands, Results results, PyObject* name) {
    const std::string bytes = thunk_bytes(op, arg, operands, results);
    const auto size = (Py_ssize_t)bytes.size();
    PyRef code = replace_code(name ? Py_BuildValue("{s:y#,s:(O)}", "co_code", bytes.data(), size, "co_names", name)
                                   : Py_BuildValue("{s:y#}", "co_code", bytes.data(), size));
    return PyRef::steal(code ? PyFunction_New(code.get(), thunk_globals) : nullptr);
}

void drop_thunk_from_traceback() {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (traceback) {
        PyObject* rest = Py_XNewRef((PyObject*)((PyTracebackObject*)traceback)->tb_next);
        Py_SETREF(traceback, rest);
    }
    PyErr_Restore(type, value, traceback);
}

}  // namespace

PyObject* run_native(PyThreadState*, Op op, int arg, PyObject* const* operands, int count, Results results, PyObject* name) {
    static auto& made = *new std::unordered_map<uint64_t, PyObject*>;  // function objects, kept for good
    const uint64_t key = (uint64_t)arg << 32 | (uint64_t)op << 16 | (uint64_t)count << 8 | (uint64_t)results;
    PyRef function;
    if (auto row = name ? made.end() : made.find(key); row != made.end()) {
        function = PyRef::share(row->second);
    } else {
        function = make_thunk(op, arg, count, results, name);
        if (!function) return nullptr;
        if (!name && made.emplace(key, function.get()).second) function.new_ref();
    }
    PyObject* arguments[kMaxThunkOperands] = {Py_None, Py_None, Py_None, Py_None};
    for (int i = 0; i < count; ++i) arguments[i] = operands[i];
    PyObject* result = PyObject_Vectorcall(function.get(), arguments, kMaxThunkOperands, nullptr);
    if (!result) drop_thunk_from_traceback();
    return result;
}

int import_star_native(PyThreadState*, PyObject* module, PyObject* globals, PyObject* locals) {
    std::string bytes;
    append(bytes, Op::Resume, 0);
    append(bytes, Op::LoadConst, 0);
    append(bytes, Op::ImportStar, 0);
    append(bytes, Op::LoadConst, 1);
    append(bytes, Op::ReturnValue, 0);
    PyRef code =
        replace_code(Py_BuildValue("{s:y#,s:(OO),s:i,s:i,s:i,s:(),s:()}", "co_code", bytes.data(), (Py_ssize_t)bytes.size(), "co_consts",
                                   module, Py_None, "co_argcount", 0, "co_nlocals", 0, "co_flags", 0, "co_varnames", "co_names"));
    if (!code) return -1;
    PyRef none = PyRef::steal(PyEval_EvalCode(code.get(), globals, locals));
    if (!none) drop_thunk_from_traceback();
    return none ? 0 : -1;
}

bool serve_eval_breaker(PyThreadState* thread) {
    // Signal handlers must get the user's frame, so they run before the thunk; its RESUME does the rest.
    if (PyErr_CheckSignals() < 0) return false;
    PyObject* none = Py_None;
    PyRef done = PyRef::steal(run_native(thread, Op::Nop, 0, &none, 1));
    return (bool)done;
}

int init_thunks() {
    PyRef scope = PyRef::steal(PyDict_New());
    thunk_globals = PyDict_New();
    if (!scope || !thunk_globals || PyDict_SetItemString(thunk_globals, "__builtins__", PyEval_GetBuiltins()) < 0) return -1;
    // The body only has to need a value stack that is deep enough.
    PyRef made =
        PyRef::steal(PyRun_String("def thunk(a, b, c, d): return (a, b, c, d, [a, b, c, d])\n", Py_file_input, scope.get(), scope.get()));
    PyObject* function = made ? PyDict_GetItemString(scope.get(), "thunk") : nullptr;
    template_code = function ? PyObject_GetAttrString(function, "__code__") : nullptr;
    if (!template_code) return -1;
    // The eval breaker's thunk must exist before it is needed: making a code object raises an audit event, and an audit hook written in
    // Python would enter the interpreter, which would want the same thunk again.
    PyObject* none = Py_None;
    PyRef served = PyRef::steal(run_native(PyThreadState_Get(), Op::Nop, 0, &none, 1));
    return served ? 0 : -1;
}

}  // namespace framejit
