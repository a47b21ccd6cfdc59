// Writes through windows against plain memory.
#include <boost/test/unit_test.hpp>
#include <random>

#include "src/ops/rules.h"
#include "tests/cpp/sample_data.h"

using namespace framejit;

namespace {

// Writes -1, -2, ... through the window, in the graph and in plain memory; whether the graph can express it.
bool agrees(const Shape& base_shape, const Window& w) {
    Graph g;
    Ref base = g.input(DType::i64, base_shape, contiguous_strides(base_shape)),
        value = g.input(DType::i64, w.sizes, contiguous_strides(w.sizes));
    const auto written = put_window(g, base, w, value);
    if (!written) return false;
    g.outputs.push_back({*written});
    const int64_t count = numel(base_shape), part = numel(w.sizes);
    Memory memory(size_t(count) * 8), values(size_t(part) * 8);
    std::vector<int64_t> want(count);
    for (int64_t i = 0; i < count; i++) store_scalar(memory.data(), DType::i64, i, ScalarEmitter::whole(Ty::i64, want[i] = i));
    for (int64_t i = 0; i < part; i++) {
        store_scalar(values.data(), DType::i64, i, ScalarEmitter::whole(Ty::i64, -1 - i));
        int64_t rest = i, at = w.offset;
        for (size_t d = w.sizes.size(); d-- > 0;) at += rest % w.sizes[d] * w.strides[d], rest /= w.sizes[d];
        want[at] = -1 - i;
    }
    const Memory got = evaluate(g, {memory, values})[0];
    for (int64_t i = 0; i < count; i++) BOOST_REQUIRE_EQUAL(load_scalar(got.data(), DType::i64, i).i, want[i]);
    return true;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(window)

BOOST_AUTO_TEST_CASE(common_views_are_boxes) {
    BOOST_TEST(agrees({4, 6}, {{4, 6}, {6, 1}, 0}));                  // all
    BOOST_TEST(agrees({4, 6}, {{6}, {1}, 12}));                       // x[2]
    BOOST_TEST(agrees({4, 6}, {{4}, {6}, 5}));                        // x[:, 5]
    BOOST_TEST(agrees({4, 6}, {{2, 3}, {6, 2}, 7}));                  // x[1:3, 1::2]
    BOOST_TEST(agrees({4, 7}, {{4, 4}, {7, 2}, 0}));                  // x[:, ::2] of an odd extent
    BOOST_TEST(agrees({4, 6}, {{6, 4}, {1, 6}, 0}));                  // x.t()
    BOOST_TEST(agrees({4, 6}, {{}, {}, 13}));                         // x[2, 1]
    BOOST_TEST(agrees({4, 6}, {{24}, {1}, 0}));                       // x.view(-1)
    BOOST_TEST(agrees({4, 6}, {{10}, {1}, 7}));                       // x.view(-1)[7:17]
    BOOST_TEST(agrees({2, 3, 8}, {{2, 3, 4}, {24, 8, 1}, 4}));        // x[..., 4:]
    BOOST_TEST(agrees({2, 3, 8}, {{2, 2, 3, 2}, {24, 4, 8, 1}, 1}));  // heads split off, transposed, sliced
    BOOST_TEST(agrees({1, 5, 1}, {{1, 2, 1}, {5, 1, 1}, 3}));         // extents of 1
    BOOST_TEST(agrees({4, 6}, {{0, 6}, {6, 1}, 0}));
}

BOOST_AUTO_TEST_CASE(what_is_no_box_is_refused) {
    BOOST_TEST(!agrees({4, 6}, {{3, 4}, {0, 1}, 0}));  // expanded: several elements on one place
    BOOST_TEST(!agrees({4, 6}, {{3, 3}, {1, 1}, 0}));  // overlapping
    BOOST_TEST(!agrees({4, 4}, {{4}, {5}, 0}));        // a diagonal
}

BOOST_AUTO_TEST_CASE(random_slices_of_random_views) {
    std::mt19937 random(17);
    auto below = [&](int64_t n) { return int64_t(random() % uint64_t(n)); };
    for (int round = 0; round < 400; round++) {
        const Shape shape{1 + below(3), 1 + below(4), 2 + below(5)};
        Window w{shape, contiguous_strides(shape), 0};
        if (below(2)) {  // merge two dimensions
            w.sizes = {shape[0] * shape[1], shape[2]};
            w.strides = {shape[2], 1};
        }
        for (size_t d = 0; d < w.sizes.size(); d++) {  // and slice all
            const int64_t start = below(w.sizes[d]), step = 1 + below(2);
            w.offset += start * w.strides[d];
            w.sizes[d] = 1 + below((w.sizes[d] - start + step - 1) / step);
            w.strides[d] *= step;
        }
        agrees(shape, w);
    }
}

BOOST_AUTO_TEST_SUITE_END()
