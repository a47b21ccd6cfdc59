// Import statements, and the display of interactive expressions.
#include "plugin/interpret/run.h"

namespace framejit {
namespace {

PyObject* import_name(Run& run, PyObject* name, PyObject* level, PyObject* from_list) {
    PyRef import = PyRef::steal(PyObject_GetItem(builtins_of(run.frame), INTERNED("__import__")));
    if (!import) {
        if (PyErr_ExceptionMatches(PyExc_KeyError)) PyErr_SetString(PyExc_ImportError, "__import__ not found");
        return nullptr;
    }
    PyObject* globals = globals_of(run.frame);
    PyObject* locals = locals_mapping(run.frame) ? locals_mapping(run.frame) : Py_None;
    if (import.get() == builtin_import(run.thread)) {
        const long depth = PyLong_AsLong(level);
        if (depth == -1 && PyErr_Occurred()) return nullptr;
        return PyImport_ImportModuleLevelObject(name, globals, locals, from_list, (int)depth);
    }
    PyObject* arguments[] = {name, globals, locals, from_list, level};
    return PyObject_Vectorcall(import.get(), arguments, 5, nullptr);
}

}  // namespace

// stack: level, names of `from`
HANDLER(ImportName) { return finish(run, sp, 2, import_name(run, run.name(ins.arg), sp[-2], sp[-1])); }

HANDLER(ImportFrom) {  // the module stays
    PyObject* name = run.name(ins.arg);
    PyObject* value = PyObject_GetAttr(sp[-1], name);
    if (!value && PyErr_ExceptionMatches(PyExc_AttributeError)) {  // submodules, circular imports, the message
        PyErr_Clear();
        value = run_native(run.thread, Op::ImportFrom, 0, sp - 1, 1, Results::One, name);
    }
    return finish(run, sp, 0, value);
}

HANDLER(ImportStar) {
    if (refresh_locals_mapping() < 0) return fail(run, sp);
    PyObject* locals = locals_mapping(run.frame);
    if (!locals) {
        PyErr_SetString(PyExc_SystemError, "no locals found during 'import *'");
        return fail(run, sp);
    }
    return finish_status(run, sp, 1, import_star_native(run.thread, sp[-1], globals_of(run.frame), locals));
}

HANDLER(PrintExpr) {
    PyRef hook = PyRef::share(PySys_GetObject("displayhook"));
    if (!hook) {
        PyErr_SetString(PyExc_RuntimeError, "lost sys.displayhook");
        return fail(run, sp);
    }
    PyRef none = PyRef::steal(PyObject_CallOneArg(hook.get(), sp[-1]));
    return none ? pop(sp, 1) : fail(run, sp);
}

}  // namespace framejit
