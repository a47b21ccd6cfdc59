// Index ops against loops: every output element must come from where plain nested loops say.
#include <boost/test/unit_test.hpp>
#include <functional>
#include <random>

#include "src/ops/rules.h"
#include "tests/cpp/sample_data.h"

using namespace framejit;

namespace {

// An i64 tensor that holds 0, 1, 2, ...: a result's elements say where they were read.
Memory counting(const Shape& shape) {
    Memory m(size_t(numel(shape)) * 8);
    for (int64_t i = 0; i < numel(shape); i++) store_scalar(m.data(), DType::i64, i, ScalarEmitter::whole(Ty::i64, i));
    return m;
}
std::vector<int64_t> read_from(const Shape& shape, const std::function<Ref(rules::Build, Ref)>& make, Shape* result = nullptr) {
    Graph g;
    Ref x = g.input(DType::i64, shape, contiguous_strides(shape));
    g.outputs.push_back({make(rules::Build{g}, x)});
    if (result) *result = g.outputs[0].value->shape;
    const Memory out = evaluate(g, {counting(shape)})[0];
    std::vector<int64_t> values(out.size() / 8);
    for (size_t i = 0; i < values.size(); i++) values[i] = load_scalar(out.data(), DType::i64, int64_t(i)).i;
    return values;
}

std::vector<Shape> factorisations(int64_t n) {
    std::vector<Shape> out{{n}, {1, n}, {n, 1}};
    for (int64_t a = 2; a < n; a++)
        if (n % a == 0) {
            out.push_back({a, n / a});
            out.push_back({a, 1, n / a});
            for (int64_t b = 2; b < n / a; b++)
                if (n / a % b == 0) out.push_back({a, b, n / a / b});
        }
    return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(coordinates)

BOOST_AUTO_TEST_CASE(views_keep_the_order_of_elements) {
    for (int64_t n : {12, 30, 36})
        for (const Shape& from : factorisations(n))
            for (const Shape& to : factorisations(n)) {
                const std::vector<int64_t> got = read_from(from, [&](rules::Build b, Ref x) { return b.view(x, to); });
                for (int64_t i = 0; i < n; i++) BOOST_REQUIRE_EQUAL(got[i], i);
            }
}

BOOST_AUTO_TEST_CASE(slices_of_any_step) {
    for (int64_t extent : {1, 5, 9})
        for (int64_t step : {1, 2, 3, -1, -2})
            for (int64_t start = 0; start < extent; start++) {
                const int64_t length = step > 0 ? (extent - start + step - 1) / step : start / -step + 1;
                const auto got = read_from({2, extent}, [&](rules::Build b, Ref x) { return b.slice(x, 1, start, length, step); });
                for (int64_t r = 0; r < 2; r++)
                    for (int64_t k = 0; k < length; k++) BOOST_REQUIRE_EQUAL(got[r * length + k], r * extent + start + k * step);
            }
}

// put(base, slice(base)) with other values is the inverse of slice: outside the slice nothing changes.
BOOST_AUTO_TEST_CASE(put_writes_a_slice_and_nothing_else) {
    for (int64_t step : {1, 2, 3, -1, -2})
        for (int64_t start = 0; start < 7; start++) {
            const int64_t length = step > 0 ? (7 - start + step - 1) / step : start / -step + 1;
            const auto got =
                read_from({7}, [&](rules::Build b, Ref x) { return b.put(x, 0, start, step, b.neg(b.slice(x, 0, start, length, step))); });
            std::vector<int64_t> want{0, 1, 2, 3, 4, 5, 6};
            for (int64_t k = 0; k < length; k++) want[start + k * step] *= -1;
            BOOST_TEST(got == want, boost::test_tools::per_element());
        }
}

BOOST_AUTO_TEST_CASE(transposes_compose) {
    std::mt19937 random(3);
    const Shape shape{2, 3, 4, 5};
    for (int round = 0; round < 20; round++) {
        std::vector<int64_t> p{0, 1, 2, 3};
        std::shuffle(p.begin(), p.end(), random);
        Shape result;
        const auto got = read_from(shape, [&](rules::Build b, Ref x) { return b.transpose(x, p); }, &result);
        const Shape strides = contiguous_strides(shape);
        for (int64_t i = 0; i < numel(shape); i++) {
            int64_t rest = i, from = 0;
            for (int d = 3; d >= 0; d--) from += rest % result[d] * strides[p[d]], rest /= result[d];
            BOOST_REQUIRE_EQUAL(got[i], from);
        }
        const auto back = read_from(shape, [&](rules::Build b, Ref x) { return b.transpose(b.transpose(x, p), rules::inverse(p)); });
        for (int64_t i = 0; i < numel(shape); i++) BOOST_REQUIRE_EQUAL(back[i], i);
    }
}

BOOST_AUTO_TEST_CASE(concat_lays_parts_side_by_side) {
    const auto got = read_from({3, 4}, [](rules::Build b, Ref x) {
        const Ref parts[] = {b.slice(x, 1, 3, 1), b.slice(x, 1, 0, 0), b.slice(x, 1, 0, 3), x};
        return b.concat(parts, 1);
    });
    for (int64_t r = 0; r < 3; r++)
        for (int64_t k = 0; k < 8; k++) BOOST_REQUIRE_EQUAL(got[r * 8 + k], 4 * r + (k < 4 ? (k + 3) % 4 : k - 4));
}

BOOST_AUTO_TEST_CASE(overlapping_looks) {
    const auto unfolded = read_from({10}, [](rules::Build b, Ref x) { return b("unfold", {x}, {{0, 4, 3}, {}}); });
    for (int64_t w = 0; w < 3; w++)
        for (int64_t k = 0; k < 4; k++) BOOST_TEST(unfolded[w * 4 + k] == 3 * w + k);
    const auto strided = read_from({20}, [](rules::Build b, Ref x) { return b("as_strided", {x}, {{2, 3, 4, 5, 1}, {}}); });
    for (int64_t r = 0; r < 3; r++)
        for (int64_t k = 0; k < 4; k++) BOOST_TEST(strided[r * 4 + k] == 2 + 5 * r + k);
    const auto diagonal = read_from({4, 5}, [](rules::Build b, Ref x) { return b("diagonal", {x}, {{1, 0, 1, 4}, {}}); });
    for (int64_t k = 0; k < 4; k++) BOOST_TEST(diagonal[k] == 6 * k + 1);
}

BOOST_AUTO_TEST_CASE(several_dimensions_are_reduced_as_one) {
    const Shape shape{2, 3, 4, 5};
    for (int set = 1; set < 16; set++) {
        std::vector<int64_t> dims;
        for (int64_t d = 0; d < 4; d++)
            if (set >> d & 1) dims.push_back(d);
        Shape result;
        const auto got = read_from(shape, [&](rules::Build b, Ref x) { return b.reduce_all("sum", x, dims); }, &result);
        const Shape strides = contiguous_strides(result);
        std::vector<int64_t> want(got.size());
        for (int64_t i = 0; i < numel(shape); i++) {
            int64_t rest = i, to = 0;
            for (int d = 3; d >= 0; d--) to += (set >> d & 1 ? 0 : rest % shape[d]) * strides[d], rest /= shape[d];
            want[to] += i;
        }
        BOOST_TEST(got == want, boost::test_tools::per_element());
    }
}

BOOST_AUTO_TEST_SUITE_END()
