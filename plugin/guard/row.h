// One guard row, ready to be evaluated.
#pragma once
#include "plugin/guard/guard.h"
#include <array>
#include <span>

namespace framejit::guards {

enum class Arming : uint8_t { Nothing, TypeWord, Contents, Order, Function, Call, Pair };

// Invariant: `expected` is compared only while it is alive. It is held strongly, or `weak` is set and `alive` says whether it still lives.
struct Row {
    GuardKind kind;
    int source;
    int other = 0;  // the second source of a pair
    int64_t n = 0;
    PyObject* expected = nullptr;  // the recorded object, whoever holds it
    PyRef held;                    // it, or a weak reference to it
    bool weak = false;
    std::array<PyRef, 3> parts;  // Function: code, defaults, kwdefaults as recorded

    bool alive() const { return !weak || PyWeakref_GET_OBJECT(held.get()) == expected; }
};

using Specs = std::span<const TensorSpec>;

Row make_row(const Guard&);
Arming arming_of(GuardKind);
std::array<PyObject**, 3> function_fields(PyObject* function);  // where a function keeps its code, defaults and kwdefaults
bool holds(const Row&, PyObject* value, PyObject* other, Specs);
Failure failure(const Row&, PyObject* value, PyObject* other, Specs, std::string source, const std::string& other_source);

}  // namespace framejit::guards
