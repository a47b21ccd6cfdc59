// Locals beyond load and store, cells, globals and the names of module, class and exec frames.
#include "plugin/interpret/errors.h"
#include "plugin/interpret/run.h"

#include <array>

namespace framejit {
namespace {

// 1 found (a new reference in `value`), 0 missing, -1 error. A namespace may be a dict subclass or any mapping (exec, class bodies): its
// __getitem__ and __missing__ count then.
int look_up(PyObject* space, PyObject* name, PyObject*& value) {
    if (PyDict_CheckExact(space)) {
        value = Py_XNewRef(PyDict_GetItemWithError(space, name));
        if (value) return 1;
        return PyErr_Occurred() ? -1 : 0;
    }
    value = PyObject_GetItem(space, name);
    if (value) return 1;
    if (!PyErr_ExceptionMatches(PyExc_KeyError)) return -1;
    PyErr_Clear();
    return 0;
}

PyObject* global_or_builtin(Frame* frame, PyObject* name) {  // new reference
    PyObject* value = nullptr;
    int found = look_up(globals_of(frame), name, value);
    if (!found) found = look_up(builtins_of(frame), name, value);
    if (!found) set_name_error(name);
    return value;
}

// What a name meant while these two dicts were in these states. A version is never used twice, so a row that matches is right, and its
// value is alive in one of the dicts. It owns its name: another string might get the address otherwise.
struct KnownGlobal {
    PyObject* name = nullptr;
    uint64_t globals_version = 0;
    uint64_t builtins_version = 0;
    PyObject* value = nullptr;  // borrowed
};
std::array<KnownGlobal, 1024> known_globals;

KnownGlobal& known_slot(PyObject* name, PyObject* globals) {
    const uintptr_t mixed = ((uintptr_t)name >> 4) ^ ((uintptr_t)globals >> 6);
    return known_globals[mixed % known_globals.size()];
}

PyObject* cached_global(Frame* frame, PyObject* name) {  // new reference
    PyObject* globals = globals_of(frame);
    PyObject* builtins = builtins_of(frame);
    if (!PyDict_CheckExact(globals) || !PyDict_CheckExact(builtins)) return global_or_builtin(frame, name);
    KnownGlobal& known = known_slot(name, globals);
    const uint64_t globals_version = dict_version(globals);
    const uint64_t builtins_version = dict_version(builtins);
    if (known.name == name && known.globals_version == globals_version && known.builtins_version == builtins_version)
        return Py_NewRef(known.value);
    PyObject* value = global_or_builtin(frame, name);
    // The look-up may have run Python code (a key that is no string, with an __eq__), which may have changed the dicts or this row.
    if (value && dict_version(globals) == globals_version && dict_version(builtins) == builtins_version) {
        PyRef old = PyRef::steal(std::exchange(known.name, Py_NewRef(name)));
        known.globals_version = globals_version;
        known.builtins_version = builtins_version;
        known.value = value;
    }
    return value;
}

// The mapping of a frame that has one. Compiled code always has; bytecode made by hand may not.
PyObject* require_locals(Frame* frame, const char* message, PyObject* name = nullptr) {
    PyObject* locals = locals_mapping(frame);
    if (!locals) PyErr_Format(PyExc_SystemError, message, name);
    return locals;
}

void set_unbound_deref(const Run& run, int index) {
    if (index < locals_count(run.co) - free_vars_count(run.co))
        set_unbound_local(run.local_name(index));
    else
        set_unbound_free_variable(run.local_name(index));
}

Stack push_deref(Run& run, int index, Stack sp) {
    PyObject* value = PyCell_GET(run.fast[index]);
    if (!value) {
        set_unbound_deref(run, index);
        return fail(run, sp);
    }
    return push(sp, Py_NewRef(value));
}

}  // namespace

HANDLER(DeleteFast) {
    PyObject* old = run.fast[ins.arg];
    if (!old) {
        set_unbound_local(run.local_name(ins.arg));
        return fail(run, sp);
    }
    run.fast[ins.arg] = nullptr;
    Py_DECREF(old);
    return sp;
}

HANDLER(MakeCell) {
    PyObject* cell = PyCell_New(run.fast[ins.arg]);
    if (!cell) return fail(run, sp);
    Py_XSETREF(run.fast[ins.arg], cell);
    return sp;
}

HANDLER(CopyFreeVars) {
    PyObject* closure = PyFunction_GET_CLOSURE(function_of(run.frame));
    Stack cells = run.fast + locals_count(run.co) - ins.arg;
    for (int i = 0; i < ins.arg; ++i) cells[i] = Py_NewRef(PyTuple_GET_ITEM(closure, i));
    return sp;
}

HANDLER(LoadClosure) { return push(sp, Py_NewRef(run.fast[ins.arg])); }

HANDLER(LoadDeref) { return push_deref(run, ins.arg, sp); }

HANDLER(LoadClassderef) {
    PyObject* value;
    const int found = look_up(locals_mapping(run.frame), run.local_name(ins.arg), value);
    if (found < 0) return fail(run, sp);
    return found ? push(sp, value) : push_deref(run, ins.arg, sp);
}

HANDLER(StoreDeref) {
    PyObject* cell = run.fast[ins.arg];
    PyObject* old = PyCell_GET(cell);
    PyCell_SET(cell, *--sp);
    Py_XDECREF(old);
    return sp;
}

HANDLER(DeleteDeref) {
    PyObject* cell = run.fast[ins.arg];
    PyObject* old = PyCell_GET(cell);
    if (!old) {
        set_unbound_deref(run, ins.arg);
        return fail(run, sp);
    }
    PyCell_SET(cell, nullptr);
    Py_DECREF(old);
    return sp;
}

HANDLER(LoadGlobal) {
    PyObject* value = cached_global(run.frame, run.name(ins.arg >> 1));
    if (!value) return fail(run, sp);
    if (ins.arg & 1) sp = push(sp, nullptr);
    return push(sp, value);
}

HANDLER(StoreGlobal) { return finish_status(run, sp, 1, PyDict_SetItem(globals_of(run.frame), run.name(ins.arg), sp[-1])); }

HANDLER(DeleteGlobal) {
    if (PyDict_DelItem(globals_of(run.frame), run.name(ins.arg)) < 0) {
        if (PyErr_ExceptionMatches(PyExc_KeyError)) {
            PyErr_Clear();
            set_name_error(run.name(ins.arg));
        }
        return fail(run, sp);
    }
    return sp;
}

HANDLER(LoadName) {
    PyObject* name = run.name(ins.arg);
    PyObject* locals = require_locals(run.frame, "no locals when loading %R", name);
    PyObject* value = nullptr;
    const int found = locals ? look_up(locals, name, value) : -1;
    if (!found) value = global_or_builtin(run.frame, name);
    return finish(run, sp, 0, value);
}

HANDLER(StoreName) {
    PyObject* name = run.name(ins.arg);
    PyObject* locals = require_locals(run.frame, "no locals found when storing %R", name);
    if (!locals) return fail(run, sp);
    const int status = PyDict_CheckExact(locals) ? PyDict_SetItem(locals, name, sp[-1]) : PyObject_SetItem(locals, name, sp[-1]);
    return finish_status(run, sp, 1, status);
}

HANDLER(DeleteName) {
    PyObject* name = run.name(ins.arg);
    PyObject* locals = require_locals(run.frame, "no locals when deleting %R", name);
    if (!locals) return fail(run, sp);
    if (PyObject_DelItem(locals, name) < 0) {
        PyErr_Clear();
        set_name_error(name);
        return fail(run, sp);
    }
    return sp;
}

HANDLER(SetupAnnotations) {
    PyObject* locals = require_locals(run.frame, "no locals found when setting up annotations");
    PyObject* present = nullptr;
    const int found = locals ? look_up(locals, INTERNED("__annotations__"), present) : -1;
    PyRef held = PyRef::steal(present);
    if (found < 0) return fail(run, sp);
    if (found) return sp;
    PyRef made = PyRef::steal(PyDict_New());
    if (!made || PyObject_SetItem(locals, INTERNED("__annotations__"), made.get()) < 0) return fail(run, sp);
    return sp;
}

}  // namespace framejit
