// FRAMEJIT_DUMP: the text of a stage, on stderr, or as a file of FRAMEJIT_DUMP_DIR named NNN_name.stage in the order of compilation.
#pragma once
#include "framejit/options.h"

namespace framejit {

enum class DumpStage : uint8_t {
#define DUMP_STAGE(name, word, help) name,
#include "framejit/options.def"
};
inline bool dump_on(DumpStage stage) { return option(Option::dump) >> int(stage) & 1; }
void dump(DumpStage, std::string_view name, std::string_view text);  // does nothing when the stage is off

}  // namespace framejit
