// Calls to operators at run time, by the cheapest way that gives eager's result: a shim (shim.cpp), torch's builtin once proven (proof.h),
// the overload's own callable. The recorded arguments become a template: one row per argument that says constant, tensor, or sequence to be
// rebuilt (another thread may run the same call while torch has released the GIL, so nothing of the template is shared with a call).
#include "plugin/torch/operators.h"
#include "plugin/torch/proof.h"
#include "plugin/torch/shim.h"
#include "plugin/torch/tensor.h"
#include "plugin/torch/torch.h"
#include <string_view>

namespace framejit {

namespace {

struct Piece {
    enum Kind : uint8_t { Constant, Tensor, List, Tuple } kind = Constant;
    int index = -1;  // Tensor
    PyRef constant;
    std::vector<Piece> items;  // List, Tuple
};

Piece piece_of(PyObject* value, int& tensors) {
    Piece piece;
    if (is_placeholder(value, &piece.index)) {
        piece.kind = Piece::Tensor;
        tensors = std::max(tensors, piece.index + 1);
        return piece;
    }
    piece.constant = PyRef::share(value);
    if (!PyList_CheckExact(value) && !PyTuple_CheckExact(value)) return piece;
    bool fixed = true;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i) {
        piece.items.push_back(piece_of(PySequence_Fast_GET_ITEM(value, i), tensors));
        fixed = fixed && piece.items.back().kind == Piece::Constant;
    }
    if (fixed) {
        piece.items.clear();
        return piece;
    }
    piece.kind = PyList_CheckExact(value) ? Piece::List : Piece::Tuple;
    piece.constant = {};
    return piece;
}

// A new reference.
PyObject* build(const Piece& piece, PyObject* const* tensors) {
    if (piece.kind == Piece::Constant) return piece.constant.new_ref();
    if (piece.kind == Piece::Tensor) return Py_NewRef(tensors[piece.index]);
    const Py_ssize_t count = Py_ssize_t(piece.items.size());
    PyRef sequence = PyRef::steal(piece.kind == Piece::List ? PyList_New(count) : PyTuple_New(count));
    for (Py_ssize_t i = 0; sequence && i < count; ++i) {
        PyObject* item = build(piece.items[size_t(i)], tensors);
        if (!item) return nullptr;
        if (piece.kind == Piece::List)
            PyList_SET_ITEM(sequence.get(), i, item);
        else
            PyTuple_SET_ITEM(sequence.get(), i, item);
    }
    return sequence.release();
}

// Takes over `value`.
void flatten(PyObject* value, std::vector<PyObject*>& results) {
    if (is_tensor(value)) {
        results.push_back(value);
        return;
    }
    if (PyTuple_Check(value) || PyList_Check(value)) {
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i) flatten(Py_NewRef(PySequence_Fast_GET_ITEM(value, i)), results);
    } else {
        results.push_back(nullptr);
    }
    Py_DECREF(value);
}

int traverse_piece(const Piece& piece, visitproc visit, void* arg) {
    Py_VISIT(piece.constant.get());
    for (auto& item : piece.items)
        if (int stopped = traverse_piece(item, visit, arg)) return stopped;
    return 0;
}

// Arguments of one vectorcall: borrowed constants and tensors, owned rebuilt sequences.
class Arguments {
public:
    Arguments(const std::vector<Piece>& pieces, PyObject* const* tensors) {
        PyObject** values = pieces.size() <= kInside ? inside_ : (outside_.resize(pieces.size() + 1), outside_.data());
        values_ = values + 1;  // the slot before the first one belongs to the callee
        for (size_t i = 0; i < pieces.size(); ++i) {
            const Piece& piece = pieces[i];
            if (piece.kind == Piece::Constant) {
                values_[i] = piece.constant.get();
            } else if (piece.kind == Piece::Tensor) {
                values_[i] = tensors[piece.index];
            } else {
                owned_.push_back(PyRef::steal(build(piece, tensors)));
                values_[i] = owned_.back().get();
                complete_ = complete_ && values_[i];
            }
        }
    }
    bool complete() const { return complete_; }
    PyObject* const* values() const { return values_; }

private:
    static constexpr size_t kInside = 16;
    PyObject* inside_[kInside + 1];
    std::vector<PyObject*> outside_;
    std::vector<PyRef> owned_;
    PyObject** values_;
    bool complete_ = true;
};

}  // namespace

