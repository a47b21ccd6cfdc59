// Golden files of passes: tests/golden/passes/*.txt. A file is comments (#), a line "passes: <names>", a graph, a line "----", and the
// graph that the passes make of it. FRAMEJIT_BLESS=1 writes what they make now into the files.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "framejit/op.h"
#include "src/passes/passes.h"
#include "tests/cpp/sample_data.h"

using namespace framejit;
namespace fs = std::filesystem;

namespace {

struct Named {
    std::string_view name;
    Graph (*run)(const Graph&);
};
constexpr Named kPasses[] = {{"decompose", decompose}, {"simplify", simplify}, {"dead_code", dead_code}};

constexpr std::string_view kRule = "----\n";

std::string read(const fs::path& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
}

struct Golden {
    std::string head;  // comments and the passes line
    std::vector<std::string> passes;
    std::string input, expected;
};

Golden split(const std::string& text) {
    Golden g;
    std::istringstream lines(text.substr(0, text.find(kRule)));
    for (std::string line; std::getline(lines, line);) {
        const bool names = line.starts_with("passes:");
        (names || line.starts_with("#") ? g.head : g.input) += line + "\n";
        if (!names) continue;
        std::istringstream words(line.substr(7));
        for (std::string w; words >> w;) g.passes.push_back(w);
    }
    const size_t rule = text.find(kRule);
    if (rule != text.npos) g.expected = text.substr(rule + kRule.size());
    return g;
}

Graph run(const Golden& golden) {
    Graph g = parse(golden.input);
    for (const std::string& name : golden.passes) {
        auto pass = std::find_if(std::begin(kPasses), std::end(kPasses), [&](const Named& p) { return p.name == name; });
        BOOST_REQUIRE_MESSAGE(pass != std::end(kPasses), "no pass " << name);
        g = pass->run(g);
        if (name == golden.passes.back()) BOOST_TEST(verify(g, Stage::Captured) == "");
    }
    return g;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(passes)

BOOST_AUTO_TEST_CASE(golden_files) {
    const bool bless = std::getenv("FRAMEJIT_BLESS") != nullptr;
    int files = 0;
    for (const auto& entry : fs::directory_iterator(fs::path(FRAMEJIT_SOURCE_DIR) / "tests/golden/passes")) {
        BOOST_TEST_CONTEXT(entry.path().filename().string()) {
            const Golden golden = split(read(entry.path()));
            BOOST_TEST(!golden.passes.empty());
            const std::string got = print(run(golden));
            if (bless)
                std::ofstream(entry.path()) << golden.head << golden.input << kRule << got;
            else
                BOOST_TEST(got == golden.expected);
            BOOST_TEST(print(parse(got)) == got);
            files++;
        }
    }
    BOOST_TEST(files > 0);
}

// Whatever a pass does, what the graph computes stays the same, bit for bit.
BOOST_AUTO_TEST_CASE(samples_keep_their_values) {
    for (const OpDef* op : all_ops())
        for (const Sample& s : op->samples.fn()) {
            const Graph g = sample_graph(*op, s);
            const std::vector<Memory> in = sample_memory(s);
            BOOST_TEST((evaluate(simplify(decompose(g)), in) == evaluate(g, in)), op->name);
        }
}

BOOST_AUTO_TEST_SUITE_END()
