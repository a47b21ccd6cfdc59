// The arena: two temporaries that are alive at the same time never overlap, and memory is reused.
#include <boost/test/unit_test.hpp>

#include "src/passes/passes.h"
#include "src/schedule/memory.h"
#include "tests/cpp/support/random_graph.h"

using namespace framejit;

BOOST_AUTO_TEST_SUITE(schedule_memory)

BOOST_AUTO_TEST_CASE(live_temporaries_do_not_overlap) {
    int pairs = 0;
    for (uint64_t seed = 1; seed < 200; seed++) {
        const Graph g = decompose(test::random_graph(seed, 40));
        const Program p = schedule(g);
        const std::vector<Lifetime> life = lifetimes(p);
        for (size_t a = 0; a < p.buffers.size(); a++)
            for (size_t b = 0; b < a; b++) {
                const Buffer &x = p.buffers[a], &y = p.buffers[b];
                if (x.arena < 0 || y.arena < 0) continue;
                const bool together = life[a].first <= life[b].last && life[b].first <= life[a].last;
                const bool apart = x.arena + x.bytes <= y.arena || y.arena + y.bytes <= x.arena;
                BOOST_TEST((!together || apart), "seed " << seed << ": buffers " << a << " and " << b);
                pairs += together;
            }
        for (const Buffer& b : p.buffers) BOOST_TEST((b.arena < 0 || (b.arena % 64 == 0 && b.arena + b.bytes <= p.arena_bytes)));
    }
    BOOST_TEST(pairs > 20);
}

BOOST_AUTO_TEST_CASE(memory_is_reused) {
    Graph g;  // a chain of full reductions: each needs the one before
    Ref x = g.input(DType::f32, {256, 256}, {256, 1});
    for (int i = 0; i < 6; i++)
        x = g.op("sub", {g.op("transpose", {x}, {{1, 0}, {}}), g.op("amax", {g.op("amax", {x}, {{1}, {}})}, {{0}, {}})});
    g.outputs.push_back({x});
    const Program p = schedule(g);
    int64_t sum = 0;
    for (const Buffer& b : p.buffers)
        if (b.arena >= 0) sum += (b.bytes + 63) / 64 * 64;
    BOOST_TEST(p.arena_bytes < sum);
}

BOOST_AUTO_TEST_SUITE_END()
