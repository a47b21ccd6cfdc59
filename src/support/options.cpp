// The table of options.def as rows, and their current values. The only getenv of the tree is here.
#include "framejit/options.h"
#include <charconv>
#include <cstdlib>
#include <mutex>

namespace framejit {

#define LOG_TOPIC(name, help) #name ","
static constexpr std::string_view kLogTopics =
#include "framejit/options.def"
    ;
#define DUMP_STAGE(name, word, help) word ","
static constexpr std::string_view kDumpStages =
#include "framejit/options.def"
    ;

static std::vector<std::string_view> split(std::string_view text) {
    std::vector<std::string_view> parts;
    while (!text.empty()) {
        size_t comma = std::min(text.find(','), text.size());
        if (comma) parts.push_back(text.substr(0, comma));
        text.remove_prefix(std::min(comma + 1, text.size()));
    }
    return parts;
}

static const std::vector<std::string>& variables() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> all = {
#define OPTION(name, type, initial, choices, scope, help) "FRAMEJIT_" #name,
#include "framejit/options.def"
        };
        for (std::string& name : all)
            for (char& c : name) c = char(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
        return all;
    }();
    return names;
}

std::span<const OptionRow> option_rows() {
    static const std::vector<OptionRow> rows = [] {
        std::vector<OptionRow> all = {
#define OPTION(name, type, initial, choices, scope, help) {#name, {}, OptionType::type, initial, split(choices), OptionScope::scope, help},
#include "framejit/options.def"
        };
        for (size_t i = 0; i < all.size(); ++i) all[i].variable = variables()[i];
        return all;
    }();
    return rows;
}

const OptionRow* find_option(std::string_view name) {
    for (const OptionRow& row : option_rows())
        if (row.name == name) return &row;
    return nullptr;
}

const char* name_of(OptionType type) {
    switch (type) {
    case OptionType::flag: return "flag";
    case OptionType::integer: return "integer";
    case OptionType::word: return "word";
    case OptionType::words: return "words";
    case OptionType::text: return "text";
    }
    return "";
}
const char* name_of(OptionScope scope) { return scope == OptionScope::process ? "process" : "function"; }

// ---- parsing ----

static std::string listed(std::span<const std::string_view> words) {
    std::string text;
    for (std::string_view word : words) text.append(text.empty() ? "" : ", ").append(word);
    return text;
}

static int position(const OptionRow& row, std::string_view word) {
    for (size_t i = 0; i < row.choices.size(); ++i)
        if (row.choices[i] == word) return int(i);
    return -1;
}

static bool parse_words(const OptionRow& row, std::string_view text, int64_t& value, std::string& error) {
    int64_t bits = 0;
    for (std::string_view word : split(text)) {
        int i = position(row, word);
        if (i < 0) {
            error = std::string(row.name) + ": unknown word '" + std::string(word) + "'; valid words: " + listed(row.choices);
            return false;
        }
        bits |= int64_t(1) << i;
    }
    value = bits;
    return true;
}

static bool parse_flag(std::string_view text, int64_t& value) {
    bool on = text == "1" || text == "true" || text == "on" || text == "yes";
    bool off = text == "0" || text == "false" || text == "off" || text == "no" || text.empty();
    if (on || off) value = on;
    return on || off;
}

bool parse_option(const OptionRow& row, std::string_view text, int64_t& value, std::string& error) {
    std::string head = std::string(row.name) + ": '" + std::string(text) + "' is not ";
    int64_t number = 0;
    switch (row.type) {
    case OptionType::flag:
        if (parse_flag(text, value)) return true;
        error = head + "a flag; valid values: 0, 1";
        return false;
    case OptionType::integer: {
        auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
        if (code == std::errc() && end == text.data() + text.size() && number >= 0) {
            value = number;
            return true;
        }
        error = head + "valid; expected a whole number, 0 or more";
        return false;
    }
    case OptionType::word:
        number = position(row, text);
        if (number >= 0) {
            value = number;
            return true;
        }
        error = head + "valid; valid values: " + listed(row.choices);
        return false;
    case OptionType::words: return parse_words(row, text, value, error);
    case OptionType::text: return true;
    }
    return false;
}

// ---- current values ----

static constexpr int kOptionCount = 0
#define OPTION(name, type, initial, choices, scope, help) +1
#include "framejit/options.def"
    ;
constinit std::atomic<int64_t> detail::option_values[kOptionCount] = {};

static std::mutex text_lock;  // guards texts
static std::vector<std::string>& texts() {
    static std::vector<std::string> all(kOptionCount);
    return all;
}

std::string set_option(Option o, std::string_view text) {
    const OptionRow& row = option_rows()[size_t(o)];
    int64_t value = 0;
    std::string error;
    if (!parse_option(row, text, value, error)) return error;
    if (row.type == OptionType::text) {
        std::lock_guard hold(text_lock);
        texts()[size_t(o)] = text;
    }
    detail::option_values[int(o)].store(value, std::memory_order_relaxed);
    return {};
}

std::string option_word(Option o) { return std::string(option_rows()[size_t(o)].choices[size_t(option(o))]); }

std::string option_text(Option o) {
    const OptionRow& row = option_rows()[size_t(o)];
    if (row.type == OptionType::text) {
        std::lock_guard hold(text_lock);
        return texts()[size_t(o)];
    }
    if (row.type == OptionType::word) return option_word(o);
    if (row.type != OptionType::words) return std::to_string(option(o));
    std::string text;
    for (size_t i = 0; i < row.choices.size(); ++i)
        if (option(o) >> i & 1) text.append(text.empty() ? "" : ",").append(row.choices[i]);
    return text;
}

// ---- environment ----

// Defaults first, then the environment: done while the library loads, so that reading an option never has to ask whether it is ready.
static std::vector<std::string> read_environment() {
    std::vector<std::string> errors;
    for (int i = 0; i < kOptionCount; ++i) {
        const OptionRow& row = option_rows()[size_t(i)];
        set_option(Option(i), row.initial);
        const char* given = std::getenv(row.variable.data());  // variable views a whole std::string
        std::string error = given && *given ? set_option(Option(i), given) : std::string();
        if (!error.empty()) errors.push_back(std::string(row.variable) + ": " + error.substr(row.name.size() + 2));
    }
    return errors;
}
static const std::vector<std::string> environment_messages = read_environment();

std::span<const std::string> environment_errors() { return environment_messages; }

}  // namespace framejit
