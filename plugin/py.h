// The Python C API for the plugin: Python.h in one place, and an owning reference.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <utility>

namespace framejit {

// Owns one reference (or nothing). `PyRef::steal` takes over a new reference, `PyRef::share` adds one. Needs the GIL.
class PyRef {
public:
    PyRef() = default;
    static PyRef steal(PyObject* o) {
        PyRef r;
        r.o_ = o;
        return r;
    }
    static PyRef share(PyObject* o) { return steal(Py_XNewRef(o)); }
    PyRef(const PyRef& r) : o_(Py_XNewRef(r.o_)) {}
    PyRef(PyRef&& r) noexcept : o_(std::exchange(r.o_, nullptr)) {}
    PyRef& operator=(PyRef r) noexcept {
        std::swap(o_, r.o_);
        return *this;
    }
    ~PyRef() { Py_XDECREF(o_); }
    PyObject* get() const { return o_; }
    PyObject* release() { return std::exchange(o_, nullptr); }
    PyObject* new_ref() const { return Py_XNewRef(o_); }
    explicit operator bool() const { return o_ != nullptr; }

private:
    PyObject* o_ = nullptr;
};

}  // namespace framejit
