// The name of a C callable, and its row. Rows are found by what stays the same for all objects that are the same C code.
#include "plugin/record/call_policy.h"
#include <cstring>
#include <string_view>
#include <unordered_map>

namespace framejit {
namespace {

struct PolicyRow {
    std::string_view pattern;
    Policy policy;
};
constexpr PolicyRow kPolicies[] = {
#define CALL_POLICY(pattern, policy) {pattern, Policy::policy},
#include "plugin/record/call_policy.def"
#undef CALL_POLICY
};
Policy policy_of(const std::string& name) {
    for (const PolicyRow& r : kPolicies) {
        std::string_view start = r.pattern.substr(0, r.pattern.size() - 1);
        if (r.pattern.back() == '*' ? name.starts_with(start) : name == r.pattern) return r.policy;
    }
    return Policy::UNKNOWN;
}
std::string text(PyObject* o) {
    const char* s = o && PyUnicode_Check(o) ? PyUnicode_AsUTF8(o) : nullptr;
    if (!s) PyErr_Clear();
    return s ? s : "";
}
std::string type_name(PyTypeObject* t) { return t->tp_name; }  // static types carry their module in it: "torch.Size", "collections.deque"

// module.function, type.method or type: the name under which the policy knows a C callable.
std::string name_of_callable(PyObject* fn) {
    if (PyType_Check(fn)) {
        std::string n = type_name((PyTypeObject*)fn);
        return n.find('.') == n.npos ? "builtins." + n : n;
    }
    if (PyCFunction_Check(fn)) {
        auto* c = (PyCFunctionObject*)fn;
        PyObject* self = c->m_self;
        std::string name = c->m_ml->ml_name;
        if (name.find("::") != name.npos) return "torch.ops." + name;
        if (c->m_module && PyUnicode_Check(c->m_module)) return text(c->m_module) + "." + name;
        if (self && PyModule_Check(self)) return text(PyModule_GetNameObject(self)) + "." + name;
        if (self && PyType_Check(self)) {  // a class method, or a method of type (or of a metaclass) on a class
            bool own = ((PyTypeObject*)self)->tp_flags & Py_TPFLAGS_HEAPTYPE;
            return (own ? std::string("type") : type_name((PyTypeObject*)self)) + "." + name;
        }
        if (self && !strcmp(Py_TYPE(self)->tp_name, "PyCapsule"))
            return "torch." + name;  // pybind11's functions: of torch, when they come this way
        return self ? type_name(Py_TYPE(self)) + "." + name : name;
    }
    if (Py_IS_TYPE(fn, &PyMethodDescr_Type) || Py_IS_TYPE(fn, &PyWrapperDescr_Type) || Py_IS_TYPE(fn, &PyClassMethodDescr_Type))
        return type_name(((PyDescrObject*)fn)->d_type) + "." + text(((PyDescrObject*)fn)->d_name);
    return "object of " + type_name(Py_TYPE(fn));
}
const void* identity_of_callable(PyObject* fn) {
    if (PyCFunction_Check(fn)) return ((PyCFunctionObject*)fn)->m_ml;
    if (Py_IS_TYPE(fn, &PyMethodDescr_Type)) return ((PyMethodDescrObject*)fn)->d_method;
    if (Py_IS_TYPE(fn, &PyWrapperDescr_Type)) return ((PyWrapperDescrObject*)fn)->d_base;
    return PyType_Check(fn) ? (const char*)fn : (const char*)Py_TYPE(fn) + 1;  // calling an object of a type is not calling the type
}
std::unordered_map<PyObject*, PyRef>& declared_pure() {
    static auto& m = *new std::unordered_map<PyObject*, PyRef>;  // never destroyed: holds references
    return m;
}
}  // namespace

bool through_protocols(Policy policy) {
    static constexpr bool kRows[] = {
#define POLICY(name, protocols, harmless, meaning) protocols,
#include "plugin/record/policy.def"
#undef POLICY
    };
    return kRows[int(policy)];
}
bool harmless(Policy policy) {
    static constexpr bool kRows[] = {
#define POLICY(name, protocols, harmless, meaning) harmless,
#include "plugin/record/policy.def"
#undef POLICY
    };
    return kRows[int(policy)];
}

const CallRow& row_of(PyObject* fn) {
    static std::unordered_map<const void*, CallRow> rows;
    CallRow& r = rows[identity_of_callable(fn)];
    if (r.name.empty()) {
        r.name = name_of_callable(fn);
        r.policy = policy_of(r.name);
        if (r.policy == Policy::SPECIAL || r.policy == Policy::ASKS) r.special = special_of(r.name);
    }
    return r;
}
// dict.get for super().get: a method of a builtin type that is bound already. Null: something else.
PyObject* unbound(PyObject* fn) {
    PyObject* self = PyCFunction_Check(fn) ? PyCFunction_GET_SELF(fn) : nullptr;
    if (!self || PyModule_Check(self) || PyType_Check(self)) return nullptr;
    static auto& methods = *new std::unordered_map<const void*, PyRef>;  // never destroyed: holds references
    const PyMethodDef* def = ((PyCFunctionObject*)fn)->m_ml;
    auto [at, fresh] = methods.try_emplace(def);
    if (!fresh) return at->second.get();
    PyRef name = PyRef::steal(PyUnicode_InternFromString(def->ml_name));
    PyObject* bases = Py_TYPE(self)->tp_mro;
    for (Py_ssize_t i = 0; name && i < PyTuple_GET_SIZE(bases); ++i) {  // a subclass may override the name
        PyObject* dict = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(bases, i))->tp_dict;
        PyObject* found = dict ? PyDict_GetItemWithError(dict, name.get()) : nullptr;
        if (!found || !Py_IS_TYPE(found, &PyMethodDescr_Type) || ((PyMethodDescrObject*)found)->d_method != def) continue;
        at->second = PyRef::share(found);
        break;
    }
    return at->second.get();
}
PyRef interned(PyObject* name) {
    PyObject* n = Py_NewRef(name);
    PyUnicode_InternInPlace(&n);
    return PyRef::steal(n);
}

void assume_pure(PyObject* fn) { declared_pure()[fn] = PyRef::share(fn); }
bool assumed_pure(PyObject* fn) { return declared_pure().count(fn) != 0; }
std::string callable_name(PyObject* fn) {
    if (PyFunction_Check(fn)) return text(((PyFunctionObject*)fn)->func_qualname);
    return name_of_callable(fn);
}

}  // namespace framejit
