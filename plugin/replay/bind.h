// Arguments of a call -> slots of a frame at entry, as CPython binds them. Slot -1 is the function.
#pragma once
#include "plugin/replay/callable.h"

namespace framejit {

class BoundArguments {
public:
    explicit BoundArguments(const CompiledFunction& of) : of_(of), own_(of.self && of.positional), slots_(room_ + 1) {
        if (of.slots > kInline) slots_ = new PyObject*[size_t(of.slots) + 1] + 1;
        slots_[-1] = of.function;
    }
    ~BoundArguments() {
        if (slots_ != room_ + 1) delete[] (slots_ - 1);
    }
    BoundArguments(const BoundArguments&) = delete;
    BoundArguments& operator=(const BoundArguments&) = delete;

    // False: they do not bind, calling the function raises. No Python error is left behind.
    bool bind(PyObject* const* args, Py_ssize_t count, PyObject* kwnames);
    PyObject* const* slots() const { return slots_; }

private:
    static constexpr int kInline = 64;
    bool bind_rest(PyObject* const* args, Py_ssize_t count, PyObject* kwnames);
    bool bind_keyword(PyObject* name, PyObject* value);
    bool fill_defaults();
    bool make_packs(PyObject* const* args, Py_ssize_t count);

    const CompiledFunction& of_;
    const int own_;  // 1: a bound method's object is slot 0
    PyObject** slots_;
    PyRef tuple_, dict_;  // *args and **kwargs
    PyObject* room_[kInline + 1];
};

}  // namespace framejit
