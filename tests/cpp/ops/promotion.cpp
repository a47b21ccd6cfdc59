// torch.result_type as a table: what torch 2.13 answers.
#include "src/ops/promote.h"

#include <boost/test/unit_test.hpp>

using namespace framejit;

namespace {

struct PairRow {
    DType a, b, together;
};
constexpr PairRow kPairs[] = {
    {DType::b1, DType::u8, DType::u8},     {DType::b1, DType::f16, DType::f16},    {DType::u8, DType::i8, DType::i16},
    {DType::u8, DType::i16, DType::i16},   {DType::u8, DType::i64, DType::i64},    {DType::i8, DType::i32, DType::i32},
    {DType::i64, DType::f16, DType::f16},  {DType::i32, DType::bf16, DType::bf16}, {DType::f16, DType::bf16, DType::f32},
    {DType::bf16, DType::f32, DType::f32}, {DType::f32, DType::f64, DType::f64},   {DType::u8, DType::u8, DType::u8},
    {DType::b1, DType::b1, DType::b1},     {DType::i16, DType::i16, DType::i16},
};

// operands: tensors with dimensions, 0-dim tensors, then Python numbers
struct TypeRow {
    std::vector<DType> dims, zero;
    std::vector<Arg> numbers;
    DType result;
};
const Arg kInt{int64_t(2)}, kFloat{2.5}, kBool{true};
const TypeRow kTypes[] = {
    {{DType::i64}, {}, {kInt}, DType::i64},
    {{DType::u8}, {}, {kInt}, DType::u8},
    {{DType::i32}, {}, {kFloat}, DType::f32},
    {{DType::bf16}, {}, {kFloat}, DType::bf16},
    {{DType::b1}, {}, {kInt}, DType::i64},
    {{DType::b1}, {}, {kBool}, DType::b1},
    {{DType::b1}, {}, {kFloat}, DType::f32},
    {{DType::f16}, {DType::f32}, {}, DType::f16},
    {{DType::f16}, {DType::f64}, {kInt}, DType::f16},
    {{DType::i32}, {DType::i64}, {}, DType::i32},
    {{DType::i32}, {DType::f64}, {}, DType::f64},
    {{DType::i32}, {DType::bf16}, {kFloat}, DType::bf16},
    {{}, {DType::i32}, {kInt}, DType::i32},
    {{}, {DType::i32, DType::i64}, {}, DType::i64},
    {{}, {DType::b1}, {kFloat}, DType::f32},
    {{}, {DType::f64}, {kFloat}, DType::f64},
    {{DType::u8, DType::i8}, {}, {}, DType::i16},
    {{DType::f16, DType::bf16}, {DType::f64}, {}, DType::f32},
};

}  // namespace

BOOST_AUTO_TEST_SUITE(promotion)

BOOST_AUTO_TEST_CASE(pairs) {
    for (const PairRow& r : kPairs) {
        BOOST_TEST(name_of(promote(r.a, r.b)) == name_of(r.together));
        BOOST_TEST(name_of(promote(r.b, r.a)) == name_of(r.together));
    }
}

BOOST_AUTO_TEST_CASE(groups) {
    for (const TypeRow& r : kTypes) {
        Graph g;
        std::vector<Arg> args(r.numbers);
        for (DType d : r.dims) args.emplace_back().v = g.input(d, {3}, {1});
        for (DType d : r.zero) args.emplace_back().v = g.input(d, {}, {});
        std::vector<const Arg*> operands;
        for (const Arg& a : args) operands.push_back(&a);
        BOOST_TEST(name_of(result_type(operands)) == name_of(r.result));
    }
}

BOOST_AUTO_TEST_CASE(a_python_float_is_the_default_dtype) {
    Graph g;
    const Arg x{g.input(DType::i32, {3}, {1})}, number{0.5};
    const Arg* operands[] = {&x, &number};
    BOOST_TEST(name_of(result_type(operands, DType::f64)) == "f64");
    BOOST_TEST(name_of(to_float(DType::i8, DType::f64)) == "f64");
    BOOST_TEST(name_of(to_float(DType::bf16, DType::f64)) == "bf16");
}

BOOST_AUTO_TEST_SUITE_END()
