// Graphs: equal nodes are one node, the text form is a fixed point, samples evaluate.
#include <boost/test/unit_test.hpp>

#include "framejit/op.h"
#include "src/passes/passes.h"
#include "tests/cpp/sample_data.h"

using namespace framejit;

BOOST_AUTO_TEST_SUITE(graph)

BOOST_AUTO_TEST_CASE(equal_nodes_are_one) {
    Graph g;
    Ref x = g.input(DType::f32, {2, 3}, {3, 1});
    BOOST_TEST(g.op("add", {x, g.scalar(1, DType::f32)}) == g.op("add", {x, g.scalar(1, DType::f32)}));
    BOOST_TEST(g.scalar(0.0, DType::f32) != g.scalar(-0.0, DType::f32));
    BOOST_TEST(g.scalar(1, DType::i64) == g.integer(1, DType::i64));
}

BOOST_AUTO_TEST_CASE(samples_print_parse_and_verify) {
    for (const OpDef* op : all_ops())
        for (const Sample& s : op->samples.fn()) {
            Graph g = sample_graph(*op, s);
            BOOST_TEST(verify(g, Stage::Captured) == "");
            BOOST_TEST(print(parse(print(g))) == print(g));
            Graph d = decompose(g);
            BOOST_TEST(verify(d, Stage::Decomposed) == "");
            BOOST_TEST(print(parse(print(d))) == print(d));
        }
}

BOOST_AUTO_TEST_CASE(softmax_of_two) {
    Graph g;
    Ref x = g.input(DType::f32, {1, 2}, {2, 1});
    g.outputs.push_back({g.op("softmax", {x}, {{1}, {}})});
    float in[] = {0, 0.6931472f}, out[2];
    void* bufs[] = {in, out};
    interpret(g, bufs);
    BOOST_TEST(out[0] == 1.0f / 3, boost::test_tools::tolerance(1e-6f));
    BOOST_TEST(out[1] == 2.0f / 3, boost::test_tools::tolerance(1e-6f));
}

BOOST_AUTO_TEST_SUITE_END()
