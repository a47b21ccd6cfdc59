// FRAMEJIT_LOG: one line on stderr per event, "framejit breaks: ...". Ask `log_on` first where composing the line costs anything.
#pragma once
#include "framejit/options.h"

namespace framejit {

enum class LogTopic : uint8_t {
#define LOG_TOPIC(name, help) name,
#include "framejit/options.def"
};
inline bool log_on(LogTopic topic) { return option(Option::log) >> int(topic) & 1; }
void log_line(LogTopic, std::string_view text);  // written whole, whatever other threads write

}  // namespace framejit