struct Extern::Impl {
    PyRef overload;
    const OpSchema* schema = nullptr;
    int tensors = 0;
    std::vector<Piece> pieces;  // positional arguments, then the values of `names`
    size_t positional = 0;
    PyRef names;  // tuple of keyword names or null
    std::unique_ptr<Shim> shim;
    PyObject* builtin = nullptr;  // null: there is none, or it was refuted
    bool proven = false;
    const char* route = "overload";

    // A new reference, null with a Python error.
    PyObject* run(PyObject* const* tensors, PyObject* const* values) {
        NoAutocast below;
        const size_t flags = positional | PY_VECTORCALL_ARGUMENTS_OFFSET;
        if (builtin && ordinary_thread() && all_plain(tensors)) {
            route = "builtin";
            if (proven) return PyObject_Vectorcall(builtin, values, flags, names.get());
            if (PyObject* value = prove(builtin, overload.get(), values, positional, names.get())) {
                proven = true;
                return value;
            }
            if (PyErr_Occurred()) return nullptr;
            builtin = nullptr;
        }
        route = "overload";
        return PyObject_Vectorcall(schema->callable.get(), values, flags, names.get());
    }
    bool all_plain(PyObject* const* values) const {
        for (int i = 0; i < tensors; ++i)
            if (!is_plain_tensor(values[i])) return false;
        return true;
    }
    // The recorded arguments in the schema's order, missing ones null; empty when a keyword is unknown.
    std::vector<PyObject*> in_order(PyObject* args, PyObject* kwargs) const {
        std::vector<PyObject*> ordered(schema->args.size(), nullptr);
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args) && size_t(i) < ordered.size(); ++i)
            ordered[size_t(i)] = PyTuple_GET_ITEM(args, i);
        for (size_t i = 0; kwargs && i < ordered.size(); ++i)
            if (PyObject* value = PyDict_GetItemString(kwargs, schema->args[i].name.c_str())) ordered[i] = value;
        return ordered;
    }
};

Extern::Extern(PyObject* overload, PyObject* args, PyObject* kwargs) {
    auto impl = std::make_shared<Impl>();
    impl->overload = PyRef::share(overload);
    impl->schema = schema_of(overload);
    if (!impl->schema) return;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) impl->pieces.push_back(piece_of(PyTuple_GET_ITEM(args, i), impl->tensors));
    impl->positional = impl->pieces.size();
    if (kwargs && PyDict_GET_SIZE(kwargs) > 0) {
        impl->names = PyRef::steal(PySequence_Tuple(kwargs));
        if (!impl->names) return;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(impl->names.get()); ++i)
            impl->pieces.push_back(piece_of(PyDict_GetItem(kwargs, PyTuple_GET_ITEM(impl->names.get(), i)), impl->tensors));
    }
    impl->shim = Shim::prepare(*impl->schema, impl->in_order(args, kwargs));
    impl->builtin = builtin_for(*impl->schema);
    impl_ = std::move(impl);
}

const OpSchema& Extern::schema() const { return *impl_->schema; }
int Extern::tensors() const { return impl_->tensors; }
const char* Extern::route() const { return impl_->route; }

int Extern::call(PyObject* const* tensors, std::vector<PyObject*>& results) const {
    results.clear();
    const std::shared_ptr<Impl> impl = impl_;  // a callback of the operator may drop this extern
    if (impl->shim) {
        if (PyObject* out = impl->shim->run(tensors)) {
            impl->route = "shim";
            results.push_back(out);
            return 0;
        }
        if (PyErr_Occurred()) return -1;
    }
    Arguments arguments(impl->pieces, tensors);
    if (!arguments.complete()) return -1;
    PyObject* value = impl->run(tensors, arguments.values());
    if (!value) return -1;
    flatten(value, results);
    return 0;
}

int Extern::traverse(visitproc visit, void* arg) const {
    if (!impl_) return 0;
    for (auto& piece : impl_->pieces)
        if (int stopped = traverse_piece(piece, visit, arg)) return stopped;
    return 0;
}

}  // namespace framejit
