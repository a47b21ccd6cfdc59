// Random graphs: whatever the scheduler decides, the values are the interpreter's.
#include <boost/test/unit_test.hpp>

#include <cstdlib>

#include "tests/cpp/support/random_graph.h"
#include "tests/cpp/support/run.h"

using namespace framejit;

namespace {
void check(uint64_t first, uint64_t count, int ops) {
    for (const Target& target : test::targets())
        for (uint64_t seed = first; seed < first + count; seed++) {
            const Graph g = test::random_graph(seed, ops);
            std::string problem;
            try {
                problem = test::difference(g, target, seed);
            } catch (const std::exception& e) {
                problem = e.what();
            }
            BOOST_TEST(problem == "", "seed " << seed << ", " << ops << " ops: " << problem << "\n" << print(g));
        }
}
uint64_t count_or(uint64_t usual) {  // FRAMEJIT_TEST_SEEDS: look longer
    const char* more = std::getenv("FRAMEJIT_TEST_SEEDS");
    return more ? std::strtoull(more, nullptr, 10) : usual;
}
}  // namespace

BOOST_AUTO_TEST_SUITE(random_graphs)
BOOST_AUTO_TEST_CASE(small) { check(1, count_or(60), 5); }
BOOST_AUTO_TEST_CASE(medium) { check(1000, count_or(40), 15); }
BOOST_AUTO_TEST_CASE(large) { check(2000, count_or(10), 60); }
BOOST_AUTO_TEST_SUITE_END()
