// Unary and binary operators, comparisons, subscripts, attributes.
#include "plugin/interpret/members.h"
#include "plugin/interpret/run.h"

namespace framejit {
namespace {

PyObject* power(PyObject* base, PyObject* exponent) { return PyNumber_Power(base, exponent, Py_None); }
PyObject* inplace_power(PyObject* base, PyObject* exponent) { return PyNumber_InPlacePower(base, exponent, Py_None); }

using Binary = PyObject* (*)(PyObject*, PyObject*);
constexpr Binary kBinary[] = {
    // in the order of the NB_ numbers
    PyNumber_Add,
    PyNumber_And,
    PyNumber_FloorDivide,
    PyNumber_Lshift,
    PyNumber_MatrixMultiply,
    PyNumber_Multiply,
    PyNumber_Remainder,
    PyNumber_Or,
    power,
    PyNumber_Rshift,
    PyNumber_Subtract,
    PyNumber_TrueDivide,
    PyNumber_Xor,
    PyNumber_InPlaceAdd,
    PyNumber_InPlaceAnd,
    PyNumber_InPlaceFloorDivide,
    PyNumber_InPlaceLshift,
    PyNumber_InPlaceMatrixMultiply,
    PyNumber_InPlaceMultiply,
    PyNumber_InPlaceRemainder,
    PyNumber_InPlaceOr,
    inplace_power,
    PyNumber_InPlaceRshift,
    PyNumber_InPlaceSubtract,
    PyNumber_InPlaceTrueDivide,
    PyNumber_InPlaceXor,
};

}  // namespace

HANDLER(UnaryPositive) { return finish(run, sp, 1, PyNumber_Positive(sp[-1])); }
HANDLER(UnaryNegative) { return finish(run, sp, 1, PyNumber_Negative(sp[-1])); }
HANDLER(UnaryInvert) { return finish(run, sp, 1, PyNumber_Invert(sp[-1])); }

HANDLER(UnaryNot) {
    const int is_true = PyObject_IsTrue(sp[-1]);
    return is_true < 0 ? fail(run, sp) : finish(run, sp, 1, new_bool(!is_true));
}

HANDLER(BinaryOp) { return finish(run, sp, 2, kBinary[ins.arg](sp[-2], sp[-1])); }
HANDLER(BinarySubscr) { return finish(run, sp, 2, PyObject_GetItem(sp[-2], sp[-1])); }

// stack: value, container, key
HANDLER(StoreSubscr) { return finish_status(run, sp, 3, PyObject_SetItem(sp[-2], sp[-1], sp[-3])); }
HANDLER(DeleteSubscr) { return finish_status(run, sp, 2, PyObject_DelItem(sp[-2], sp[-1])); }

HANDLER(CompareOp) { return finish(run, sp, 2, PyObject_RichCompare(sp[-2], sp[-1], ins.arg)); }
HANDLER(IsOp) { return finish(run, sp, 2, new_bool((sp[-2] == sp[-1]) != (ins.arg != 0))); }

HANDLER(ContainsOp) {
    const int contained = PySequence_Contains(sp[-1], sp[-2]);
    return contained < 0 ? fail(run, sp) : finish(run, sp, 2, new_bool((contained != 0) != (ins.arg != 0)));
}

HANDLER(LoadAttr) {
    PyObject* member = member_of(sp[-1], run.name(ins.arg));
    return finish(run, sp, 1, member ? Py_NewRef(member) : PyObject_GetAttr(sp[-1], run.name(ins.arg)));
}

// stack: value, object
HANDLER(StoreAttr) { return finish_status(run, sp, 2, PyObject_SetAttr(sp[-1], run.name(ins.arg), sp[-2])); }
HANDLER(DeleteAttr) { return finish_status(run, sp, 1, PyObject_SetAttr(sp[-1], run.name(ins.arg), nullptr)); }

// Leaves (method, self) when the attribute is an unbound method, else (null, attribute): Call takes both.
HANDLER(LoadMethod) {
    PyObject* method = Py_XNewRef(member_of(sp[-1], run.name(ins.arg)));
    const bool unbound = !method && _PyObject_GetMethod(sp[-1], run.name(ins.arg), &method);
    if (!method) return fail(run, sp);
    PyObject* self = sp[-1];
    if (unbound) {
        sp[-1] = method;
        return push(sp, self);
    }
    sp[-1] = nullptr;
    *sp = method;
    Py_DECREF(self);
    return sp + 1;
}

}  // namespace framejit
