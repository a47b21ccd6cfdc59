#include "plugin/record/log.h"

namespace framejit {

#define BREAK_REASON(code, text, hint) const BreakReason break_##code = {#code, text, hint};
#include "plugin/record/break_reason.def"
#undef BREAK_REASON

}  // namespace framejit
