// The object that stands for a tensor in recorded arguments.
#include "plugin/torch/operators.h"

namespace framejit {

namespace {

PyObject* repr(PyObject* self) { return PyUnicode_FromFormat("<tensor %d>", reinterpret_cast<Placeholder*>(self)->index); }
void dealloc(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}
PyType_Slot slots[] = {{Py_tp_repr, reinterpret_cast<void*>(repr)}, {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)}, {0, nullptr}};
PyType_Spec spec = {"framejit._C.Placeholder", sizeof(Placeholder), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

PyTypeObject* placeholder_type() {
    static PyTypeObject* const type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    return type;
}

}  // namespace

PyObject* make_placeholder(int index) {
    PyTypeObject* type = placeholder_type();
    PyObject* self = type ? type->tp_alloc(type, 0) : nullptr;
    if (self) reinterpret_cast<Placeholder*>(self)->index = index;
    return self;
}

bool is_placeholder(PyObject* object, int* index) {
    if (Py_TYPE(object) != placeholder_type()) return false;
    if (index) *index = reinterpret_cast<Placeholder*>(object)->index;
    return true;
}

}  // namespace framejit
