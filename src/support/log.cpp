// Log lines and dumps leave in one write each, so that lines of several compile threads never mix.
#include "framejit/log.h"
#include "framejit/dump.h"
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>

namespace framejit {

static void write_stderr(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
}

static std::string word(Option o, int index) { return std::string(option_rows()[size_t(o)].choices[size_t(index)]); }

void log_line(LogTopic topic, std::string_view text) {
    write_stderr("framejit " + word(Option::log, int(topic)) + ": " + std::string(text) + "\n");
}

static std::string file_name(std::string_view name, const std::string& stage) {
    static std::atomic<int> counter{0};
    char number[16];
    std::snprintf(number, sizeof number, "%04d_", counter.fetch_add(1));
    std::string safe = number + std::string(name.substr(0, 100));
    for (char& c : safe)
        if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '.') c = '_';
    return safe + "." + stage;
}

void dump(DumpStage stage, std::string_view name, std::string_view text) {
    if (!dump_on(stage)) return;
    std::string title = word(Option::dump, int(stage));
    std::string body(text);
    if (!body.ends_with('\n')) body += '\n';
    std::string folder = option_text(Option::dump_dir);
    if (folder.empty()) return write_stderr("---- framejit " + title + ": " + std::string(name) + "\n" + body);
    std::error_code code;
    std::filesystem::create_directories(folder, code);
    std::filesystem::path path = std::filesystem::path(folder) / file_name(name, title);
    std::ofstream file(path);
    if (!(file << body)) write_stderr("framejit: cannot write " + path.string() + "\n");
}

}  // namespace framejit
