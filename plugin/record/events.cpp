// Events: changes of Python state that existed before the region, and calls with an effect outside. They are replayed in order after the
// graph.
#include "plugin/record/kinds.h"
#include "plugin/record/recorder.h"

namespace framejit {

// What an event keeps of a value. Tensors by row number, values from outside by source, new objects by reference (built again at replay
// with their contents at the end of the region: nothing can look at them before).
Operand Recorder::operand(PyObject* v, int shadow) {
    Operand o;
    if (!v) return o;
    if (shadow > 0) {
        o.kind = Operand::Src;
        o.id = shadow;
    } else if (is_tensor(v)) {
        int row = note_tensor(v, false);
        o.kind = Operand::Row;
        o.id = row;
    } else if (valued(v)) {
        o.kind = Operand::Const;
        o.object = PyRef::share(v);
    } else if (int* known = identity_.find(v); known && *known > 0) {
        o.kind = Operand::Src;
        o.id = *known;
    } else {
        o.kind = Operand::Object;
        o.object = PyRef::share(v);
        if (shadow == Unknown) hole(v);
    }
    return o;
}

void Recorder::event(EventKind kind, PyObject* target, int target_shadow, PyObject* key, int key_shadow, PyObject* value,
                     int value_shadow) {
    if (broken_) return;
    Event e{kind};
    e.target = operand(target, target_shadow);
    e.key = operand(key, key_shadow);
    e.value = operand(value, value_shadow);
    if (!broken_) events.push_back(std::move(e));
}
void Recorder::call_event(PyObject* fn, int fn_shadow, PyObject** args, const int* shadows, int total, PyObject* kwnames) {
    if (broken_) return;
    Event e{EventKind::Call};
    e.target = operand(fn, fn_shadow);
    for (int i = 0; i < total; ++i) e.args.push_back(operand(args[i], shadows[i]));
    e.kwnames = PyRef::share(kwnames);
    if (!broken_) events.push_back(std::move(e));
}

void Recorder::show_mode() {
    if (std::exchange(unwatched_, false)) active_recorder = this;
    if (std::exchange(hidden_mode_, false) && push_mode() < 0) PyErr_Clear();
}
// The current instruction of a frame has raised: what it was to do outside has not happened.
void Recorder::raised(Shadow& sh) {
    result_of_event_ = false;
    show_mode();
    if (!std::exchange(sh.own_events, 0)) return;
    const EventKind kind = events[sh.event_mark].kind;
    const bool whole = kind == EventKind::Call || kind == EventKind::DelAttr || kind == EventKind::DelItem;
    if (events.size() != sh.event_mark + 1 || !whole || entered_ != sh.entered_mark)
        return fail("a change of something outside raises half way");
    events.pop_back();
}

// o.name = value with object's own semantics. A data descriptor written in Python is a frame of its own.
void Recorder::set_attribute(PyObject* o, int shadow, PyObject* name, PyObject* value, int value_shadow) {
    PyObject* in_type = _PyType_Lookup(Py_TYPE(o), name);
    static PyObject* const setattr = PyUnicode_InternFromString("__setattr__");
    PyObject* how = _PyType_Lookup(Py_TYPE(o), setattr);
    const bool own =
        how && Py_IS_TYPE(how, &PyWrapperDescr_Type) && ((PyWrapperDescrObject*)how)->d_wrapped != (void*)PyObject_GenericSetAttr;
    if (own && !PyModule_Check(o)) return note_break(break_opaque_object, o);  // threading.local, weakref.proxy
    if (PyType_Check(o) || PyModule_Check(o)) {
        if (PyType_Check(o)) return note_break(break_opaque_object, o);
    } else {
        use_type(o, shadow);
        type_lookup(Py_TYPE(o), name, in_type);
    }
    if (in_type && Py_IS_TYPE(in_type, &PyProperty_Type)) {
        PyRef setter = PyRef::steal(PyObject_GetAttrString(in_type, "fset"));
        PyObject* args[2] = {o, value};
        int shadows[2] = {shadow, value_shadow};
        if (setter && PyFunction_Check(setter.get()) && value) expect_frame(setter.get(), args, shadows, 2);
        return PyErr_Clear();
    }
    bool slot = in_type && Py_TYPE(in_type)->tp_descr_set;
    if (slot && !Py_IS_TYPE(in_type, &PyMemberDescr_Type)) return note_break(break_opaque_object, o);  // a C setter may do anything
    event(EventKind::SetAttr, o, shadow, name, Internal, value, value_shadow);
    int where = slot ? shadow : sources.child(SourceKind::Dict, shadow);
    if (!slot)
        if (PyObject* d = dict_of(o)) adding(d, where, name);
    wrote(where, name, value && valued(value) ? value_shadow : int(Internal));
}
void Recorder::delete_attribute(PyObject* o, int shadow, PyObject* name) {
    if (shadow <= 0 || in_python(o, "__delattr__")) return;  // a __delattr__ in Python is a frame of the recording
    event(EventKind::DelAttr, o, shadow, name, Internal, nullptr, Internal);
    shrunk_.insert(sources.child(SourceKind::Dict, shadow));
}
void Recorder::set_item(PyObject* o, int shadow, PyObject* key, PyObject* value, int value_shadow) {
    stored(shadow, value, value_shadow);
    use_type(o, shadow);
    if (!PyDict_Check(o) && !PyList_Check(o)) {
        if (!(Py_TYPE(o)->tp_flags & Py_TPFLAGS_HEAPTYPE)) return note_break(break_opaque_object, o);
    }
    static PyObject* setitem = PyUnicode_InternFromString("__setitem__");
    if (PyObject* how = _PyType_Lookup(Py_TYPE(o), setitem); how && PyFunction_Check(how)) {  // a frame of the recording
        type_lookup(Py_TYPE(o), setitem, how);
        PyObject* args[3] = {o, key, value};
        int shadows[3] = {shadow, Internal, value_shadow};  // the key was guarded by its use
        return expect_frame(how, args, shadows, 3);
    }
    if (!PyDict_Check(o) && !PyList_Check(o)) return note_break(break_opaque_object, o);
    if (PyDict_Check(o))
        adding(o, shadow, key);
    else if (PyLong_CheckExact(key)) {
        length(o, shadow);
        Py_ssize_t i = PyLong_AsSsize_t(key);
        if (i < 0) i += Py_SIZE(o);
        PyRef at = PyRef::steal(PyLong_FromSsize_t(i));
        event(EventKind::SetItem, o, shadow, key, Internal, value, value_shadow);
        return wrote(shadow, at.get(), value && valued(value) ? value_shadow : int(Internal));
    } else
        mutating(o, shadow, false);  // a slice
    event(EventKind::SetItem, o, shadow, key, Internal, value, value_shadow);
    wrote(shadow, key, value && valued(value) ? value_shadow : int(Internal));
}

}  // namespace framejit
