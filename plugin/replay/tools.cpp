// One operator, lowered by its ATen rule and run alone: the bridge between the op table and tests that compare it with torch.
//
//   _aten_overloads() -> [(overload, is_view), ...]
//   _lower_and_run(overload, args, results, oracle=False) -> [tensor, ...] or None when the rule does not cover these arguments
//   _lower_text(overload, args, results) -> the graph as text, or None
//
// args: every argument in schema order, defaults filled in; a dtype is given as {"dtype": "f32"}. results: eager's results, whose dtypes
// and shapes the rule gets as the recorder would pass them (other dtypes or shapes are an error). oracle: interpret, do not compile.
#include "plugin/replay/tools.h"

#include <string>

#include "framejit/api.h"
#include "framejit/op.h"
#include "plugin/torch/tensor.h"

namespace framejit {
namespace {

struct PythonError {};  // a Python exception is set

struct Lowered {
    Graph graph;
    std::vector<PyObject*> inputs;  // borrowed
    bool covered = false;
};

DType dtype_named(PyObject* name) {
    const char* text = PyUnicode_AsUTF8(name);
    if (!text) throw PythonError{};
    for (int k = 0; k < kDTypeCount; k++)
        if (name_of(DType(k)) == text) return DType(k);
    throw GraphError(std::string("no dtype ") + text);
}

class ArgReader {
public:
    explicit ArgReader(Lowered& to) : to_(to) {}

    Arg read(PyObject* o) {
        if (o == Py_None) return {};
        if (is_tensor(o)) return {tensor(o)};
        if (PyBool_Check(o)) return {o == Py_True};
        if (PyLong_Check(o)) return {int64_t(PyLong_AsLongLong(o))};
        if (PyFloat_Check(o)) return {PyFloat_AS_DOUBLE(o)};
        if (PyUnicode_Check(o)) return {std::string(PyUnicode_AsUTF8(o))};
        if (PyDict_Check(o)) return {dtype_named(PyDict_GetItemString(o, "dtype"))};
        if (PyList_Check(o) || PyTuple_Check(o)) return list(o);
        throw GraphError(std::string("cannot pass a ") + Py_TYPE(o)->tp_name);
    }

private:
    Ref tensor(PyObject* o) {
        const TensorView v = view_of(o);
        to_.inputs.push_back(o);
        return to_.graph.input(v.dtype, Shape(v.sizes, v.sizes + v.ndim), Shape(v.strides, v.strides + v.ndim));
    }
    Arg list(PyObject* o) {
        std::vector<Ref> tensors;
        std::vector<int64_t> integers;
        std::vector<double> reals;
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); i++) {
            PyObject* item = PySequence_Fast_GET_ITEM(o, i);
            if (item == Py_None)
                tensors.push_back(nullptr);
            else if (is_tensor(item))
                tensors.push_back(tensor(item));
            else if (PyLong_Check(item))
                integers.push_back(PyLong_AsLongLong(item));
            else
                reals.push_back(PyFloat_AsDouble(item));
        }
        if (!tensors.empty()) return {tensors};
        if (!reals.empty()) return {reals};
        return {integers};
    }
    Lowered& to_;
};

std::vector<Meta> metas_of(PyObject* results) {
    std::vector<Meta> out;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(results); i++) {
        PyObject* o = PyList_GET_ITEM(results, i);
        if (!is_tensor(o)) throw GraphError("result " + std::to_string(i) + " is no tensor");
        const TensorView v = view_of(o);
        out.push_back({v.dtype, Shape(v.sizes, v.sizes + v.ndim)});
    }
    return out;
}

