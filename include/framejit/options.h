// Options: one table (options.def), one place that reads the environment, values that any thread may read at the cost of a load.
// Invariants: a value is always valid for its row; setting one with a bad text changes nothing and returns what was wrong. What the
// environment asked for and could not get is kept in `environment_errors()`, and the plugin raises it at import.
#pragma once
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace framejit {

enum class OptionType : uint8_t { flag, integer, word, words, text };
enum class OptionScope : uint8_t { process, function };
const char* name_of(OptionType);
const char* name_of(OptionScope);

enum class Option : uint8_t {
#define OPTION(name, type, initial, choices, scope, help) name,
#include "framejit/options.def"
};

struct OptionRow {
    std::string_view name, variable;  // recompile_limit, FRAMEJIT_RECOMPILE_LIMIT
    OptionType type;
    std::string_view initial;
    std::vector<std::string_view> choices;
    OptionScope scope;
    std::string_view help;
};
std::span<const OptionRow> option_rows();  // in the order of Option
const OptionRow* find_option(std::string_view name);

// flag: 0 or 1; integer: itself; word: index of the choice; words: one bit per choice; text: unused.
namespace detail {
extern std::atomic<int64_t> option_values[];
}
inline int64_t option(Option o) { return detail::option_values[int(o)].load(std::memory_order_relaxed); }
inline bool option_on(Option o) { return option(o) != 0; }
std::string option_word(Option);  // the chosen word of a `word` option
std::string option_text(Option);  // any option as the text that would set it

// Parses `text` for a row; false leaves `value` alone and says in `error` what is valid. (`text` options accept anything.)
bool parse_option(const OptionRow&, std::string_view text, int64_t& value, std::string& error);
std::string set_option(Option, std::string_view text);  // empty, or what was wrong
std::span<const std::string> environment_errors();      // one line per variable that could not be used

}  // namespace framejit
