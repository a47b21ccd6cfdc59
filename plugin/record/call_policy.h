// C callables by name, and what is known of each (call_policy.def).
#pragma once
#include "plugin/py.h"
#include <string>

namespace framejit {

enum class Policy : uint8_t {
    PURE,
    PROTOCOL,
    COMPARES,
    PRINTS,
    HASHES,
    ITERATE,
    TORCH,
    READS,
    DATA,
    LENGTHS,
    NESTING,
    HIDDEN,
    STATE,
    MUTATE,
    OWN,
    STORES,
    EFFECT,
    WARNS,
    LEAK,
    IMPURE,
    ANSWERS,
    SPECIAL,
    UNKNOWN
};
struct CallPolicy;  // the handlers of SPECIAL rows, in calls.cpp
struct CallRow {
    std::string name;
    Policy policy = Policy::UNKNOWN;
    int (CallPolicy::*special)() = nullptr;
};
int (CallPolicy::* special_of(const std::string& name))();

const CallRow& row_of(PyObject* callable);
PyObject* unbound(PyObject* callable);  // borrowed; dict.get for a bound d.get; null: no bound method of a builtin type
PyRef interned(PyObject* name);
bool assumed_pure(PyObject* callable);          // framejit.assume_pure
std::string callable_name(PyObject* callable);  // for messages

}  // namespace framejit
