// FRAMEJIT_LOG=breaks,guards,recompiles and FRAMEJIT_DUMP=bytecode: what happens to recordings, while it happens. Each is silent unless
// asked for.
#pragma once
#include "plugin/guard/guard.h"
#include "plugin/record/log.h"
#include <span>
#include <string>

namespace framejit {

std::string region_name(PyCodeObject*, int entry_unit);  // forward_12: of the graph in dumps, a word
std::string text_of(const Break&);                       // file:line in function: reason: detail
void tell_break(const Break&);
void tell_recompile(PyCodeObject*, const Failure&);
void tell_guards(PyCodeObject*, const Sources&, std::span<const Guard>);
void tell_bytecode(PyCodeObject*);  // once per code object

}  // namespace framejit
