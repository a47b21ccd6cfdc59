// See probe.h. The callback gets one tuple per event, runs unwatched, and may steer from "before":
//   ("enter", code, throwflag)          its result is the shadow of this activation, passed on as the second argument of the callback
//   ("before", code, unit, name, stack) the result is None, or (unit, stack): go on there with that value stack, or (None, [value]): return
//   value;
//                                       or False: watch no longer. An exception is raised at the instruction.
//   ("after", code, unit, name, stack)
//   ("unwound", code, depth)
//   ("leave", code, how, depth)
// `stack` lists the value stack; a null in it shows as Ellipsis, and the other way round.
#include "plugin/interpret/probe.h"

#include "plugin/interpret/interpreter.h"
#include "plugin/interpret/watcher.h"

namespace framejit {
namespace {

class Probe final : public Watcher {
public:
    explicit Probe(PyObject* callback) : callback_(callback) {}

    void* enter(Frame* frame, int throwflag) override {
        shadows_.push_back(tell(nullptr, Py_BuildValue("(sOi)", "enter", code_of(frame), throwflag)));
        return shadows_.back().get();
    }

    const Ins* before(void* shadow, Frame* frame, const Ins& ins, PyObject**& sp) override {
        PyRef answer = call((PyObject*)shadow, instruction_event("before", frame, ins, sp));
        if (!answer) return nullptr;
        if (answer.get() == Py_False) watcher = nullptr;
        return answer.get() == Py_None || answer.get() == Py_False ? &ins : steer(frame, answer.get(), sp);
    }

    bool moves(void*, Frame*, const Ins&, PyObject**) override { return false; }

    void after(void* shadow, Frame* frame, const Ins& ins, PyObject** sp) override {
        tell((PyObject*)shadow, instruction_event("after", frame, ins, sp));
    }

    void unwound(void* shadow, Frame* frame, int depth) override {
        tell((PyObject*)shadow, Py_BuildValue("(sOi)", "unwound", code_of(frame), depth));
    }

    void leave(void* shadow, Frame* frame, PyObject*, int depth, Exit exit) override {
        static const char* const names[] = {"return", "yield", "error", "hand over"};
        tell((PyObject*)shadow, Py_BuildValue("(sOsi)", "leave", code_of(frame), names[(int)exit], depth));
    }

private:
    static PyObject** stack_base(Frame* frame) { return slots_of(frame) + locals_count(code_of(frame)); }

    static PyObject* instruction_event(const char* event, Frame* frame, const Ins& ins, PyObject** sp) {
        PyObject** base = stack_base(frame);
        PyRef stack = PyRef::steal(PyList_New(sp - base));
        if (!stack) return nullptr;
        for (PyObject** slot = base; slot < sp; ++slot) PyList_SET_ITEM(stack.get(), slot - base, Py_NewRef(*slot ? *slot : Py_Ellipsis));
        return Py_BuildValue("(sOisO)", event, code_of(frame), ins.unit, name_of(ins.op), stack.get());
    }

    // Runs the callback unwatched; steals the event.
    PyRef call(PyObject* shadow, PyObject* event) {
        PyRef held = PyRef::steal(event);
        if (!held) return {};
        Watcher* self = std::exchange(watcher, nullptr);
        PyRef answer = PyRef::steal(PyObject_CallFunctionObjArgs(callback_, held.get(), shadow ? shadow : Py_None, nullptr));
        watcher = self;
        return answer;
    }

    // The same for events that cannot fail; an exception may be on its way meanwhile.
    PyRef tell(PyObject* shadow, PyObject* event) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        PyRef answer = call(shadow, event);
        if (!answer) PyErr_WriteUnraisable(callback_);
        PyErr_Restore(type, value, traceback);
        return answer;
    }

    static const Ins* steer(Frame* frame, PyObject* answer, PyObject**& sp) {
        PyObject *unit, *stack;
        if (!PyArg_ParseTuple(answer, "OO!", &unit, &PyList_Type, &stack)) return nullptr;
        const Ins* target = return_instruction();
        if (unit != Py_None) {
            const long number = PyLong_AsLong(unit);
            if (number == -1 && PyErr_Occurred()) return nullptr;
            const Code* code = decode(code_of(frame));
            if (number < 0 || number >= (long)code->at.size() - 1) {
                PyErr_SetString(PyExc_ValueError, "no such code unit");
                return nullptr;
            }
            target = &code->ins[code->at[number]];
        }
        if (PyList_GET_SIZE(stack) > stack_size(code_of(frame))) {
            PyErr_SetString(PyExc_ValueError, "the stack is not that deep");
            return nullptr;
        }
        PyObject** base = stack_base(frame);
        while (sp > base) Py_XDECREF(*--sp);
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(stack); ++i) {
            PyObject* value = PyList_GET_ITEM(stack, i);
            *sp++ = value == Py_Ellipsis ? nullptr : Py_NewRef(value);
        }
        return target;
    }

    PyObject* callback_;
    std::vector<PyRef> shadows_;  // of every activation: some never leave
};

}  // namespace

const char kWatchDoc[] =
    "watch(function, callback): call function() with every frame interpreted, and callback(event, shadow) at each of its steps.";

PyObject* watch(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "watch(function, callback)");
        return nullptr;
    }
    Probe probe(arguments[1]);
    const bool everything = interprets_everything();
    interpret_everything(true);
    Watcher* outer = std::exchange(watcher, &probe);
    PyObject* result = PyObject_CallNoArgs(arguments[0]);
    watcher = outer;
    interpret_everything(everything);
    return result;
}

}  // namespace framejit
