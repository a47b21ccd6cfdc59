// Shapes and memory at the edges: empty, 0-dimensional, many dimensions, in place, failing indices, long rows, threads.
#include <boost/test/unit_test.hpp>

#include <cstring>
#include <thread>

#include "tests/cpp/support/run.h"

using namespace framejit;

namespace {
Ref in(Graph& g, Shape s, DType d = DType::f32) { return g.input(d, s, contiguous_strides(s)); }
void check(Graph& g, double lo = -3, double hi = 3) {
    for (const Target& t : test::targets()) BOOST_TEST(test::difference(g, t, 5, lo, hi) == "", print(g));
}
}  // namespace

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
struct LeaksExpected {
    LeaksExpected() { __lsan_disable(); }
    ~LeaksExpected() { __lsan_enable(); }
};
#else
struct LeaksExpected {
    ~LeaksExpected() {}  // not trivial: the variable is used
};
#endif

BOOST_AUTO_TEST_SUITE(codegen_edges)

BOOST_AUTO_TEST_CASE(empty_values) {
    Graph g;
    Ref x = in(g, {0, 5});
    g.outputs = {{g.op("tanh", {x})}, {g.op("sum", {x}, {{0}, {}})}, {g.op("sum", {x}, {{1}, {}})}};
    check(g);
}
BOOST_AUTO_TEST_CASE(zero_dimensional) {
    Graph g;
    Ref x = in(g, {}), y = in(g, {4, 9});
    g.outputs = {{g.op("tanh", {x})}, {g.op("add", {y, x})}, {g.scalar(3, DType::i64)}};
    check(g);
}
BOOST_AUTO_TEST_CASE(division_by_what_is_the_same_in_all_lanes) {
    for (const Shape& shape : {Shape{1, 1}, Shape{100, 1}, Shape{1, 256}})
        for (const Shape& strides : {Shape{256, 1}, Shape{1, 100}}) {
            Graph g;
            Ref x = g.input(DType::f32, {100, 256}, strides), y = in(g, {100, 256}), d = in(g, shape);
            Ref divisor = g.op("expand", {g.op("add", {d, d})}, {{100, 256}, {}});
            g.outputs = {{g.op("add", {y, g.op("div", {x, divisor})})}};
            check(g);
        }
}
BOOST_AUTO_TEST_CASE(outputs_that_are_inputs_or_twice_the_same) {
    Graph g;
    Ref x = g.input(DType::f32, {6, 5}, {1, 6});
    Ref y = g.op("neg", {x});
    g.outputs = {{x}, {y}, {y}, {x}};
    check(g);
}
BOOST_AUTO_TEST_CASE(ten_dimensions) {
    Graph g;
    const Shape s{2, 3, 2, 2, 3, 2, 2, 2, 3, 2};
    Ref x = in(g, s);
    Ref t = g.op("transpose", {x}, {{9, 1, 7, 3, 5, 4, 6, 2, 8, 0}, {}});
    g.outputs = {{g.op("add", {g.op("neg", {t}), t})}, {g.op("sum", {t}, {{4}, {}})}};
    check(g);
}
BOOST_AUTO_TEST_CASE(in_place) {
    for (int64_t n : {1, 7, 64, 100, 1003}) {
        Graph g;
        Ref x = in(g, {n}), y = in(g, {n});
        Ref z = g.op("add", {g.op("mul", {x, x}), y});
        g.outputs = {{z, 0}, {g.op("tanh", {z})}};
        check(g);
    }
}
BOOST_AUTO_TEST_CASE(in_place_with_other_readers) {
    Graph g;  // x becomes its own reverse, and its sum is read elsewhere
    Ref x = in(g, {5, 40});
    g.outputs = {{g.op("slice", {x}, {{1, 39, 40, -1}, {}}), 0}, {g.op("sum", {x}, {{0}, {}})}};
    check(g);
}
BOOST_AUTO_TEST_CASE(in_place_row_and_strided) {
    for (Shape strides : {Shape{37, 1}, Shape{1, 5}}) {
        Graph g;
        Ref x = g.input(DType::f32, {5, 37}, strides);
        g.outputs = {{g.op("softmax", {x}, {{1}, {}}), 0}};
        check(g);
        Graph h;
        x = h.input(DType::f32, {5, 37}, strides);
        h.outputs = {{h.op("softmax", {x}, {{0}, {}}), 0}};
        check(h);
    }
}
BOOST_AUTO_TEST_CASE(swapped_inputs) {
    Graph g;
    Ref x = in(g, {40}), y = in(g, {40});
    g.outputs = {{x, 1}, {y, 0}};
    test::Memory m = test::random_memory(g, 1);
    const auto before = m.buffers;
    run_plain(*compile(g, host_target()), m.pointers);
    BOOST_TEST((m.buffers[0] == before[1] && m.buffers[1] == before[0]));
}
BOOST_AUTO_TEST_CASE(every_dtype) {
    for (DType d : {DType::b1, DType::u8, DType::i8, DType::i16, DType::i32, DType::i64, DType::bf16, DType::f16, DType::f32, DType::f64})
        for (DType to :
             {DType::b1, DType::u8, DType::i8, DType::i16, DType::i32, DType::i64, DType::bf16, DType::f16, DType::f32, DType::f64}) {
            Graph g;
            Ref x = in(g, {3, 29}, d), t = g.op("transpose", {g.input(d, {29, 3}, {3, 1})}, {{1, 0}, {}});
            g.outputs = {{g.op("cast", {x}, {{int64_t(to)}, {}})}, {g.op("cast", {t}, {{int64_t(to)}, {}})}};
            check(g, d == DType::u8 ? 0 : -100, 100);
        }
}
BOOST_AUTO_TEST_CASE(complex_numbers_are_moved) {
    for (DType d : {DType::c64, DType::c128}) {
        Graph g;
        Ref x = g.input(d, {5, 7}, {1, 5});
        g.outputs = {{x}};
        const size_t size = size_t(size_of(d));
        std::vector<char> from(35 * size), to(35 * size);
        for (size_t i = 0; i < from.size(); i++) from[i] = char(i * 7 + i / 256);
        void* bufs[] = {from.data(), to.data()};
        run_plain(*compile(g, host_target()), bufs);
        for (size_t r = 0; r < 5; r++)
            for (size_t c = 0; c < 7; c++) BOOST_TEST(std::memcmp(&to[(r * 7 + c) * size], &from[(c * 5 + r) * size], size) == 0);
    }
}
BOOST_AUTO_TEST_CASE(concatenation_and_padding) {  // as windows that are selected, along the lanes and across them
    for (int64_t dim : {0, 1}) {
        Graph g;
        Ref x = in(g, {13, 21}), y = in(g, {13, 21});
        const int64_t n = g.nodes[0].shape[size_t(dim)];
        Shape shape{13, 21};
        shape[size_t(dim)] = 2 * n;
        Shape along(2, 1);
        along[size_t(dim)] = 2 * n;
        Ref where = g.op("view", {g.make(op_iota, {}, {{0, 1}, {}}, DType::i64, {2 * n})}, {along, {}});
        Ref first = g.op("lt", {where, g.integer(n, DType::i64)});
        Ref a = g.op("window", {x}, {{dim, 0, 2 * n, 1}, {}}), b = g.op("window", {g.op("neg", {y})}, {{dim, n, 2 * n, 1}, {}});
        g.outputs = {{g.op("where", {first, a, b})}};
        check(g);
    }
}
BOOST_AUTO_TEST_CASE(long_rows) {
    Graph g;
    Ref x = in(g, {2, 70001});
    g.outputs = {{g.op("softmax", {x}, {{1}, {}})}, {g.op("sum", {x}, {{1}, {}})}, {g.op("argmax", {x}, {{1}, {}})}};
    check(g);
}
BOOST_AUTO_TEST_CASE(gather_and_bad_index) {
    Graph g;
    Ref x = in(g, {10, 33}), i = in(g, {4}, DType::i64);
    g.outputs = {{g.op("index", {x, i}, {{0}, {}})}};
    check(g, -10, 10);  // negative indices wrap
    const auto e = compile(g, host_target());
    test::Memory m = test::random_memory(g, 1, -10, 10);
    static_cast<int64_t*>(m.pointers[1])[2] = 10;
    BOOST_CHECK_THROW(run_plain(*e, m.pointers), std::out_of_range);
    static_cast<int64_t*>(m.pointers[1])[2] = -11;
    BOOST_CHECK_THROW(run_plain(*e, m.pointers), std::out_of_range);
}
BOOST_AUTO_TEST_CASE(index_made_by_a_reduction_into_one_element) {
    for (const Shape& rows : {Shape{4, 7}, Shape{7, 4, 40}, Shape{1, 70000}})
        for (bool per_element : {false, true}) {  // the index is 0 for every number below 9: one per row, or one per element
            Graph g;
            Ref x = in(g, rows), one = in(g, {1});
            const int64_t d = rows.size() == 3 ? 1 : int64_t(rows.size()) - 1;
            Ref most = g.op("amax", {x}, {{d}, {}});
            Ref beyond =
                g.op("add", {per_element ? g.op("maximum", {x, g.op("expand", {most}, {rows, {}})}) : most, g.scalar(-8, DType::f32)});
            Ref at = g.op("maximum", {g.op("cast", {beyond}, {{int64_t(DType::i64)}, {}}), g.scalar(0, DType::i64)});
            g.outputs = {{g.op("index", {one, g.op("view", {at}, {{numel(at->shape)}, {}})}, {{0}, {}})}};
            check(g);
            const auto e = compile(g, host_target());
            test::Memory m = test::random_memory(g, 1);
            static_cast<float*>(m.pointers[0])[3] = 9.5f;
            BOOST_CHECK_THROW(run_plain(*e, m.pointers), std::out_of_range);
        }
}
BOOST_AUTO_TEST_CASE(rows_that_are_columns_of_memory) {
    for (int64_t channels : {16, 37, 130}) {
        Graph g;
        const Shape shape{2, channels, 5, 9};
        Ref x = g.input(DType::f32, shape, {channels * 45, 1, 9 * channels, channels});
        Ref rows = g.op("view", {x}, {{2, channels, 45}, {}});
        g.outputs = {{g.op("sum", {rows}, {{2}, {}})}, {g.op("softmax", {rows}, {{2}, {}})}, {g.op("argmax", {rows}, {{2}, {}})}};
        check(g);
    }
}
BOOST_AUTO_TEST_CASE(positions_beside_any_number) {
    for (const char* how : {"lt", "le", "gt", "ge", "eq", "ne"}) {
        Graph g;
        Ref x = in(g, {1000}, DType::i8), y = in(g, {1000}, DType::i8), number = in(g, {1}, DType::i64);
        Ref at = g.make(op_iota, {}, {{0, 1}, {}}, DType::i64, {1000});
        g.outputs = {{g.op("where", {g.op(how, {at, g.op("expand", {number}, {{1000}, {}})}), x, y})}};
        for (const Target& t : test::targets())
            for (int64_t v : {INT64_MIN, INT64_MIN + 5, int64_t(-1), int64_t(0), int64_t(63), int64_t(500), int64_t(999), INT64_MAX}) {
                test::Memory want = test::random_memory(g, 1), got = test::random_memory(g, 1);
                *static_cast<int64_t*>(want.pointers[2]) = *static_cast<int64_t*>(got.pointers[2]) = v;
                interpret(g, want.pointers);
                run_plain(*compile(g, t), got.pointers);
                BOOST_TEST(test::compare(g, got, want) == "", how << " " << v);
            }
    }
}
BOOST_AUTO_TEST_CASE(every_element_twice) {
    for (const Shape& shape : {Shape{3, 7, 5}, Shape{2, 40, 33}}) {
        Graph g;
        Ref x = in(g, shape);
        Ref wide =
            g.op("expand", {g.op("view", {x}, {{shape[0], shape[1], 1, shape[2], 1}, {}})}, {{shape[0], shape[1], 2, shape[2], 2}, {}});
        g.outputs = {{g.op("view", {wide}, {{shape[0], 2 * shape[1], 2 * shape[2]}, {}})}};
        check(g);
    }
}
BOOST_AUTO_TEST_CASE(same_bits_for_any_number_of_threads) {
    Graph g;
    Ref x = in(g, {300000});
    g.outputs = {{g.op("sum", {x}, {{0}, {}})}, {g.op("sum", {g.op("view", {x}, {{3000, 100}, {}})}, {{0}, {}})}};
    const auto e = compile(g, host_target());
    std::vector<test::Guarded> first;
    for (int threads : {1, 2, 5, 16}) {
        test::Memory m = test::random_memory(g, 2);
        run_plain(*e, m.pointers, test::run_in_pieces, threads);
        if (first.empty()) first = m.buffers;
        BOOST_TEST((m.buffers == first), "threads " << threads);
    }
}
BOOST_AUTO_TEST_CASE(compiles_in_several_threads) {
    std::vector<std::thread> threads;
    std::vector<std::string> problems(4);
    for (int t = 0; t < 4; t++)
        threads.emplace_back([t, &problems] {
            for (int i = 0; i < 5; i++) {
                Graph g;
                g.outputs = {{g.op("softmax", {in(g, {4, 30 + t * 7 + i})}, {{1}, {}})}};
                if (std::string d = test::difference(g, host_target()); !d.empty()) problems[size_t(t)] = d;
            }
        });
    for (auto& t : threads) t.join();
    for (const std::string& p : problems) BOOST_TEST(p == "");
}
BOOST_AUTO_TEST_CASE(what_llvm_cannot_do_is_an_error) {
    Graph g;  // AVX-512 instructions for a machine without them
    g.outputs = {{g.op("exp", {in(g, {64})})}};
    const Target wrong{.cpu = "haswell|", .width = 16, .avx512 = true};
    {
        LeaksExpected leaks;  // jit.cpp: nothing of LLVM's half-done work may be touched again
        BOOST_CHECK_THROW(compile(g, wrong), GraphError);
    }
    check(g);  // and the compiler goes on working
}
BOOST_AUTO_TEST_CASE(equal_kernels_share_machine_code) {
    auto one = [](const char* name) {
        Graph g;
        g.name = name;
        g.outputs = {{g.op("gelu", {in(g, {77, 3})})}};
        return compile(g, host_target());
    };
    const auto a = one("a"), b = one("b");
    BOOST_TEST((std::get<KernelStep>(a->steps[0]).fn == std::get<KernelStep>(b->steps[0]).fn));
}

BOOST_AUTO_TEST_SUITE_END()
