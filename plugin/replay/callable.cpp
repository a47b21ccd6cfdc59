// The Python side of a compiled function: attributes, binding as a method, pickling, copying, collection. What a call does is in
// compiled_call.
#include "plugin/replay/callable.h"
#include "plugin/frame/frame.h"
#include "plugin/replay/bind.h"
#include <cstddef>
#include <structmember.h>

namespace framejit {
namespace {

PyTypeObject* function_type;
PyTypeObject* method_type;

CompiledFunction* cast(PyObject* o) { return reinterpret_cast<CompiledFunction*>(o); }

PyObject* compiled_call(PyObject* object, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
    CompiledFunction* f = cast(object);
    if (PyFunction_GET_CODE(f->function) == reinterpret_cast<PyObject*>(f->code)) {
        BoundArguments bound(*f);
        if (bound.bind(args, PyVectorcall_NARGS(nargsf), kwnames)) {
            bool handled = true;
            PyObject* result = call_region(f, bound.slots(), &handled);
            if (handled) return result;
        }
    }
    return call_slow(f, f->target, args, nargsf, kwnames);
}

// As functools.wraps does.
int fill_dict(CompiledFunction* f) {
    static const char* const kNames[] = {"__module__", "__name__", "__qualname__", "__doc__", "__annotations__", "__type_params__"};
    for (const char* name : kNames) {
        PyRef value = PyRef::steal(PyObject_GetAttrString(f->target, name));
        if (!value)
            PyErr_Clear();
        else if (PyDict_SetItemString(f->dict, name, value.get()) < 0)
            return -1;
    }
    PyRef own = PyRef::steal(PyObject_GetAttrString(f->target, "__dict__"));
    if (!own || PyDict_Merge(f->dict, own.get(), 0) < 0) return -1;
    return PyDict_SetItemString(f->dict, "__wrapped__", f->target);
}

PyObject* compiled_get(PyObject* self, PyObject* instance, PyObject*) {
    return !instance || instance == Py_None ? Py_NewRef(self) : PyMethod_New(self, instance);
}

// __code__, __defaults__, __globals__ and whatever else the function has
PyObject* compiled_getattro(PyObject* self, PyObject* name) {
    PyObject* value = PyObject_GenericGetAttr(self, name);
    if (value || !PyErr_ExceptionMatches(PyExc_AttributeError)) return value;
    PyErr_Clear();
    return PyObject_GetAttr(cast(self)->target, name);
}

PyObject* compiled_repr(PyObject* self) {
    return PyUnicode_FromFormat("<framejit.compile of %U>", reinterpret_cast<PyFunctionObject*>(cast(self)->function)->func_qualname);
}

// A function by name or as what compile() does to one (compiler.py); a method as an attribute of its object.
PyObject* compiled_reduce(PyObject* self, PyObject*) {
    CompiledFunction* f = cast(self);
    auto* function = reinterpret_cast<PyFunctionObject*>(f->function);
    if (!f->self) {
        PyRef compiler = PyRef::steal(PyImport_ImportModule("framejit.compiler"));
        return compiler ? PyObject_CallMethod(compiler.get(), "_reduced", "(OOO)", self, f->target, f->options) : nullptr;
    }
    PyRef builtins = PyRef::steal(PyImport_ImportModule("builtins"));
    PyRef getattr = PyRef::steal(builtins ? PyObject_GetAttrString(builtins.get(), "getattr") : nullptr);
    return getattr ? Py_BuildValue("O(OO)", getattr.get(), f->self, function->func_name) : nullptr;
}

PyObject* compiled_copy(PyObject* self, PyObject*) { return Py_NewRef(self); }

int compiled_traverse(PyObject* self, visitproc visit, void* arg) {
    CompiledFunction* f = cast(self);
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(f->target);
    Py_VISIT(f->function);
    Py_VISIT(f->code);
    Py_VISIT(f->self);
    Py_VISIT(f->options);
    Py_VISIT(f->dict);
    return f->state && f->traverse_state ? f->traverse_state(f->state, visit, arg) : 0;
}

// The target stays, so that it can be called while a cycle is taken apart; functions and objects in the cycle break it.
int compiled_clear(PyObject* self) {
    CompiledFunction* f = cast(self);
    if (f->state && f->clear_state) f->clear_state(f->state);
    Py_CLEAR(f->options);
    Py_CLEAR(f->dict);
    return 0;
}

void compiled_dealloc(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    CompiledFunction* f = cast(self);
    PyObject_GC_UnTrack(self);
    if (f->weak) PyObject_ClearWeakRefs(self);
    if (f->state && f->free_state) f->free_state(f->state);
    f->state = nullptr;
    compiled_clear(self);
    Py_CLEAR(f->target);
    Py_CLEAR(f->function);
    Py_CLEAR(f->code);
    Py_CLEAR(f->self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyMethodDef methods[] = {
    {"__reduce__", compiled_reduce, METH_NOARGS, nullptr},
    {"__copy__", compiled_copy, METH_NOARGS, nullptr},
    {"__deepcopy__", compiled_copy, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(CompiledFunction, call), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(CompiledFunction, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(CompiledFunction, weak), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyGetSetDef getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
// descr_get comes last: a method's type leaves it out.
PyType_Slot slots[] = {
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_getattro, reinterpret_cast<void*>(compiled_getattro)},
    {Py_tp_repr, reinterpret_cast<void*>(compiled_repr)},
    {Py_tp_traverse, reinterpret_cast<void*>(compiled_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(compiled_clear)},
    {Py_tp_dealloc, reinterpret_cast<void*>(compiled_dealloc)},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_tp_getset, getset},
    {Py_tp_descr_get, reinterpret_cast<void*>(compiled_get)},
    {0, nullptr},
};

PyTypeObject* make_type(const char* name, bool binds) {
    constexpr unsigned long kFlags =
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE;
    if (!binds) slots[std::size(slots) - 2] = slots[std::size(slots) - 1];
    PyType_Spec spec = {name, sizeof(CompiledFunction), 0, unsigned(binds ? kFlags | Py_TPFLAGS_METHOD_DESCRIPTOR : kFlags), slots};
    return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
}

// The slots that a call would see, for tests; None when the arguments do not bind. Empty slots are left out of the dict {name: value}.
PyObject* bind_arguments(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* kwnames) {
    CompiledFunction* f = count ? as_compiled(args[0]) : nullptr;
    if (!f) {
        PyErr_SetString(PyExc_TypeError, "the first argument must be a compiled function");
        return nullptr;
    }
    BoundArguments bound(*f);
    if (!bound.bind(args + 1, count - 1, kwnames)) Py_RETURN_NONE;
    PyRef result = PyRef::steal(PyDict_New());
    for (int i = 0; result && i < f->slots; ++i)
        if (bound.slots()[i] && PyDict_SetItem(result.get(), PyTuple_GET_ITEM(local_names(f->code), i), bound.slots()[i]) < 0)
            return nullptr;
    return result.release();
}

PyObject* make(PyObject*, PyObject* args) {
    PyObject *target, *options;
    if (!PyArg_ParseTuple(args, "OO!:make_callable", &target, &PyDict_Type, &options)) return nullptr;
    return make_callable(target, options);
}

PyMethodDef functions[] = {
    {"make_callable", make, METH_VARARGS, "make_callable(target, options): the callable that compiles a function or bound method"},
    {"_bind", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(bind_arguments)), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

CompiledFunction* as_compiled(PyObject* o) { return Py_IS_TYPE(o, function_type) || Py_IS_TYPE(o, method_type) ? cast(o) : nullptr; }

PyObject* make_callable(PyObject* target, PyObject* options) {
    PyObject* function = PyMethod_Check(target) ? PyMethod_GET_FUNCTION(target) : target;
    if (!PyFunction_Check(function)) {
        PyErr_Format(PyExc_TypeError, "framejit compiles Python functions and methods, not '%.100s' objects", Py_TYPE(function)->tp_name);
        return nullptr;
    }
    PyTypeObject* type = function == target ? function_type : method_type;
    PyRef object = PyRef::steal(type->tp_alloc(type, 0));
    CompiledFunction* f = cast(object.get());
    if (!f) return nullptr;
    f->call = compiled_call;
    f->target = Py_NewRef(target);
    f->function = Py_NewRef(function);
    f->code = reinterpret_cast<PyCodeObject*>(Py_NewRef(PyFunction_GET_CODE(function)));
    f->self = function == target ? nullptr : Py_NewRef(PyMethod_GET_SELF(target));
    f->options = Py_NewRef(options);
    f->positional = f->code->co_argcount;
    f->slots = locals_count(f->code);
    f->plain = !f->code->co_kwonlyargcount && !(f->code->co_flags & (CO_VARARGS | CO_VARKEYWORDS));
    f->dict = PyDict_New();
    return f->dict && fill_dict(f) == 0 ? object.release() : nullptr;
}

int add_callable(PyObject* module) {
    function_type = make_type("framejit.CompiledFunction", true);
    method_type = function_type ? make_type("framejit.CompiledMethod", false) : nullptr;
    if (!method_type || PyModule_AddObjectRef(module, "CompiledFunction", reinterpret_cast<PyObject*>(function_type)) < 0 ||
        PyModule_AddObjectRef(module, "CompiledMethod", reinterpret_cast<PyObject*>(method_type)) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}

}  // namespace framejit
