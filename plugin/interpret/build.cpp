// Building tuples, lists, sets, dicts, strings and slices, and unpacking iterables.
#include "plugin/interpret/errors.h"
#include "plugin/interpret/run.h"

#include <vector>

namespace framejit {
namespace {

constexpr int kRaiseOnDuplicate = 2;  // _PyDict_MergeEx: two values for one keyword

bool is_iterable(PyObject* object) { return Py_TYPE(object)->tp_iter || PySequence_Check(object); }

using Items = std::vector<PyRef>;  // not on the value stack: the iterable has to stay there while its iterator runs

Stack push_items(Stack sp, Items& items) {  // the first item ends on top
    sp = pop(sp, 1);
    while (!items.empty()) {
        sp = push(sp, items.back().release());
        items.pop_back();
    }
    return sp;
}

void set_too_few(int expected, bool at_least, Py_ssize_t got) {
    PyErr_Format(PyExc_ValueError, "not enough values to unpack (expected %s%d, got %zd)", at_least ? "at least " : "", expected, got);
}

// `expected`: what the message says
bool take_items(PyObject* iterator, int count, int expected, bool at_least, Items& items) {
    for (int i = 0; i < count; ++i) {
        PyRef item = PyRef::steal(PyIter_Next(iterator));
        if (!item) {
            if (!PyErr_Occurred()) set_too_few(expected, at_least, i);
            return false;
        }
        items.push_back(std::move(item));
    }
    return true;
}

PyRef iterator_to_unpack(PyObject* value) {
    PyRef iterator = PyRef::steal(PyObject_GetIter(value));
    if (!iterator && PyErr_ExceptionMatches(PyExc_TypeError) && !is_iterable(value))
        PyErr_Format(PyExc_TypeError, "cannot unpack non-iterable %.200s object", Py_TYPE(value)->tp_name);
    return iterator;
}

bool unpack(PyObject* value, int count, Items& items) {
    PyRef iterator = iterator_to_unpack(value);
    if (!iterator || !take_items(iterator.get(), count, count, false, items)) return false;
    PyRef surplus = PyRef::steal(PyIter_Next(iterator.get()));
    if (surplus) PyErr_Format(PyExc_ValueError, "too many values to unpack (expected %d)", count);
    return !surplus && !PyErr_Occurred();
}

bool unpack_starred(PyObject* value, int before, int after, Items& items) {
    PyRef iterator = iterator_to_unpack(value);
    if (!iterator || !take_items(iterator.get(), before, before + after, true, items)) return false;
    PyRef rest = PyRef::steal(PySequence_List(iterator.get()));
    if (!rest) return false;
    const Py_ssize_t size = PyList_GET_SIZE(rest.get());
    if (size < after) {
        set_too_few(before + after, true, before + size);
        return false;
    }
    items.push_back(rest);
    for (Py_ssize_t i = size - after; i < size; ++i) items.push_back(PyRef::share(PyList_GET_ITEM(rest.get(), i)));
    return PyList_SetSlice(rest.get(), size - after, size, nullptr) == 0;
}

PyObject* converted(PyObject* value, int conversion) {
    switch (conversion) {
    case 1: return PyObject_Str(value);
    case 2: return PyObject_Repr(value);
    case 3: return PyObject_ASCII(value);
    default: return Py_NewRef(value);
    }
}

}  // namespace

HANDLER(BuildTuple) {
    PyObject* tuple = PyTuple_New(ins.arg);
    if (!tuple) return fail(run, sp);
    sp -= ins.arg;
    for (int i = 0; i < ins.arg; ++i) PyTuple_SET_ITEM(tuple, i, sp[i]);
    return push(sp, tuple);
}

HANDLER(BuildList) {
    PyObject* list = PyList_New(ins.arg);
    if (!list) return fail(run, sp);
    sp -= ins.arg;
    for (int i = 0; i < ins.arg; ++i) PyList_SET_ITEM(list, i, sp[i]);
    return push(sp, list);
}

HANDLER(BuildSet) {
    PyRef set = PyRef::steal(PySet_New(nullptr));
    if (!set) return fail(run, sp);
    for (int i = ins.arg; i > 0; --i)
        if (PySet_Add(set.get(), sp[-i]) < 0) return fail(run, sp);
    return finish(run, sp, ins.arg, set.release());
}

HANDLER(BuildMap) {
    PyRef dict = PyRef::steal(PyDict_New());
    if (!dict) return fail(run, sp);
    for (int i = ins.arg; i > 0; --i)
        if (PyDict_SetItem(dict.get(), sp[-2 * i], sp[-2 * i + 1]) < 0) return fail(run, sp);
    return finish(run, sp, 2 * ins.arg, dict.release());
}

HANDLER(BuildConstKeyMap) {
    PyObject* keys = sp[-1];
    PyRef dict = PyRef::steal(PyDict_New());
    if (!dict) return fail(run, sp);
    for (int i = 0; i < ins.arg; ++i)
        if (PyDict_SetItem(dict.get(), PyTuple_GET_ITEM(keys, i), sp[-1 - ins.arg + i]) < 0) return fail(run, sp);
    return finish(run, sp, ins.arg + 1, dict.release());
}

HANDLER(BuildString) {
    static PyObject* const empty = PyUnicode_FromStringAndSize(nullptr, 0);
    return finish(run, sp, ins.arg, _PyUnicode_JoinArray(empty, sp - ins.arg, ins.arg));
}

HANDLER(BuildSlice) {
    PyObject** bounds = sp - ins.arg;
    return finish(run, sp, ins.arg, PySlice_New(bounds[0], bounds[1], ins.arg == 3 ? bounds[2] : nullptr));
}

// In comprehensions; the argument counts from the stack without the item.
HANDLER(ListAppend) { return finish_status(run, sp, 1, PyList_Append(sp[-1 - ins.arg], sp[-1])); }
HANDLER(SetAdd) { return finish_status(run, sp, 1, PySet_Add(sp[-1 - ins.arg], sp[-1])); }
HANDLER(MapAdd) { return finish_status(run, sp, 2, PyDict_SetItem(sp[-2 - ins.arg], sp[-2], sp[-1])); }

HANDLER(ListExtend) {
    PyObject* iterable = sp[-1];
    PyRef none = PyRef::steal(_PyList_Extend((PyListObject*)sp[-1 - ins.arg], iterable));
    if (!none && PyErr_ExceptionMatches(PyExc_TypeError) && !is_iterable(iterable))
        PyErr_Format(PyExc_TypeError, "Value after * must be an iterable, not %.200s", Py_TYPE(iterable)->tp_name);
    return none ? pop(sp, 1) : fail(run, sp);
}

HANDLER(SetUpdate) { return finish_status(run, sp, 1, _PySet_Update(sp[-1 - ins.arg], sp[-1])); }

HANDLER(DictUpdate) {
    const int status = PyDict_Update(sp[-1 - ins.arg], sp[-1]);
    if (status < 0 && PyErr_ExceptionMatches(PyExc_AttributeError))
        PyErr_Format(PyExc_TypeError, "'%.200s' object is not a mapping", Py_TYPE(sp[-1])->tp_name);
    return finish_status(run, sp, 1, status);
}

HANDLER(DictMerge) {
    const int status = _PyDict_MergeEx(sp[-1 - ins.arg], sp[-1], kRaiseOnDuplicate);
    if (status < 0) explain_mapping_argument(sp[-3 - ins.arg], sp[-1]);
    return finish_status(run, sp, 1, status);
}

HANDLER(ListToTuple) { return finish(run, sp, 1, PyList_AsTuple(sp[-1])); }

HANDLER(FormatValue) {
    const bool has_spec = ins.arg & 4;
    PyRef text = PyRef::steal(converted(sp[-1 - has_spec], ins.arg & 3));
    if (!text) return fail(run, sp);
    if (has_spec || !PyUnicode_CheckExact(text.get())) text = PyRef::steal(PyObject_Format(text.get(), has_spec ? sp[-1] : nullptr));
    return finish(run, sp, 1 + has_spec, text.release());
}

HANDLER(UnpackSequence) {
    PyObject* value = sp[-1];
    if ((PyTuple_CheckExact(value) || PyList_CheckExact(value)) && Py_SIZE(value) == ins.arg) {
        PyObject** items = PySequence_Fast_ITEMS(value);
        --sp;
        for (int i = ins.arg; i-- > 0;) sp = push(sp, Py_NewRef(items[i]));
        Py_DECREF(value);
        return sp;
    }
    Items items;
    return unpack(value, ins.arg, items) ? push_items(sp, items) : fail(run, sp);
}

HANDLER(UnpackEx) {
    Items items;
    return unpack_starred(sp[-1], ins.arg & 0xFF, ins.arg >> 8, items) ? push_items(sp, items) : fail(run, sp);
}

}  // namespace framejit
