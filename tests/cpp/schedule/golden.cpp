// tests/golden/schedule: a graph, "---", and the program that the scheduler makes of it. FRAMEJIT_BLESS=1 rewrites what is expected.
#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "src/passes/passes.h"
#include "src/schedule/kernel.h"
#include "tests/cpp/support/run.h"

using namespace framejit;

BOOST_AUTO_TEST_SUITE(schedule_golden)

BOOST_AUTO_TEST_CASE(files) {
    int count = 0;
    for (const auto& file : std::filesystem::directory_iterator(FRAMEJIT_SOURCE_DIR "/tests/golden/schedule")) {
        std::ifstream in(file.path());
        std::stringstream all;
        all << in.rdbuf();
        const std::string text = all.str();
        const size_t line = text.find("---\n");
        BOOST_REQUIRE_MESSAGE(line != std::string::npos, file.path() << " has no ---");
        const Graph captured = parse(text.substr(0, line));
        const Graph g = decompose(captured);
        const std::string program = print(schedule(g), g);
        if (std::getenv("FRAMEJIT_BLESS"))
            std::ofstream(file.path()) << text.substr(0, line + 4) << program;
        else
            BOOST_TEST(text.substr(line + 4) == program, file.path() << " differs:\n" << program);
        if (g.externs.empty())
            for (const Target& t : test::targets()) {
                const std::string d = test::difference(captured, t, 3);
                BOOST_TEST(d == "", file.path() << ": " << d);
            }
        count++;
    }
    BOOST_TEST(count >= 10);
}

BOOST_AUTO_TEST_SUITE_END()
