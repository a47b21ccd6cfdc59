// Answers only where no other Python code could run: the class lacks the name, its __getattribute__ is object's, and all dicts are exact.
#include "plugin/interpret/members.h"
#include "plugin/frame/frame.h"
#include "plugin/interpret/run.h"

namespace framejit {
namespace {

struct MemberGetattr {
    PyRef function;
    PyRef code;
    std::vector<PyRef> dicts;
};
std::vector<MemberGetattr>& noted() {
    static auto* all = new std::vector<MemberGetattr>;  // never destroyed: holds references
    return *all;
}

PyObject* own_dict(PyObject* o) {  // never made here: what lies inline is for CPython to answer
    PyObject** slot = dict_slot(o);
    return slot && *slot && PyDict_CheckExact(*slot) ? *slot : nullptr;
}

}  // namespace

bool generic_getattribute(PyTypeObject* type) {
    if (type->tp_getattro == PyObject_GenericGetAttr) return true;
    PyObject* found = _PyType_Lookup(type, INTERNED("__getattribute__"));
    return found && Py_IS_TYPE(found, &PyWrapperDescr_Type) && ((PyWrapperDescrObject*)found)->d_wrapped == (void*)PyObject_GenericGetAttr;
}

void note_member_getattr(PyObject* function, std::vector<PyRef> dicts) {
    noted().push_back({PyRef::share(function), PyRef::share(PyFunction_GET_CODE(function)), std::move(dicts)});
}

const std::vector<PyRef>* member_dicts(PyObject* o, PyObject* name) {
    PyTypeObject* type = Py_TYPE(o);
    if (type->tp_getattro == PyObject_GenericGetAttr || noted().empty()) return nullptr;
    PyObject* getattr = _PyType_Lookup(type, INTERNED("__getattr__"));
    if (!getattr || !PyFunction_Check(getattr)) return nullptr;
    for (const MemberGetattr& g : noted()) {
        if (g.function.get() != getattr || g.code.get() != PyFunction_GET_CODE(getattr)) continue;
        if (!generic_getattribute(type) || _PyType_Lookup(type, name)) return nullptr;
        PyObject* own = own_dict(o);
        return own && !PyDict_GetItemWithError(own, name) ? &g.dicts : nullptr;
    }
    return nullptr;
}

PyObject* member_of(PyObject* o, PyObject* name) {
    const std::vector<PyRef>* dicts = member_dicts(o, name);
    if (!dicts) return nullptr;
    for (const PyRef& key : *dicts) {
        PyObject* members = PyDict_GetItemWithError(own_dict(o), key.get());
        if (!members) continue;
        if (!PyDict_CheckExact(members)) return nullptr;
        if (PyObject* found = PyDict_GetItemWithError(members, name)) return found;
    }
    return nullptr;
}

}  // namespace framejit
