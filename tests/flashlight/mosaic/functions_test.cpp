// Elementary functions in the loops of generated code, by each set of instructions, against higher
// precision: over floats and doubles of all magnitudes, infinities, NaN and subnormal numbers.
//
// Tolerances are those that flashlight/runtime/functions.hpp states.
#include "composit/ops/functions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "composit/ops/native.h"
#include "tests/flashlight/mosaic/compare.h"
#include "tests/flashlight/ulps.h"

namespace flashlight::mosaic {
namespace {

using namespace composit;  // NOLINT

using flashlight::test::last_place;
using flashlight::test::ulps;
using flashlight::test::Worst;
using Wide = long double;

struct Function {
  const char* name;
  LazyTensor (*of)(const LazyTensor&);
  Wide (*exact)(Wide);
  double floats, doubles;  // most units in the last place
  // Units of the argument's last place: the function is nearer to 0 than that on one side.
  bool of_argument = false;
};

Wide gelu(Wide x) {
  return std::isinf(x) && x < 0 ? NAN : x * std::erfc(-x / std::sqrt(Wide(2))) / 2;
}
Wide silu(Wide x) { return x / (1 + std::exp(-x)); }

const Function kFunctions[] = {
    {"exp", exp, std::exp, 1.05, 1.15},
    {"expm1", expm1, std::expm1, 1.65, 2.35},
    {"log", log, std::log, 0.85, 0.85},
    {"log1p", log1p, std::log1p, 1.55, 1.55},
    {"tanh", tanh, std::tanh, 2.45, 2.55},
    {"erf", erf, std::erf, 1.85, 1.95},
    {"sin", sin, std::sin, 1.65, 1.05},
    {"cos", cos, std::cos, 1.65, 1.05},
    {"gelu", [](const LazyTensor& x) { return apply_one("aten::gelu", {x}); }, gelu, 1.35, 1.45,
     true},
    {"silu", [](const LazyTensor& x) { return apply_one("aten::silu", {x}); }, silu, 1.45, 1.55,
     true},
};

// Every so many floats, a number that is prime to powers of 2; every exponent.
std::vector<double> floats() {
  std::vector<double> all;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 16381) {
    const auto low = static_cast<uint32_t>(bits);
    float x;
    std::memcpy(&x, &low, sizeof x);
    all.push_back(static_cast<double>(x));
  }
  return all;
}
std::vector<double> doubles() {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> exponents(-1074, 1024), near(-8, 8);
  std::vector<double> all;
  for (int i = 0; i < 60'000; ++i) {
    all.push_back(std::copysign(std::exp2(exponents(random)), near(random)));
    all.push_back(near(random));
    all.push_back(near(random) * 100);
  }
  return all;
}

template <class T>
double error(const Function& function, T x, T y) {
  const Wide exact = function.exact(x);
  if (!function.of_argument || std::isnan(exact) || std::isinf(exact)) return ulps(y, exact);
  return static_cast<double>(std::abs(std::ldexp(Wide(y) - exact, -last_place<T>(Wide(x)))));
}

template <class T>
void expect_accurate(DType dtype, std::vector<double> numbers, const std::string& march) {
  for (const double special : {0.0, -0.0, HUGE_VAL, -HUGE_VAL, double{NAN}, 1.0, -1.0, 88.722839,
                               88.8, -103.9, -104.1, 709.7827, -745.13, 1e-310, 1.4e-45, -1.4e-45})
    numbers.push_back(special);
  const auto count = static_cast<int64_t>(numbers.size());
  const LazyTensor x = held_input("x", array_of(tensor_type(dtype, {count}), numbers));
  LazyTensors results;
  for (const Function& function : kFunctions) results.push_back(function.of(x));
  const test::Case one = test::case_of("functions", results);
  const std::vector<Array> values =
      test::compiled(one.graph, one.values, {}, 0, {"-march=" + march})(one.values);
  const auto given = elements<double>(one.values[0]);
  for (size_t f = 0; f < std::size(kFunctions); ++f) {
    const auto computed = elements<double>(values[f]);
    Worst<T> worst;
    for (size_t i = 0; i < given.size(); ++i)
      worst.see(static_cast<T>(given[i]),
                error(kFunctions[f], static_cast<T>(given[i]), static_cast<T>(computed[i])));
    EXPECT_LE(worst.error, sizeof(T) == 4 ? kFunctions[f].floats : kFunctions[f].doubles)
        << kFunctions[f].name << " at " << worst.at << ", " << march;
  }
}

class MosaicFunctions : public testing::TestWithParam<const char*> {};

TEST_P(MosaicFunctions, are_accurate) {
  if (!test::runs_here(GetParam()))
    GTEST_SKIP() << "this processor lacks instructions of " << GetParam();
  expect_accurate<float>(DType::float32, floats(), GetParam());
  expect_accurate<double>(DType::float64, doubles(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(March, MosaicFunctions, testing::Values("native", "x86-64-v3", "x86-64"));

}  // namespace
}  // namespace flashlight::mosaic
