// Reading one source from its parent's value.
#pragma once
#include "plugin/guard/guard.h"
#include <vector>

namespace framejit::guards {

enum class Place : uint8_t { Live, Proven, Keyed };
Place place_of(SourceKind);

// The value (borrowed) or null. Never raises, runs no Python code. New objects that an attribute read makes are put into `made`, which
// keeps them. hash: of the key. Slot is not read here: it has no parent. other: the value of Source::other.
PyObject* read_source(const GuardSource&, Py_hash_t hash, PyObject* parent, PyObject* other, std::vector<PyRef>& made);

}  // namespace framejit::guards
