// Order of slots: parameters, keyword-only parameters, *args, **kwargs, other locals, cells, free variables.
#include "plugin/replay/bind.h"
#include "plugin/frame/frame.h"
#include <algorithm>
#include <cstring>

namespace framejit {

bool BoundArguments::bind(PyObject* const* args, Py_ssize_t count, PyObject* kwnames) {
    // Few slots: plain loops are faster than what a compiler makes of std::copy.
    Py_ssize_t filled = own_;
    if (own_) slots_[0] = of_.self;
    for (PyObject* const* arg = args; arg < args + count && filled < of_.positional; ++arg) slots_[filled++] = *arg;
    while (filled < of_.slots) slots_[filled++] = nullptr;
    if (!of_.plain || kwnames || (of_.self != nullptr) + count != of_.positional)
        if (!bind_rest(args, count, kwnames)) return false;
    if (PyObject* closure = PyFunction_GET_CLOSURE(of_.function)) {
        Py_ssize_t cells = PyTuple_GET_SIZE(closure);
        for (Py_ssize_t i = 0; i < cells; ++i) slots_[of_.slots - cells + i] = PyTuple_GET_ITEM(closure, i);
    }
    return true;
}

bool BoundArguments::bind_rest(PyObject* const* args, Py_ssize_t count, PyObject* kwnames) {
    if (!make_packs(args, count)) return false;
    for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); ++i)
        if (!bind_keyword(PyTuple_GET_ITEM(kwnames, i), args[count + i])) return false;
    return fill_defaults();
}

bool BoundArguments::make_packs(PyObject* const* args, Py_ssize_t count) {
    const PyCodeObject* code = of_.code;
    Py_ssize_t taken = of_.positional - own_;
    bool packs_self = of_.self && !own_;  // def method(*args)
    int pack = of_.positional + code->co_kwonlyargcount;
    if (code->co_flags & CO_VARARGS) {
        Py_ssize_t extra = std::max<Py_ssize_t>(count - taken, 0);
        tuple_ = PyRef::steal(PyTuple_New(packs_self + extra));
        if (!tuple_) return PyErr_Clear(), false;
        if (packs_self) PyTuple_SET_ITEM(tuple_.get(), 0, Py_NewRef(of_.self));
        for (Py_ssize_t i = 0; i < extra; ++i) PyTuple_SET_ITEM(tuple_.get(), packs_self + i, Py_NewRef(args[taken + i]));
        slots_[pack++] = tuple_.get();
    } else if (packs_self || count > taken) {
        return false;
    }
    if (code->co_flags & CO_VARKEYWORDS) {
        dict_ = PyRef::steal(PyDict_New());
        if (!dict_) return PyErr_Clear(), false;
        slots_[pack] = dict_.get();
    }
    return true;
}

bool BoundArguments::bind_keyword(PyObject* name, PyObject* value) {
    PyObject* names = local_names(of_.code);
    int first = of_.code->co_posonlyargcount;
    int last = of_.positional + of_.code->co_kwonlyargcount;
    int found = first;
    while (found < last && PyTuple_GET_ITEM(names, found) != name)  // nearly always the same interned string
        ++found;
    if (found == last) {
        found = first;
        while (found < last && PyUnicode_Compare(PyTuple_GET_ITEM(names, found), name) != 0) ++found;
    }
    if (found < last) {
        bool given_twice = slots_[found];
        slots_[found] = value;
        return !given_twice;
    }
    if (!dict_) return false;
    if (PyDict_SetItem(dict_.get(), name, value) < 0) return PyErr_Clear(), false;
    return true;
}

bool BoundArguments::fill_defaults() {
    PyObject* defaults = PyFunction_GET_DEFAULTS(of_.function);
    Py_ssize_t known = defaults ? PyTuple_GET_SIZE(defaults) : 0;
    Py_ssize_t first = of_.positional - known;
    for (Py_ssize_t i = 0; i < of_.positional; ++i) {
        if (slots_[i]) continue;
        if (i < first) return false;
        slots_[i] = PyTuple_GET_ITEM(defaults, i - first);
    }
    PyObject* named = PyFunction_GET_KW_DEFAULTS(of_.function);
    PyObject* names = local_names(of_.code);
    for (int i = of_.positional; i < of_.positional + of_.code->co_kwonlyargcount; ++i) {
        if (slots_[i]) continue;
        slots_[i] = named ? PyDict_GetItemWithError(named, PyTuple_GET_ITEM(names, i)) : nullptr;
        if (!slots_[i]) return PyErr_Clear(), false;
    }
    return true;
}

}  // namespace framejit
