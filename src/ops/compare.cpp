// Comparisons: false for NaN, except ne.
#include "src/ops/rules.h"

namespace framejit {
using namespace rules;

#define COMPARE(word, text)                                                                                                                \
    const OpDef op_##word = {                                                                                                              \
        .name = #word, .doc = text, .dtype = boolean, .shape = same, .body = EMIT(0.02, e.cmp(Cmp::word, a[0], a[1])), .samples = binary};
COMPARE(lt, "x < y")
COMPARE(le, "x <= y")
COMPARE(gt, "x > y")
COMPARE(ge, "x >= y")
COMPARE(eq, "x == y")
COMPARE(ne, "x != y; true for NaN")
#undef COMPARE

}  // namespace framejit
