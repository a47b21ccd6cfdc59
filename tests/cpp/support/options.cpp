#include "framejit/options.h"
#include "framejit/dump.h"
#include "framejit/log.h"
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

using namespace framejit;

namespace {

// Puts an option back, so that tests do not depend on their order.
struct Restore {
    Option o;
    std::string text = option_text(o);
    explicit Restore(Option option) : o(option) {}
    ~Restore() { set_option(o, text); }
};

std::string read_all(const std::filesystem::path& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(options)

BOOST_AUTO_TEST_CASE(table_is_consistent) {
    std::set<std::string_view> names;
    for (const OptionRow& row : option_rows()) {
        BOOST_TEST(names.insert(row.name).second, row.name);
        BOOST_TEST(row.variable.starts_with("FRAMEJIT_"));
        BOOST_TEST(!row.help.empty());
        BOOST_TEST(find_option(row.name) == &row);
        bool has_choices = row.type == OptionType::word || row.type == OptionType::words;
        BOOST_TEST(has_choices == !row.choices.empty(), row.name);
        int64_t value;
        std::string error;
        BOOST_TEST(parse_option(row, row.initial, value, error), error);
    }
    BOOST_TEST(find_option("nonsense") == nullptr);
}

BOOST_AUTO_TEST_CASE(each_type_parses_and_prints) {
    for (Option o : {Option::recompile_limit, Option::self_check, Option::numerics, Option::log, Option::dump_dir}) {
        Restore restore(o);
        const OptionRow& row = option_rows()[size_t(o)];
        for (std::string_view text : {"3", "0", "fast", "breaks,cache", "some where"}) {
            std::string before = option_text(o);
            std::string error = set_option(o, text);
            BOOST_TEST(option_text(o) == (error.empty() ? std::string(text) : before), row.name << " = " << text);
        }
    }
}

BOOST_AUTO_TEST_CASE(bad_values_change_nothing_and_name_the_valid_ones) {
    Restore log(Option::log), numerics(Option::numerics), limit(Option::recompile_limit);
    set_option(Option::log, "breaks");
    std::string error = set_option(Option::log, "breaks,brakes");
    BOOST_TEST(error.find("'brakes'") != std::string::npos);
    BOOST_TEST(error.find("recompiles") != std::string::npos);
    BOOST_TEST(option_text(Option::log) == "breaks");
    BOOST_TEST(set_option(Option::numerics, "slow").find("eager, fast") != std::string::npos);
    for (std::string_view bad : {"", "-1", "1.5", "9999999999999999999999", "8 "})
        BOOST_TEST(!set_option(Option::recompile_limit, bad).empty(), bad);
    BOOST_TEST(!set_option(Option::self_check, "2").empty());
}

BOOST_AUTO_TEST_CASE(topics_and_stages_follow_their_words) {
    Restore log(Option::log), dump(Option::dump);
    BOOST_TEST(set_option(Option::log, "recompiles,cache").empty());
    BOOST_TEST(log_on(LogTopic::recompiles));
    BOOST_TEST(log_on(LogTopic::cache));
    BOOST_TEST(!log_on(LogTopic::breaks));
    BOOST_TEST(set_option(Option::dump, "asm").empty());
    BOOST_TEST(dump_on(DumpStage::assembly));
    BOOST_TEST(!dump_on(DumpStage::graph));
}

BOOST_AUTO_TEST_CASE(dumps_become_files) {
    Restore stage(Option::dump), folder(Option::dump_dir);
    std::filesystem::path path = std::filesystem::temp_directory_path() / "framejit_dump_test";
    std::filesystem::remove_all(path);
    set_option(Option::dump, "graph");
    set_option(Option::dump_dir, path.string());
    dump(DumpStage::llvm, "off", "not written");
    dump(DumpStage::graph, "f/1 <lambda>", "x = add(a, b)");
    std::vector<std::filesystem::path> files(std::filesystem::directory_iterator(path), {});
    BOOST_TEST_REQUIRE(files.size() == 1u);
    BOOST_TEST(files[0].filename().string().find("f_1__lambda_.graph") != std::string::npos);
    BOOST_TEST(read_all(files[0]) == "x = add(a, b)\n");
    std::filesystem::remove_all(path);
}

BOOST_AUTO_TEST_SUITE_END()
