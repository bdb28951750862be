// Values of scalar functions, against the C++ library and against torch 2.13 on the CPU, whose
// results the tables are.
#include "composit/op/scalar_value.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <complex>
#include <limits>
#include <numeric>
#include <vector>

#include "composit/ir/error.h"
#include "composit/op/compute_type.h"
#include "composit/op/expr.h"

namespace composit {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

// `function` of one element per argument.
template <class R, class... T>
R value(Function function, DType operand, T... x) {
  const void* arguments[] = {&x...};
  R result{};
  apply(function, operand, 1, arguments, &result);
  return result;
}
double of_real(Function function, double x) { return value<double>(function, DType::float64, x); }
double of_real(Function function, double x, double y) {
  return value<double>(function, DType::float64, x, y);
}
int64_t of_integer(Function function, DType dtype, int64_t x, int64_t y) {
  return value<int64_t>(function, dtype, x, y);
}

// Also tells 0 from -0.
::testing::AssertionResult same(double x, double expected) {
  const bool both_nan = std::isnan(x) && std::isnan(expected);
  if (both_nan || (x == expected && std::signbit(x) == std::signbit(expected)))
    return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << x << " instead of " << expected;
}

TEST(ScalarValue, ElementaryFunctionsAreTheLibrarys) {
  using F = double (*)(double);
  const std::pair<Function, F> table[] = {
      {Function::exp, std::exp},     {Function::exp2, std::exp2},   {Function::expm1, std::expm1},
      {Function::log, std::log},     {Function::log2, std::log2},   {Function::log10, std::log10},
      {Function::log1p, std::log1p}, {Function::sqrt, std::sqrt},   {Function::sin, std::sin},
      {Function::cos, std::cos},     {Function::tan, std::tan},     {Function::asin, std::asin},
      {Function::acos, std::acos},   {Function::atan, std::atan},   {Function::sinh, std::sinh},
      {Function::cosh, std::cosh},   {Function::tanh, std::tanh},   {Function::asinh, std::asinh},
      {Function::acosh, std::acosh}, {Function::atanh, std::atanh}, {Function::erf, std::erf},
      {Function::erfc, std::erfc},   {Function::floor, std::floor}, {Function::ceil, std::ceil},
      {Function::trunc, std::trunc}, {Function::abs, std::abs}};
  const double values[] = {0.0,  -0.0, 0.3,   -0.7,   1.0,  -1.0,  2.5,
                           -3.5, 80.0, 700.0, 1e-300, kInf, -kInf, kNaN};
  for (const auto& [function, expected] : table)
    for (const double x : values) {
      EXPECT_TRUE(same(of_real(function, x), expected(x))) << info_of(function).name << " " << x;
      // The library's float functions are good to a unit in the last place.
      const auto single = static_cast<float>(x);
      const auto rounded = static_cast<float>(expected(single));
      const float got = value<float>(function, DType::float32, single);
      EXPECT_TRUE(same(got, rounded) || std::abs(got - rounded) <= 2.4e-7f * std::abs(rounded))
          << info_of(function).name << " " << single << ": " << got << ", " << rounded;
    }
}

TEST(ScalarValue, UnaryFunctionsOfRealNumbersAreTorchs) {
  const double x[] = {.5, 1.5, 2.5, -.5, -1.5, 0.0, -0.0, kInf, -kInf, kNaN, 3.7};
  const std::pair<Function, std::vector<double>> table[] = {
      {Function::sign, {1, 1, 1, -1, -1, 0, 0, 1, -1, 0, 1}},
      {Function::round, {0.0, 2, 2, -0.0, -2, 0.0, -0.0, kInf, -kInf, kNaN, 4}},
      {Function::rsqrt,
       {1.414213562373095, 0.8164965809277261, 0.6324555320336759, kNaN, kNaN, kInf, -kInf, 0.0,
        kNaN, kNaN, 0.5198752449100363}},
      {Function::neg, {-.5, -1.5, -2.5, .5, 1.5, -0.0, 0.0, -kInf, kInf, kNaN, -3.7}}};
  for (const auto& [function, expected] : table)
    for (size_t i = 0; i < std::size(x); ++i)
      EXPECT_TRUE(same(of_real(function, x[i]), expected[i])) << info_of(function).name << x[i];
}

TEST(ScalarValue, BinaryFunctionsOfRealNumbersAreTorchs) {
  const std::pair<double, double> x[] = {
      {5, 3},       {-5, 3},    {5, -3},     {-5, -3},    {0.0, 2},       {-0.0, 2},
      {1, 0},       {-1, 0},    {kInf, 2},   {2, kInf},   {-2, kInf},     {kNaN, 1},
      {1, kNaN},    {0.0, 0.0}, {0.0, -0.0}, {-0.0, 0.0}, {1e308, 1e-10}, {0.3, 0.1},
      {-1e-300, 5}, {6, 3},     {-6, 3},     {kInf, kInf}};
  // clang-format off
  const std::pair<Function, std::vector<double>> table[] = {
      {Function::floor_divide, {1.0, -2.0, -2.0, 1.0, 0.0, -0.0, kInf, -kInf, kNaN, 0.0, -1.0, kNaN, kNaN, kNaN, kNaN, kNaN, kInf, 2.0, -1.0, 2.0, -2.0, kNaN}},
      {Function::trunc_divide, {1.0, -1.0, -1.0, 1.0, 0.0, -0.0, kInf, -kInf, kInf, 0.0, -0.0, kNaN, kNaN, kNaN, kNaN, kNaN, kInf, 2.0, -0.0, 2.0, -2.0, kNaN}},
      {Function::remainder, {2.0, 1.0, -1.0, -2.0, 0.0, -0.0, kNaN, kNaN, kNaN, 2.0, kInf, kNaN, kNaN, kNaN, kNaN, kNaN, 8.242447678659312e-11, 0.09999999999999998, 5.0, 0.0, -0.0, kNaN}},
      {Function::fmod, {2.0, -2.0, 2.0, -2.0, 0.0, -0.0, kNaN, kNaN, kNaN, 2.0, -2.0, kNaN, kNaN, kNaN, kNaN, kNaN, 8.242447678659312e-11, 0.09999999999999998, -1e-300, 0.0, -0.0, kNaN}},
      {Function::min, {3.0, -5.0, -3.0, -5.0, 0.0, -0.0, 0.0, -1.0, 2.0, 2.0, -2.0, kNaN, kNaN, 0.0, 0.0, -0.0, 1e-10, 0.1, -1e-300, 3.0, -6.0, kInf}},
      {Function::max, {5.0, 3.0, 5.0, -3.0, 2.0, 2.0, 1.0, 0.0, kInf, kInf, kInf, kNaN, kNaN, 0.0, 0.0, -0.0, 1e+308, 0.3, 5.0, 6.0, 3.0, kInf}},
      {Function::pow, {125.0, -125.0, 0.008, -0.008, 0.0, 0.0, 1.0, 1.0, kInf, kInf, kInf, kNaN, 1.0, 1.0, 1.0, 1.0, 1.0000000709196233, 0.8865681505652133, -0.0, 216.0, -216.0, kInf}},
      {Function::atan2, {1.0303768265243125, -1.0303768265243125, 2.1112158270654806, -2.1112158270654806, 0.0, -0.0, 1.5707963267948966, -1.5707963267948966, 1.5707963267948966, 0.0, -0.0, kNaN, kNaN, 0.0, 3.141592653589793, -0.0, 1.5707963267948966, 1.2490457723982544, -2e-301, 1.1071487177940904, -1.1071487177940904, 0.7853981633974483}},
      {Function::hypot, {5.830951894845301, 5.830951894845301, 5.830951894845301, 5.830951894845301, 2.0, 2.0, 1.0, 1.0, kInf, kInf, kInf, kNaN, kNaN, 0.0, 0.0, 0.0, 1e+308, 0.31622776601683794, 5.0, 6.708203932499369, 6.708203932499369, kInf}},
      {Function::copysign, {5.0, 5.0, -5.0, -5.0, 0.0, 0.0, 1.0, 1.0, kInf, 2.0, 2.0, kNaN, 1.0, 0.0, -0.0, 0.0, 1e+308, 0.3, 1e-300, 6.0, 6.0, kInf}},
      {Function::nextafter, {4.999999999999999, -4.999999999999999, 4.999999999999999, -4.999999999999999, 5e-324, 5e-324, 0.9999999999999999, -0.9999999999999999, 1.7976931348623157e+308, 2.0000000000000004, -1.9999999999999998, kNaN, kNaN, 0.0, -0.0, 0.0, 9.999999999999998e+307, 0.29999999999999993, -9.999999999999999e-301, 5.999999999999999, -5.999999999999999, kInf}}};
  // clang-format on
  for (const auto& [function, expected] : table)
    for (size_t i = 0; i < std::size(x); ++i)
      EXPECT_TRUE(same(of_real(function, x[i].first, x[i].second), expected[i]))
          << info_of(function).name << "(" << x[i].first << ", " << x[i].second << ")";
}

TEST(ScalarValue, IntegersWrapAndRoundAsTorchs) {
  using enum Function;
  const struct {
    Function function;
    DType dtype;
    int64_t x, y, expected;
  } table[] = {{add, DType::int8, 127, 1, -128},
               {sub, DType::uint8, 0, 1, 255},
               {mul, DType::int16, 300, 300, 24464},
               {mul, DType::int64, kLeast, -1, kLeast},
               {floor_divide, DType::int8, 5, 3, 1},
               {floor_divide, DType::int8, -5, 3, -2},
               {floor_divide, DType::int8, 5, -3, -2},
               {floor_divide, DType::int8, -5, -3, 1},
               {floor_divide, DType::int8, -128, -1, -128},
               {floor_divide, DType::int64, kLeast, -1, kLeast},
               {trunc_divide, DType::int8, -5, 3, -1},
               {trunc_divide, DType::int8, 5, -3, -1},
               {remainder, DType::int8, -5, 3, 1},
               {remainder, DType::int8, 5, -3, -1},
               {remainder, DType::int8, -5, -3, -2},
               {remainder, DType::int64, kLeast, -1, 0},
               {fmod, DType::int8, -5, 3, -2},
               {fmod, DType::int8, 5, -3, 2},
               {fmod, DType::int64, kLeast, -1, 0},
               // Powers with a negative exponent.
               {pow, DType::int64, 0, -1, 0},
               {pow, DType::int64, 1, -3, 1},
               {pow, DType::int64, -1, -3, -1},
               {pow, DType::int64, -1, -2, 1},
               {pow, DType::int64, 2, -1, 0},
               {pow, DType::int64, 0, 0, 1},
               {pow, DType::int64, 3, 40, -6289078614652622815},
               {pow, DType::int8, 2, 7, -128},
               {pow, DType::int8, -3, 5, 13},
               {pow, DType::int8, 7, 9, 71},
               {pow, DType::uint8, 7, 255, 183},
               // Shifts by less than nothing and by more than the width.
               {shift_left, DType::int8, 100, 1, -56},
               {shift_left, DType::int8, 100, 7, 0},
               {shift_left, DType::int8, -5, 7, -128},
               {shift_left, DType::int32, -5, 31, -2147483648},
               {shift_left, DType::int64, 5, 64, 0},
               {shift_left, DType::int64, 5, -1, 0},
               {shift_right, DType::int8, -5, 1, -3},
               {shift_right, DType::int8, -5, 64, -1},
               {shift_right, DType::int64, 5, -1, 0},
               {shift_right, DType::int64, -5, -1, -1},
               {shift_right, DType::uint8, 200, 7, 1},
               {shift_right, DType::uint8, 200, 8, 0},
               {bitwise_and, DType::int8, -5, 6, 2},
               {bitwise_or, DType::int8, -8, 3, -5},
               {bitwise_xor, DType::uint8, 255, 15, 240},
               {min, DType::int8, -5, 3, -5},
               {max, DType::uint8, 200, 3, 200}};
  for (const auto& row : table)
    EXPECT_EQ(of_integer(row.function, row.dtype, row.x, row.y), row.expected)
        << info_of(row.function).name << " " << name(row.dtype) << " " << row.x << " " << row.y;
  EXPECT_EQ(value<int64_t>(abs, DType::int8, int64_t{-128}), -128);
  EXPECT_EQ(value<int64_t>(neg, DType::uint8, int64_t{1}), 255);
  EXPECT_EQ(value<int64_t>(bitwise_not, DType::uint8, int64_t{1}), 254);
  EXPECT_EQ(value<int64_t>(sign, DType::int16, int64_t{-7}), -1);
  EXPECT_EQ(value<int64_t>(round, DType::int16, int64_t{-7}), -7);
}

TEST(ScalarValue, UnsignedNumbersOf64BitsAreNotNegative) {
  constexpr uint64_t kMost = ~uint64_t{0};
  EXPECT_TRUE(value<bool>(Function::gt, DType::uint64, kMost, uint64_t{2}));
  EXPECT_EQ(value<uint64_t>(Function::floor_divide, DType::uint64, kMost, uint64_t{2}), kMost / 2);
  EXPECT_EQ(value<uint64_t>(Function::shift_right, DType::uint64, kMost, uint64_t{63}), 1u);
  EXPECT_EQ(value<uint64_t>(Function::shift_right, DType::uint64, kMost, uint64_t{64}), 0u);
  EXPECT_EQ(value<uint64_t>(Function::pow, DType::uint64, uint64_t{3}, uint64_t{3}), 27u);
}

TEST(ScalarValue, DivisionOfIntegersByZeroIsFoundOut) {
  for (const Function f :
       {Function::floor_divide, Function::trunc_divide, Function::remainder, Function::fmod}) {
    EXPECT_TRUE(divides_integers(f, DType::uint8));
    EXPECT_FALSE(divides_integers(f, DType::float32));
    EXPECT_EQ(of_integer(f, DType::int64, 7, 0), 0);
  }
  EXPECT_FALSE(divides_integers(Function::mul, DType::int64));
}

TEST(ScalarValue, BoolIsArithmeticModuloTruth) {
  const auto of = [](Function f, bool x, bool y) { return value<bool>(f, DType::bool_, x, y); };
  EXPECT_TRUE(of(Function::add, true, true));
  EXPECT_FALSE(of(Function::mul, true, false));
  EXPECT_FALSE(of(Function::min, true, false));
  EXPECT_TRUE(of(Function::bitwise_xor, true, false));
  EXPECT_FALSE(of(Function::bitwise_xor, true, true));
  EXPECT_FALSE(value<bool>(Function::bitwise_not, DType::bool_, true));
  EXPECT_TRUE(value<bool>(Function::logical_not, DType::bool_, false));
  EXPECT_TRUE(of(Function::logical_or, true, false));
  EXPECT_FALSE(of(Function::logical_and, true, false));
}

TEST(ScalarValue, ComparisonsWithNaNAreFalseButForNe) {
  const auto of = [](Function f, double x, double y) {
    return value<bool>(f, DType::float64, x, y);
  };
  for (const Function f : {Function::lt, Function::le, Function::gt, Function::ge, Function::eq})
    EXPECT_FALSE(of(f, kNaN, kNaN)) << info_of(f).name;
  EXPECT_TRUE(of(Function::ne, kNaN, kNaN));
  EXPECT_TRUE(of(Function::eq, 0.0, -0.0));
  EXPECT_TRUE(of(Function::lt, 1, 2) && of(Function::le, 2, 2) && of(Function::gt, 2, 1));
  EXPECT_TRUE(value<bool>(Function::isnan, DType::float64, kNaN));
  EXPECT_FALSE(value<bool>(Function::isnan, DType::int64, int64_t{3}));
  const std::complex<double> half_nan(1, kNaN);
  EXPECT_TRUE(value<bool>(Function::isnan, DType::complex128, half_nan));
}

// Within 4 units in the last place of the larger part.
void expect_close(std::complex<double> x, std::complex<double> expected, Function function) {
  EXPECT_LE(std::abs(x - expected), 1e-15 * std::abs(expected))
      << info_of(function).name << " " << x;
}

TEST(ScalarValue, FunctionsOfComplexNumbersAreTorchs) {
  using C = std::complex<double>;
  const C x[] = {{0.3, -0.7}, {-2, 1.5}}, y[] = {{1.25, 2}, {0.5, -3}};
  // clang-format off
  const struct { Function function; C expected[2]; } unary[] = {
      {Function::exp, {{1.0324289629116616, -0.8696029191140402}, {0.009573239223063966, 0.13499626653916091}}},
      {Function::log, {{-0.272363587720836, -1.1659045405098132}, {0.9162907318741551, 2.498091544796509}}},
      {Function::log2, {{-0.3929375973235763, -1.682044698743433}, {1.3219280948873624, 3.603984283364573}}},
      {Function::log10, {{-0.11828600321853135, -0.5063459083693581}, {0.3979400086720376, 1.0849073731942938}}},
      {Function::log1p, {{0.38966243840049875, -0.4939413689195811}, {0.589327498170823, 2.158798930342464}}},
      {Function::expm1, {{0.032428962911661606, -0.8696029191140402}, {-0.9904267607769359, 0.13499626653916091}}},
      {Function::exp2, {{1.0890460677533975, -0.5741909341162227}, {0.12661526147573735, 0.21556571054189175}}},
      {Function::sqrt, {{0.7285524382590421, -0.4804046786753803}, {0.5, 1.5}}},
      {Function::rsqrt, {{0.9566362181904808, 0.6308022468598541}, {0.2, -0.6}}},
      {Function::sin, {{0.37092780393896435, -0.7247026904232853}, {-2.139040009980677, -0.8860929093625314}}},
      {Function::cos, {{1.199108751098743, 0.22417681233754289}, {-0.9789478196465577, 1.936148329510507}}},
      {Function::tan, {{0.18971709151908692, -0.63983593026318}, {0.08039101531016819, 1.0641443991765371}}},
      {Function::asin, {{0.24573200610107973, -0.6703367429877897}, {-0.8877651461839051, 1.6004100552346137}}},
      {Function::acos, {{1.3250643206938169, 0.6703367429877897}, {2.4585614729788015, -1.6004100552346137}}},
      {Function::atan, {{0.480035181202844, -0.7016804321523099}, {-1.2452579660726568, 0.22008968066202295}}},
      {Function::sinh, {{0.23290996731262684, -0.6734255599525789}, {-0.2565539560904818, 3.752771340479298}}},
      {Function::cosh, {{0.7995189955990348, -0.1961773591614612}, {0.26612719531354573, -3.6177750739401375}}},
      {Function::tanh, {{0.46970516596755807, -0.7270371862435201}, {-1.036920282100185, 0.0053620609220030565}}},
      {Function::asinh, {{0.38559098731817487, -0.7089034409655052}, {-1.6224941488715938, 0.6065115181997549}}},
      {Function::acosh, {{0.6703367429877897, -1.3250643206938169}, {1.6004100552346137, 2.458561472978802}}},
      {Function::atanh, {{0.19988189602962927, -0.6396697661585148}, {-0.3104282830771958, 1.311223269671635}}},
      {Function::conj, {{0.3, 0.7}, {-2, -1.5}}}};
  const struct { Function function; C expected[2]; } binary[] = {
      {Function::add, {{1.55, 1.3}, {-1.5, -1.5}}},
      {Function::sub, {{-0.95, -2.7}, {-2.5, 4.5}}},
      {Function::mul, {{1.775, -0.275}, {3.5, 6.75}}},
      {Function::div, {{-0.1842696629213483, -0.26516853932584267}, {-0.5945945945945945, -0.5675675675675675}}},
      {Function::pow, {{-3.0624965146011833, -6.6545724027646775}, {201.55877367585083, -2835.2900457201417}}}};
  // clang-format on
  for (size_t i = 0; i < 2; ++i) {
    for (const auto& row : unary)
      expect_close(value<C>(row.function, DType::complex128, x[i]), row.expected[i], row.function);
    for (const auto& row : binary)
      expect_close(value<C>(row.function, DType::complex128, x[i], y[i]), row.expected[i],
                   row.function);
  }
  EXPECT_EQ(value<double>(Function::abs, DType::complex128, C(3, -4)), 5);
  EXPECT_EQ(value<double>(Function::real, DType::complex128, C(3, -4)), 3);
  EXPECT_EQ(value<double>(Function::imag, DType::complex128, C(3, -4)), -4);
  EXPECT_EQ(value<C>(Function::complex, DType::float64, 3.0, -4.0), C(3, -4));
  EXPECT_EQ(of_real(Function::imag, 3), 0);
}

TEST(ScalarValue, ComplexLogarithmAndExponentialAreExactNearTheirZeros) {
  const std::complex<double> tiny(1e-12, 2e-12);
  expect_close(value<std::complex<double>>(Function::log1p, DType::complex128, tiny),
               {1.0000000000015e-12, 1.999999999998e-12}, Function::log1p);
  expect_close(value<std::complex<double>>(Function::expm1, DType::complex128, tiny),
               {9.999999999985e-13, 2.000000000002e-12}, Function::expm1);
}

TEST(ScalarValue, SixteenBitFloatsHaveNeighboursOfTheirOwn) {
  const auto next = [](DType dtype, float x, float y) {
    return value<float>(Function::nextafter, dtype, x, y);
  };
  EXPECT_EQ(next(DType::float16, 0, 1), 0x1p-24f);
  EXPECT_EQ(next(DType::float16, 1, 2), 1 + 0x1p-10f);
  EXPECT_EQ(next(DType::float16, 1, 0), 1 - 0x1p-11f);
  EXPECT_EQ(next(DType::float16, -1, 0), -1 + 0x1p-11f);
  EXPECT_EQ(next(DType::float16, 65504, kInf), kInf);
  EXPECT_EQ(next(DType::bfloat16, 1, 2), 1 + 0x1p-7f);
  EXPECT_EQ(next(DType::bfloat16, 0, -1), -0x1p-133f);
  EXPECT_TRUE(same(next(DType::bfloat16, -0.0f, 0.0f), 0.0));
  EXPECT_TRUE(std::isnan(next(DType::float16, kNaN, 1)));
}

TEST(ScalarValue, BlocksOfAnyLengthAreElementwise) {
  for (size_t count = 0; count <= 70; ++count) {
    std::vector<float> x, y, sum(count + 1, -1);
    for (size_t i = 0; i < count; ++i) {
      x.push_back(static_cast<float>(i) + 0.25f);
      y.push_back(1 / x.back());
    }
    const void* arguments[] = {x.data(), y.data()};
    apply(Function::add, DType::float32, count, arguments, sum.data());
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(sum[i], x[i] + y[i]);
    EXPECT_EQ(sum[count], -1);
  }
}

// Whatever expressions can be made of has a value.
TEST(ScalarValue, EveryFunctionThatExpressionsMayCallExists) {
  size_t known = 0;
  for (size_t f = 0; f < static_cast<size_t>(Function::select); ++f)
    for (size_t d = 0; d < static_cast<size_t>(DType::count_); ++d) {
      const auto function = static_cast<Function>(f);
      const auto dtype = static_cast<DType>(d);
      if (!is_computable(dtype)) continue;
      const std::vector<Expr> arguments(info_of(function).arity, Expr::parameter(0, dtype));
      Expr call;
      try {
        call = Expr::call(function, arguments);
      } catch (const UserError&) {
        continue;
      }
      if (call.kind() != ExprKind::call || call.function() != function) continue;
      const std::complex<double> block[2] = {};
      const void* pointers[] = {block, block};
      std::complex<double> result;
      EXPECT_NO_THROW(apply(function, call[0].dtype(), 1, pointers, &result))
          << info_of(function).name << " of " << name(dtype);
      ++known;
    }
  EXPECT_GT(known, 700u);
}

TEST(ScalarValue, ConversionsAreTorchs) {
  const auto to = [](DType dtype, double x) {
    int64_t result = 0;
    apply_cast(DType::float64, dtype, 1, &x, &result);
    return result;
  };
  constexpr int64_t kLeast32 = std::numeric_limits<int32_t>::min();
  const struct {
    DType dtype;
    std::vector<int64_t> expected;
  } table[] = {
      {DType::uint8, {0, 0, 0, 0, 0, 44, 255, 0, 0, 0}},
      {DType::int8, {0, 0, 0, 0, 0, 44, -1, 0, 0, 0}},
      {DType::int16, {0, 0, 0, 0, 0, 300, -1, 0, 0, 0}},
      {DType::uint16, {0, 0, 0, 0, 0, 300, 65535, 0, 0, 0}},
      {DType::int32,
       {kLeast32, kLeast32, kLeast32, kLeast32, kLeast32, 300, -1, kLeast32, kLeast32, kLeast32}},
      {DType::uint32, {0, 0, 0, 0, 0, 300, 4294967295, 2147483648, 512, 0}},
      {DType::int64,
       {kLeast, kLeast, kLeast, kLeast, kLeast, 300, -1, 2147483648, 4294967808, kLeast}},
      {DType::uint64,
       {kLeast, 0, kLeast, 0, kLeast, 300, -1, 2147483648, 4294967808,
        static_cast<int64_t>(10000000000000000000u)}}};
  const double x[] = {kNaN, kInf, -kInf, 1e20, -1e20, 300.7, -1.5, 0x1p31, 0x1p32 + 512, 1e19};
  for (const auto& row : table)
    for (size_t i = 0; i < std::size(x); ++i)
      EXPECT_EQ(to(row.dtype, x[i]), row.expected[i]) << name(row.dtype) << " of " << x[i];
}

TEST(ScalarValue, ConversionsBetweenKinds) {
  EXPECT_TRUE(convert<bool>(kNaN));
  EXPECT_FALSE(convert<bool>(-0.0));
  EXPECT_TRUE(convert<bool>(std::complex<double>(0, 2)));
  EXPECT_EQ(convert<float>(std::complex<double>(1, 2)), 1);
  EXPECT_EQ(convert<int8_t>(int64_t{200}), -56);
  EXPECT_EQ(convert<double>(~uint64_t{0}), 0x1p64);
  EXPECT_EQ(to_compute(convert<ComplexHalf>(std::complex<double>(0.1, 1e6))),
            std::complex<float>(0.0999755859375f, INFINITY));
}

// Every finite half is exact, and what lies between two of them goes to the nearer, or to the even.
template <class S>
void check_rounding(uint16_t largest) {
  for (uint16_t bits = 0; bits < largest; ++bits) {
    S low, high;
    low.bits = bits;
    high.bits = static_cast<uint16_t>(bits + 1);
    const auto x = static_cast<float>(low), y = static_cast<float>(high),
               middle = std::midpoint(x, y);
    ASSERT_LT(x, y);
    ASSERT_EQ(S(x).bits, bits);
    ASSERT_EQ(S(-x).bits, bits | 0x8000);
    ASSERT_EQ(S(std::nextafter(middle, 0.0f)).bits, bits);
    ASSERT_EQ(S(std::nextafter(middle, INFINITY)).bits, bits + 1);
    ASSERT_EQ(S(middle).bits, bits % 2 == 0 ? bits : bits + 1);
  }
}

TEST(Half, RoundsToNearestTiesToEven) {
  check_rounding<Half>(0x7bff);
  check_rounding<BFloat16>(0x7f7f);
  EXPECT_EQ(Half(0.1f).bits, 0x2e66);
  EXPECT_EQ(Half(65519.996f).bits, 0x7bff);
  EXPECT_EQ(Half(65520).bits, 0x7c00);
  EXPECT_EQ(Half(-INFINITY).bits, 0xfc00);
  EXPECT_TRUE(std::isnan(static_cast<float>(Half(NAN))));
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(std::bit_cast<float>(0x7f800001)))));
  EXPECT_EQ(static_cast<float>(BFloat16(3.4e38f)), INFINITY);
}

}  // namespace
}  // namespace composit
