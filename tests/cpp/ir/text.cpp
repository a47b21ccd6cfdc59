// The text form and what is wrong with a graph: errors name the line or the node.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "framejit/op.h"

using namespace framejit;

namespace {

std::string parse_error(std::string_view text) {
    try {
        parse(text);
    } catch (const GraphError& e) {
        return e.what();
    }
    return "no error";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(text)

BOOST_AUTO_TEST_CASE(calls_windows_and_outputs_round_trip) {
    Graph g;
    g.name = "calls";
    Ref x = g.input(DType::f32, {4, 6}, {1, 4});
    ExternCall mm{7, "aten::mm", {{{4, 3}, {6, 1}, 3}, {{3, 4}, {1, 6}, 0}}, {{{4, 4}, {4, 1}, 0}}, {DType::f32}, false};
    Ref call = g.extern_call(mm, {x, g.op("exp", {x})});
    Ref y = g.result(call, 0);
    ExternCall add{8, "aten::add_", {{{4}, {5}, 0}}, {{{4, 4}, {4, 1}, 0}}, {DType::f32}, true};
    Ref z = g.result(g.extern_call(add, {y}), 0);
    g.outputs = {{z}, {g.op("neg", {x}), 0}};
    BOOST_TEST(verify(g, Stage::Captured) == "");
    const Graph back = parse(print(g));
    BOOST_TEST(print(back) == print(g));
    BOOST_TEST((back.externs == g.externs));
    BOOST_TEST(back.outputs[1].into == 0);
    BOOST_TEST(verify(back, Stage::Captured) == "");
}

BOOST_AUTO_TEST_CASE(numbers_round_trip) {
    Graph g;
    for (double v : {0.1, -0.0, 1e-310, 1.0 / 3, double(INFINITY), -double(INFINITY), double(NAN)})
        g.outputs.push_back({g.scalar(v, DType::f64)});
    g.outputs.push_back({g.integer(INT64_MIN, DType::i64)});
    const Graph back = parse(print(g));
    BOOST_TEST(print(back) == print(g));
    BOOST_TEST(std::signbit(back.outputs[1].value->at.f[0]));
    BOOST_TEST(back.outputs.back().value->at.i[0] == INT64_MIN);
}

BOOST_AUTO_TEST_CASE(dead_nodes_are_not_printed) {
    Graph g;
    Ref x = g.input(DType::f32, {2}, {1});
    g.op("exp", {x});
    g.outputs.push_back({g.op("neg", {x})});
    BOOST_TEST(print(g) == "graph \n%0 = input f32[2] (0,1)\n%1 = neg f32[2] %0\nreturn %1\n");
}

BOOST_AUTO_TEST_CASE(errors_name_the_line) {
    BOOST_TEST(parse_error("graph g\n%0 = sine f32[2]\n") == "line 2: no op sine");
    BOOST_TEST(parse_error("graph g\n\n%1 = exp f32[2] %0\n") == "line 3: no value %0");
    BOOST_TEST(parse_error("%0 = input f32[2] (0,1)\n%1 = exp f32[3] %0\n") == "line 2: the op's rules say f32[2]");
    BOOST_TEST(parse_error("%0 = input f33[2] (0,1)\n") == "line 1: no dtype f33");
    BOOST_TEST(parse_error("%0 = input f32[2] (0,x)\n") == "line 1: not a number: x");
    BOOST_TEST(parse_error("%0 = input f32[2] (0,1)\n%1 = sum f32[1] %0 (1)\n") == "line 2: sum: no such dimension");
    BOOST_TEST(parse_error("%0 = extern other[] (0)\n") == "line 1: extern calls must come in order");
}

BOOST_AUTO_TEST_CASE(bad_operands_are_refused) {
    Graph g;
    Ref x = g.input(DType::f32, {2, 3}, {3, 1}), y = g.input(DType::f32, {4}, {1}), i = g.input(DType::i64, {2, 3}, {3, 1});
    BOOST_CHECK_THROW(g.op("add", {x, y}), GraphError);  // shapes
    BOOST_CHECK_THROW(g.op("add", {x, i}), GraphError);  // dtypes
    BOOST_CHECK_THROW(g.op("exp", {i}), GraphError);     // integers do not float
    BOOST_CHECK_THROW(g.op("bit_and", {x, x}), GraphError);
    BOOST_CHECK_THROW(g.op("view", {x}, {{5}, {}}), GraphError);
    BOOST_CHECK_THROW(g.op("expand", {x}, {{2, 4}, {}}), GraphError);
    BOOST_CHECK_THROW(g.op("nothing", {x}), GraphError);
    BOOST_CHECK_THROW(g.input(DType::f32, {2}, {}), GraphError);
}

BOOST_AUTO_TEST_CASE(verify_names_the_node) {
    Graph g;
    Ref x = g.input(DType::f32, {2, 3}, {3, 1});
    g.outputs.push_back({g.op("softmax", {x}, {{1}, {}})});
    BOOST_TEST(verify(g, Stage::Captured) == "");
    BOOST_TEST(verify(g, Stage::Decomposed) == "%1 = softmax: a composite after decomposition");
    g.outputs[0].into = 3;
    BOOST_TEST(verify(g, Stage::Captured) == "output 0: an output goes into an input that does not exist");
    g.outputs[0] = {g.op("view", {x}, {{6}, {}}), 0};
    BOOST_TEST(verify(g, Stage::Captured) == "output 0: an output and the input that it goes into differ in dtype or shape");
    g.nodes[0].at.i = {0, 3};
    BOOST_TEST(verify(g, Stage::Captured) == "%0 = input: an input has a position and one stride per dimension");
}

BOOST_AUTO_TEST_SUITE_END()
