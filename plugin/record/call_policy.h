// C callables by name, and what is known of each (call_policy.def).
#pragma once
#include "plugin/py.h"
#include <string>

namespace framejit {

enum class Policy : uint8_t {  // what each one means: policy.def
#define POLICY(name, protocols, harmless, meaning) name,
#include "plugin/record/policy.def"
#undef POLICY
};
bool through_protocols(Policy);
bool harmless(Policy);
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
