// Leaves: values that no other value is computed from.
#include "src/ops/rules.h"

namespace framejit {
using namespace rules;

const OpDef op_input = {.name = "input",
                        .doc = "A tensor of the caller. ints: position, strides",
                        .dtype = given,
                        .shape = hinted,
                        .body = Leaf{},
                        .samples = none};
const OpDef op_constant = {.name = "constant",
                           .doc = "A number. floats: the value when the dtype is floating, ints: the value otherwise",
                           .dtype = given,
                           .shape = hinted,
                           .body = Leaf{},
                           .samples = none};
const OpDef op_iota = {.name = "iota",
                       .doc = "start + step * position, one-dimensional. i64. ints: start, step",
                       .dtype = given,
                       .shape = hinted,
                       .body = Leaf{},
                       .samples = none};
const OpDef op_extern = {.name = "extern",
                         .doc = "A call that torch executes; has no value. ints: index into Graph::externs",
                         .dtype = given,
                         .shape = hinted,
                         .body = Leaf{},
                         .samples = none};
const OpDef op_result = {.name = "result",
                         .doc = "What an extern returned. ints: which result, strides",
                         .dtype = given,
                         .shape = hinted,
                         .body = Leaf{},
                         .samples = none};

}  // namespace framejit