Lowered lower(const char* overload, PyObject* args, PyObject* results) {
    const AtenRule* rule = find_aten(overload);
    if (!rule) throw GraphError(std::string("no rule for ") + overload);
    Lowered lowered;
    lowered.graph.name = overload;
    ArgReader reader(lowered);
    std::vector<Arg> values;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++) values.push_back(reader.read(PyTuple_GET_ITEM(args, i)));
    const std::vector<Meta> metas = metas_of(results);
    auto refs = rule->lower(lowered.graph, values, metas);
    if (!refs) return lowered;
    if (refs->size() != metas.size()) throw GraphError("the rule gives " + std::to_string(refs->size()) + " results");
    for (size_t k = 0; k < metas.size(); k++) {
        Ref r = (*refs)[k];
        if (r->dtype != metas[k].dtype) throw GraphError("result " + std::to_string(k) + " is " + std::string(name_of(r->dtype)));
        if (r->shape != metas[k].shape) throw GraphError("result " + std::to_string(k) + " has another shape");
        lowered.graph.outputs.push_back({r});
    }
    if (std::string problem = verify(lowered.graph, Stage::Captured); !problem.empty()) throw GraphError(problem);
    lowered.covered = true;
    return lowered;
}

PyObject* run(const Lowered& lowered, PyObject* results, bool oracle) {
    PyRef list = PyRef::steal(PyList_New(0));
    std::vector<void*> bufs;
    for (PyObject* o : lowered.inputs) bufs.push_back(view_of(o).data);
    for (size_t k = 0; k < lowered.graph.outputs.size(); k++) {
        const TensorView like = view_of(PyList_GET_ITEM(results, Py_ssize_t(k)));
        const Shape& shape = lowered.graph.outputs[k].value->shape;
        PyRef made = PyRef::steal(Allocator(shape, contiguous_strides(shape), like.torch_dtype)());
        if (!made || PyList_Append(list.get(), made.get()) < 0) throw PythonError{};
        bufs.push_back(view_of(made.get()).data);
    }
    if (oracle)
        interpret(lowered.graph, bufs);
    else
        run_plain(*compile(lowered.graph, host_target()), bufs);
    return list.release();
}

// C++ errors as Python ones.
template <class F> PyObject* guarded(F f) {
    try {
        return f();
    } catch (const PythonError&) {
        return nullptr;
    } catch (const std::out_of_range& e) {
        PyErr_SetString(PyExc_IndexError, e.what());
    } catch (const std::exception& e) {
        PyErr_SetString(PyExc_RuntimeError, e.what());
    }
    return nullptr;
}

PyObject* lower_and_run(PyObject*, PyObject* args) {
    const char* overload;
    PyObject *arguments, *results;
    int oracle = 0;
    if (!PyArg_ParseTuple(args, "sO!O!|p", &overload, &PyTuple_Type, &arguments, &PyList_Type, &results, &oracle)) return nullptr;
    return guarded([&]() -> PyObject* {
        Lowered lowered = lower(overload, arguments, results);
        if (!lowered.covered) Py_RETURN_NONE;
        return run(lowered, results, oracle);
    });
}

PyObject* lower_text(PyObject*, PyObject* args) {
    const char* overload;
    PyObject *arguments, *results;
    if (!PyArg_ParseTuple(args, "sO!O!", &overload, &PyTuple_Type, &arguments, &PyList_Type, &results)) return nullptr;
    return guarded([&]() -> PyObject* {
        Lowered lowered = lower(overload, arguments, results);
        if (!lowered.covered) Py_RETURN_NONE;
        return PyUnicode_FromString(print(lowered.graph).c_str());
    });
}

PyObject* aten_overloads(PyObject*, PyObject*) {
    PyRef list = PyRef::steal(PyList_New(0));
    for (const AtenRule& rule : all_aten()) {
        PyRef row =
            PyRef::steal(Py_BuildValue("(s#N)", rule.overload.data(), Py_ssize_t(rule.overload.size()), PyBool_FromLong(rule.view)));
        if (!row || PyList_Append(list.get(), row.get()) < 0) return nullptr;
    }
    return list.release();
}

PyMethodDef kMethods[] = {
    {"_aten_overloads", aten_overloads, METH_NOARGS, "Every ATen operator with a rule, and whether it is a view."},
    {"_lower_and_run", lower_and_run, METH_VARARGS, "Runs one operator through its rule; see tools.cpp."},
    {"_lower_text", lower_text, METH_VARARGS, "The graph that a rule makes, as text."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

int add_tools(PyObject* module) { return PyModule_AddFunctions(module, kMethods); }

}  // namespace framejit
