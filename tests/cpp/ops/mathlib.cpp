// Accuracy of our elementary functions over the whole float range, against the C library in double. The bounds are what README promises.
#include "src/ops/mathlib.h"

#include <bit>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <random>

#include "src/ir/scalar_emitter.h"

using namespace framejit;

namespace {

using Exact = long double (*)(long double);
struct FunctionRow {
    const char* name;
    Val (*ours)(Emitter&, Val);
    Exact exact;
    double ulps, ulps_in_f64;
};
constexpr FunctionRow kFunctions[] = {
    {"exp", mathlib::exp, std::exp, 1, 1.1},         {"exp2", mathlib::exp2, std::exp2, 1, 1.1},
    {"expm1", mathlib::expm1, std::expm1, 1.5, 2},   {"log", mathlib::log, std::log, 1, 1},
    {"log2", mathlib::log2, std::log2, 1.7, 1.1},    {"log10", mathlib::log10, std::log10, 2.1, 1.1},
    {"log1p", mathlib::log1p, std::log1p, 1.6, 1.6}, {"sin", mathlib::sin, std::sin, 2, 2.3},
    {"cos", mathlib::cos, std::cos, 2, 2.3},         {"tan", mathlib::tan, std::tan, 2.4, 2.4},
    {"asin", mathlib::asin, std::asin, 2, 2},        {"acos", mathlib::acos, std::acos, 1.3, 1.3},
    {"atan", mathlib::atan, std::atan, 1.6, 1.6},    {"sinh", mathlib::sinh, std::sinh, 1.7, 1.7},
    {"cosh", mathlib::cosh, std::cosh, 1.5, 1.5},    {"tanh", mathlib::tanh, std::tanh, 2.2, 2.5},
    {"erf", mathlib::erf, std::erf, 1.4, 1.7},       {"erfc", mathlib::erfc, std::erfc, 4, 4.3},
    {"asinh", mathlib::asinh, std::asinh, 2, 2},     {"acosh", mathlib::acosh, std::acosh, 2.2, 2.3},
    {"atanh", mathlib::atanh, std::atanh, 2.1, 2.1},
};

template <class T> T ulp(T at) {
    const T a = std::fabs(at);
    return std::nextafter(a, std::numeric_limits<T>::infinity()) - a;
}

// Random bit patterns cover all exponents, denormals and NaN; the grids cover where functions bend, and where exponentials end.
template <class T> std::vector<T> arguments() {
    std::vector<T> out{0.0, -0.0, INFINITY, -INFINITY, NAN, 1, -1};
    for (T v : {std::numeric_limits<T>::denorm_min(), std::numeric_limits<T>::min(), std::numeric_limits<T>::max()})
        out.push_back(v), out.push_back(-v);
    std::mt19937_64 random(7);
    using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
    for (int i = 0; i < 200000; i++) out.push_back(std::bit_cast<T>(Bits(random())));
    for (int i = -40000; i <= 40000; i++) {
        const T shift = std::uniform_real_distribution<T>(0, 1)(random);
        for (T step : {T(1) / 4000, T(1) / 37, T(1) / 3}) out.push_back((T(i) + shift) * step);
    }
    return out;
}

template <class T> T apply(Val (*f)(Emitter&, Val), T x) {
    ScalarEmitter e;
    return T(f(e, ScalarEmitter::real(sizeof(T) == 8 ? Ty::f64 : Ty::f32, x)).f);
}

template <class T> void check(const FunctionRow& row, const std::vector<T>& xs, double ulps) {
    T worst = 0, where = 0;
    int special = 0;
    for (T x : xs) {
        const long double exact = row.exact(x);
        const T want = T(exact), got = apply(row.ours, x);
        if (std::isnan(want) || std::isinf(want) || std::isnan(got) || std::isinf(got)) {
            const bool last = std::fabs(exact) > std::numeric_limits<T>::max() * (1 - 1e-6L);  // rounded past the largest number
            special += std::isnan(want) ? !std::isnan(got) : !last && got != want;
            continue;
        }
        special += want == 0 && std::signbit(want) != std::signbit(got);
        const T error = T(std::fabs((long double)got - exact) / ulp(want));
        if (error > worst) worst = error, where = x;
    }
    BOOST_TEST_CONTEXT(row.name << (sizeof(T) == 8 ? " f64" : " f32") << " at " << where) {
        BOOST_TEST(special == 0);
        BOOST_TEST(worst <= ulps);
    }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(functions)

BOOST_AUTO_TEST_CASE(within_the_promised_ulps) {
    const std::vector<float> narrow = arguments<float>();
    const std::vector<double> wide = arguments<double>();
    for (const FunctionRow& row : kFunctions) {
        check(row, narrow, row.ulps);
        check(row, wide, row.ulps_in_f64);
    }
}

// What is made of them must stay defined: sqrt(1 - tanh(x)^2), acos(erf(x)), the sign of gelu.
template <class T> void check_magnitude() {
    std::mt19937_64 random(3);
    for (int i = 0; i < 400000; i++) {
        const T x = std::uniform_real_distribution<T>(0, 12)(random);
        const T reached = std::max(apply(mathlib::erf, x), apply(mathlib::tanh, x));
        BOOST_REQUIRE_MESSAGE(reached <= 1, "beyond 1 at " << x);
    }
    for (T x : {7.0, 10.0, 1e4, 1e30}) {
        BOOST_TEST(apply(mathlib::erf, -x) == -1);
        BOOST_TEST(apply(mathlib::tanh, 3 * x) == 1);
    }
}
BOOST_AUTO_TEST_CASE(erf_and_tanh_reach_one_and_stay_there) {
    check_magnitude<float>();
    check_magnitude<double>();
}

template <class T> T apply(Val (*f)(Emitter&, Val, Val), T x, T y) {
    ScalarEmitter e;
    const Ty t = sizeof(T) == 8 ? Ty::f64 : Ty::f32;
    return T(f(e, ScalarEmitter::real(t, x), ScalarEmitter::real(t, y)).f);
}
template <class T> bool near(T got, long double exact, double ulps) {
    const T want = T(exact);
    if (std::isnan(want)) return std::isnan(got);
    if (std::signbit(got) != std::signbit(want)) return false;
    return got == want || std::fabs((long double)got - exact) <= ulps * ulp(want);
}
template <class T> void check_pair(T x, T y) {
    const T power = apply(mathlib::power, x, y), angle = apply(mathlib::atan2, x, y);
    const long double exact = std::pow((long double)x, (long double)y), exact_angle = std::atan2((long double)x, (long double)y);
    BOOST_TEST(near(power, exact, 1.5), x << " ** " << y << " = " << power << ", not " << exact);
    BOOST_TEST(near(angle, exact_angle, 2.6), "atan2(" << x << ", " << y << ") = " << angle << ", not " << exact_angle);
}
template <class T> void check_pairs() {
    const T most = std::numeric_limits<T>::max(), least = std::numeric_limits<T>::denorm_min();
    const T values[] = {0.0, -0.0, 1,     -1,    INFINITY, -INFINITY, NAN,        2,    -2,   0.5,      -0.5,
                        3,   -3,   least, -1e30, 2.5,      -2.5,      16777217.0, 1e30, most, most / 2, -most};
    for (T x : values)
        for (T y : values) check_pair(x, y);
    std::mt19937_64 random(5);
    auto real = [&](T lo, T hi) { return std::uniform_real_distribution<T>(lo, hi)(random); };
    for (int i = 0; i < 100000; i++) {
        check_pair(real(0, 20), real(-30, 30));
        check_pair(1 + real(-1, 1) / 1000, real(-1, 1) * 500000);
        check_pair(T(int(real(-12, 12))), T(int(real(-9, 12))));
        check_pair(std::exp(real(-80, 80)), real(-1, 1));
    }
}
BOOST_AUTO_TEST_CASE(power_and_atan2_follow_C_at_every_edge) {
    check_pairs<float>();
    check_pairs<double>();
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
