// Operators as torch knows them: schemas, and calls to them at run time ("externs").
#pragma once
#include "plugin/py.h"
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace framejit {

struct ArgSchema {
    std::string name;
    bool has_default = false;
    mutable PyRef default_value;  // default_of()
    bool kwarg_only = false, writes = false, aliases = false;
    int writes_when = -1;  // written only when this boolean argument is true (native_batch_norm's running_mean and `training`)
};
struct OpSchema {
    std::string name;  // "aten::add.Tensor", default overloads without suffix "aten::relu"
    std::vector<ArgSchema> args;
    std::vector<int> returns_alias;      // per result: the argument that it aliases (view or the written one), or -1
    bool mutates = false, view = false;  // view: returns an alias, writes nothing
    bool random = false;                 // nondeterministic_seeded tag
    bool decomposes = false;             // composite implicit: the dispatch mode looks inside
    bool data_dependent = false;  // output shape or a Python value depends on data (tags data_dependent_output, dynamic_output_shape)
    PyRef overload;
    PyRef callable;  // what runs it: OpOverload._op
};
// Whether this call draws: dropout with probability 0, or not in training, does not.
bool draws(const OpSchema&, PyObject* args, PyObject* kwargs);
// Does it raise for some values of its arguments (an index out of range)?
bool raises_by_value(std::string_view op);
bool never_raises(std::string_view op);                  // with arguments of the recorded shapes and dtypes
PyObject* default_of(const OpSchema&, size_t argument);  // borrowed; null: required
// Cached per overload object. Null with a Python error when `overload` is no OpOverload (a higher order operator).
const OpSchema* schema_of(PyObject* overload);

// Stands for a tensor in a recorded argument: index into the tensors of the call.
struct Placeholder {
    PyObject_HEAD int index;
};
PyObject* make_placeholder(int index);
bool is_placeholder(PyObject*, int* index);

// One recorded call that torch executes at run time with other tensors. Uses the C shim when the overload has one (float32/64 CPU etc.),
// then torch's builtin, then the overload.
class Extern {
public:
    Extern() = default;
    // args/kwargs: as dispatched, with placeholders (also inside lists and tuples) in place of tensors; kwargs may be null.
    // Not valid, with a Python error, when `overload` is no overload.
    Extern(PyObject* overload, PyObject* args, PyObject* kwargs);
    bool valid() const { return impl_ != nullptr; }
    const OpSchema& schema() const;
    int tensors() const;  // number of placeholders
    // Runs it, below autocast (the casts were recorded). The caller sees to the grad mode.
    // results: one new reference per result, flattened (tuples and tensor lists). Null slots for undefined tensors and for what is no
    // tensor. `results` is resized. -1 with a Python error (eager's).
    int call(PyObject* const* tensors, std::vector<PyObject*>& results) const;
    const char* route() const;  // what the last call took: "shim", "builtin" or "overload"
    int traverse(visitproc, void*) const;

private:
    struct Impl;
    std::shared_ptr<Impl> impl_;
};

}  // namespace framejit
