// Accuracy of our elementary functions over the whole float range, against the C library in double. The bounds are what README promises.
#include "src/ops/mathlib.h"

#include <bit>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <random>

#include "src/ir/scalar_emitter.h"

using namespace framejit;

namespace {

struct FunctionRow {
    const char* name;
    Val (*ours)(Emitter&, Val);
    double (*exact)(double);
    double ulps;
};
constexpr FunctionRow kFunctions[] = {
    {"exp", mathlib::exp, std::exp, 1},         {"exp2", mathlib::exp2, std::exp2, 1},    {"expm1", mathlib::expm1, std::expm1, 1.5},
    {"log", mathlib::log, std::log, 1},         {"log2", mathlib::log2, std::log2, 1.6},  {"log10", mathlib::log10, std::log10, 2},
    {"log1p", mathlib::log1p, std::log1p, 1.6}, {"sin", mathlib::sin, std::sin, 2.1},     {"cos", mathlib::cos, std::cos, 2.2},
    {"tan", mathlib::tan, std::tan, 3.5},       {"asin", mathlib::asin, std::asin, 3},    {"acos", mathlib::acos, std::acos, 3},
    {"atan", mathlib::atan, std::atan, 2.6},    {"sinh", mathlib::sinh, std::sinh, 3.2},  {"cosh", mathlib::cosh, std::cosh, 2.8},
    {"tanh", mathlib::tanh, std::tanh, 5},      {"erf", mathlib::erf, std::erf, 5},       {"erfc", mathlib::erfc, std::erfc, 5},
    {"asinh", mathlib::asinh, std::asinh, 3},   {"acosh", mathlib::acosh, std::acosh, 3}, {"atanh", mathlib::atanh, std::atanh, 3},
};

double ulp(float at) {
    const float a = std::fabs(at);
    return double(std::nextafterf(a, INFINITY)) - double(a);
}

// Random bit patterns cover all exponents, denormals and NaN; the grid covers where functions bend.
std::vector<float> arguments() {
    std::vector<float> out{0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1, -1, 1e-45f, -1e-45f, 3.4e38f, -3.4e38f};
    std::mt19937 random(7);
    for (int i = 0; i < 200000; i++) out.push_back(std::bit_cast<float>(uint32_t(random())));
    for (int i = -4000; i <= 4000; i++) out.push_back(float(i) / 400), out.push_back(float(i) / 37);
    return out;
}

float apply(Val (*f)(Emitter&, Val), float x) {
    ScalarEmitter e;
    return float(f(e, ScalarEmitter::real(Ty::f32, x)).f);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(functions)

BOOST_AUTO_TEST_CASE(within_the_promised_ulps) {
    const std::vector<float> xs = arguments();
    for (const FunctionRow& row : kFunctions) {
        double worst = 0;
        int special = 0;
        for (float x : xs) {
            const double exact = row.exact(x);
            const float want = float(exact), got = apply(row.ours, x);
            if (std::isnan(want) || std::isinf(want) || std::isnan(got) || std::isinf(got)) {
                special += std::isnan(want) ? !std::isnan(got) : got != want;
                continue;
            }
            special += want == 0 && std::signbit(want) != std::signbit(got);
            worst = std::max(worst, std::fabs(double(got) - exact) / ulp(want));
        }
        BOOST_TEST_CONTEXT(row.name) {
            BOOST_TEST(special == 0);
            BOOST_TEST(worst <= row.ulps);
        }
    }
}

BOOST_AUTO_TEST_CASE(erf_and_tanh_reach_one) {
    for (float x : {4.0f, 10.0f, 1e4f, 1e30f}) {
        BOOST_TEST(apply(mathlib::erf, -x) == -1.0f);
        BOOST_TEST(apply(mathlib::tanh, 3 * x) == 1.0f);
    }
}

BOOST_AUTO_TEST_CASE(power_follows_C_at_every_edge) {
    const float values[] = {0.0f,  -0.0f, 1,  -1,     INFINITY, -INFINITY, NAN,   2,           -2,   0.5f,
                            -0.5f, 3,     -3, 1e-45f, -1e30f,   2.5f,      -2.5f, 16777217.0f, 1e30f};
    ScalarEmitter e;
    for (float x : values)
        for (float y : values) {
            const float want = float(std::pow(double(x), double(y)));
            const float got = float(mathlib::power(e, ScalarEmitter::real(Ty::f32, x), ScalarEmitter::real(Ty::f32, y)).f);
            const bool same =
                std::isnan(want) ? std::isnan(got) : std::fabs(double(got) - want) <= ulp(want) && std::signbit(got) == std::signbit(want);
            BOOST_TEST((same || got == want), x << " ** " << y << " = " << got << ", not " << want);
            const float angle = float(std::atan2(double(x), double(y)));
            const float ours = float(mathlib::atan2(e, ScalarEmitter::real(Ty::f32, x), ScalarEmitter::real(Ty::f32, y)).f);
            const bool near = std::isnan(angle)
                                  ? std::isnan(ours)
                                  : std::fabs(double(ours) - angle) <= 3 * ulp(angle) && std::signbit(ours) == std::signbit(angle);
            BOOST_TEST(near, "atan2(" << x << ", " << y << ") = " << ours << ", not " << angle);
        }
}

BOOST_AUTO_TEST_CASE(remainder_is_exact) {
    std::mt19937 random(11);
    ScalarEmitter e;
    for (int i = 0; i < 200000; i++) {
        const float x = std::bit_cast<float>(uint32_t(random()));
        // Half of the divisors are near x: that is where the quotient may be one off.
        const float y = i % 2 ? std::bit_cast<float>(uint32_t(random())) : x / float(1 + random() % 1000);
        const float want = std::fmod(x, y),
                    got = float(mathlib::remainder(e, ScalarEmitter::real(Ty::f32, x), ScalarEmitter::real(Ty::f32, y)).f);
        const bool same = std::isnan(want) ? std::isnan(got) : got == want && std::signbit(got) == std::signbit(want);
        BOOST_REQUIRE_MESSAGE(same, "fmod(" << x << ", " << y << ") = " << got << ", not " << want);
        const double wide = std::fmod(double(x) * 1.1, double(y)),
                     ours = mathlib::remainder(e, ScalarEmitter::real(Ty::f64, double(x) * 1.1), ScalarEmitter::real(Ty::f64, y)).f;
        BOOST_REQUIRE((std::isnan(wide) ? std::isnan(ours) : ours == wide));
    }
}

BOOST_AUTO_TEST_SUITE_END()
