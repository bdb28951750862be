// The header that generated code includes: functions against the same in higher precision. What
// composit computes with, too (composit/shipped), tests/op has tests of.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "flashlight/runtime/arena.hpp"
#include "flashlight/runtime/flashlight.hpp"
#include "tests/flashlight/ulps.h"

namespace {

using flashlight::test::ulps;
using flashlight::test::Worst;

constexpr double kSpecial[] = {
    0,       -0.0,   INFINITY,          -INFINITY, NAN,     1,      -1,
    0.5,     2,      88.72283905206835, 88.8,      -103.9,  -104.1, 709.782712893384,
    709.8,   -708.5, -745.13,           -745.2,    1e300,   -1e300, 5e-324,
    -5e-324, 1e-310, 2.3e-308,          1.4e-45,   -1.4e-45};

// Every `kStep`-th float, which are prime to powers of two, and special values.
template <class F, class G>
Worst<float> worst_of_floats(F f, G exact) {
  constexpr uint32_t kStep = 1021;
  Worst<float> worst;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += kStep) {
    const auto x = fl::detail::bit_cast<float>(static_cast<uint32_t>(bits));
    worst.see(x, ulps(f(x), exact(static_cast<double>(x))));
  }
  for (const double special : kSpecial) {
    const auto x = static_cast<float>(special);
    worst.see(x, ulps(f(x), exact(static_cast<double>(x))));
  }
  return worst;
}

// Numbers of all magnitudes, and in [-8, 8].
template <class F, class G>
Worst<double> worst_of_doubles(F f, G exact) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> exponents(-1074, 1024), near(-8, 8);
  Worst<double> worst;
  const auto see = [&](double x) { worst.see(x, ulps(f(x), exact(static_cast<long double>(x)))); };
  for (int i = 0; i < 300'000; ++i) {
    see(std::copysign(std::exp2(exponents(random)), near(random)));
    see(near(random));
    see(near(random) * 100);
  }
  for (const double special : kSpecial) see(special);
  return worst;
}

#define EXPECT_ACCURATE(function, of_float, of_double)                                      \
  do {                                                                                      \
    const auto exact = [](auto x) { return std::function(x); };                             \
    const auto floats = worst_of_floats([](float x) { return fl::function(x); }, exact);    \
    const auto doubles = worst_of_doubles([](double x) { return fl::function(x); }, exact); \
    EXPECT_LE(floats.error, of_float) << "at " << floats.at;                                \
    EXPECT_LE(doubles.error, of_double) << "at " << doubles.at;                             \
  } while (false)

// ---- memory -------------------------------------------------------------------------------------

// Fills what it takes, calls itself, and finds its own numbers again.
void fill(fl::Stack& memory, int depth) {
  fl::Frame frame(memory);
  const int64_t count = 1 + depth * 997 % 50000;
  int* const numbers = frame.take<int>(count);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(numbers) % 64, 0U);
  for (int64_t i = 0; i < count; ++i) numbers[i] = depth;
  if (depth > 0) fill(memory, depth - 1);
  float(*const rows)[3] = frame.take<float[3]>(2);
  rows[1][2] = 7;
  for (int64_t i = 0; i < count; ++i) ASSERT_EQ(numbers[i], depth) << i;
}

TEST(RuntimeStack, FramesDoNotMeet) {
  fl::Stack memory;
  for (const int depth : {0, 3, 80, 5, 80}) fill(memory, depth);
}

TEST(RuntimeStack, MemoryIsUsedAgain) {
  fl::Stack memory;
  const auto take = [&] {
    fl::Frame frame(memory);
    frame.take<char>(100000);
    return frame.take<char>(300000);
  };
  take();
  const char* const place = take();  // in one block, now that its size is known
  for (int i = 0; i < 3; ++i) EXPECT_EQ(take(), place);
}

TEST(RuntimeView, IndexesRowMajor) {
  std::vector<float> numbers(2 * 3 * 5 * 7);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  const fl::View<const float, 4> view = fl::view(numbers.data(), 2, 3, 5, 7);
  EXPECT_EQ(view[1][2][3][4], ((1 * 3 + 2) * 5 + 3) * 7 + 4);
  EXPECT_EQ(&view[0][1][0][0], numbers.data() + 35);
  EXPECT_EQ(view[1].sizes[1], 5);
  fl::Stack memory;
  fl::Frame frame(memory);
  const fl::View<float, 2> own = frame.view<float>(3, 4);
  own[2][3] = 1;
  EXPECT_EQ(own.data[11], 1);
}

TEST(RuntimeFunctions, Exp) { EXPECT_ACCURATE(exp, 1.05, 1.15); }
TEST(RuntimeFunctions, Expm1) { EXPECT_ACCURATE(expm1, 1.65, 2.35); }
TEST(RuntimeFunctions, Log) { EXPECT_ACCURATE(log, 0.85, 0.85); }
TEST(RuntimeFunctions, Log1p) { EXPECT_ACCURATE(log1p, 1.55, 1.55); }
TEST(RuntimeFunctions, Tanh) { EXPECT_ACCURATE(tanh, 2.45, 2.55); }
TEST(RuntimeFunctions, Erf) { EXPECT_ACCURATE(erf, 1.85, 1.95); }

TEST(RuntimeFunctions, Sin) { EXPECT_ACCURATE(sin, 1.65, 1.05); }
TEST(RuntimeFunctions, Cos) { EXPECT_ACCURATE(cos, 1.65, 1.05); }

TEST(RuntimeFunctions, Pow) {
  std::vector<float> values = {3, -3, 1e30F, -1e30F, 16777216, 8388607, 1.0000001F, 0.99999994F};
  for (const double special : kSpecial) values.push_back(static_cast<float>(special));
  double worst = 0;
  for (const float x : values)
    for (const float y : values) {
      const double error = ulps(fl::pow(x, y), std::pow(double{x}, double{y}));
      EXPECT_LE(error, 1) << x << " to the power of " << y;
    }
  std::mt19937 random(7);
  std::uniform_real_distribution<float> exponents(-30, 30), powers(-20, 20);
  for (int i = 0; i < 300'000; ++i) {
    const float x = std::exp2(exponents(random)), y = powers(random);
    worst = std::max(worst, ulps(fl::pow(x, y), std::pow(double{x}, double{y})));
    worst = std::max(worst, ulps(fl::pow(-x, std::round(y)), std::pow(-double{x}, std::round(y))));
  }
  EXPECT_LE(worst, 0.51);
}

// ---- 16-bit floats ------------------------------------------------------------------------------

template <class T>
void expect_neighbours() {
  T previous = T(-INFINITY);
  for (T x = fl::nextafter(previous, T(INFINITY)); float{x} < INFINITY;) {
    const T back = fl::nextafter(x, T(-INFINITY)), next = fl::nextafter(x, T(INFINITY));
    ASSERT_LT(float{x}, float{next});
    if (float{x} != 0) {
      ASSERT_EQ(float{back}, float{previous});
    }
    previous = x;
    x = next;
  }
  EXPECT_EQ(fl::nextafter(T(0), T(-0.0F)).bits, 0x8000);
  EXPECT_TRUE(std::isnan(float{fl::nextafter(T(NAN), T(1))}));
}
TEST(RuntimeHalves, HaveNeighbours) {
  expect_neighbours<fl::float16>();
  expect_neighbours<fl::bfloat16>();
}

// ---- integers -----------------------------------------------------------------------------------

// A whole number as T, modulo 2^64.
template <class T>
T wrapped(long double x) {
  return x < 0 ? static_cast<T>(static_cast<int64_t>(x)) : static_cast<T>(static_cast<uint64_t>(x));
}

// In long double, which holds 64 bits, remainders are exact, and so are then quotients.
template <class T>
void expect_exact_divisions() {
  using Limits = std::numeric_limits<T>;
  const T values[] = {T(0),  T(1),          T(2),
                      T(3),  T(7),          static_cast<T>(-1),
                      T(64), T(63),         static_cast<T>(-2),
                      T(-7), Limits::max(), static_cast<T>(Limits::max() - T(1)),
                      T(5),  Limits::min()};
  for (const T x : values)
    for (const T y : values) {
      SCOPED_TRACE(std::to_string(x) + ", " + std::to_string(y));
      if (y == T(0)) {
        EXPECT_THROW(fl::floor_divide(x, y), std::domain_error);
        EXPECT_THROW(fl::trunc_divide(x, y), std::domain_error);
        EXPECT_THROW(fl::remainder(x, y), std::domain_error);
        EXPECT_THROW(fl::fmod(x, y), std::domain_error);
        continue;
      }
      const long double a = x, b = y, rest = std::fmod(a, b), quotient = (a - rest) / b;
      const bool below = rest != 0 && (rest < 0) != (b < 0);
      EXPECT_EQ(fl::trunc_divide(x, y), wrapped<T>(quotient));
      EXPECT_EQ(fl::fmod(x, y), wrapped<T>(rest));
      EXPECT_EQ(fl::floor_divide(x, y), wrapped<T>(quotient - below));
      EXPECT_EQ(fl::remainder(x, y), wrapped<T>(below ? rest + b : rest));
    }
}
TEST(RuntimeIntegers, AreDividedExactly) {
  expect_exact_divisions<int64_t>();
  expect_exact_divisions<uint64_t>();
}

TEST(RuntimeIntegers, AreTruncatedLikeConversionsOfTheProcessor) {
  EXPECT_EQ(fl::truncated<int64_t>(-1.9), -1);
  EXPECT_EQ(fl::truncated<int64_t>(NAN), INT64_MIN);
  EXPECT_EQ(fl::truncated<int64_t>(0x1p63), INT64_MIN);
  EXPECT_EQ(fl::truncated<int32_t>(3e9), INT32_MIN);
  EXPECT_EQ(fl::truncated<int8_t>(300.7), 44);
  // Of floats as of doubles, of every size and sign.
  for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 40'503) {
    const auto x = fl::detail::bit_cast<float>(static_cast<uint32_t>(bits));
    const double wide = x;
    ASSERT_EQ(fl::truncated<int8_t>(x), fl::truncated<int8_t>(wide)) << x;
    ASSERT_EQ(fl::truncated<uint8_t>(x), fl::truncated<uint8_t>(wide)) << x;
    ASSERT_EQ(fl::truncated<int16_t>(x), fl::truncated<int16_t>(wide)) << x;
    ASSERT_EQ(fl::truncated<int32_t>(x), fl::truncated<int32_t>(wide)) << x;
    ASSERT_EQ(fl::truncated<uint32_t>(x), fl::truncated<uint32_t>(wide)) << x;
    ASSERT_EQ(fl::truncated<int64_t>(x), fl::truncated<int64_t>(wide)) << x;
    ASSERT_EQ(fl::truncated<uint64_t>(x), fl::truncated<uint64_t>(wide)) << x;
  }
  EXPECT_EQ(fl::truncated<int32_t>(-0x1p31f), INT32_MIN);
  EXPECT_EQ(fl::truncated<int32_t>(std::nextafter(-0x1p31f, -INFINITY)), INT32_MIN);
  EXPECT_EQ(fl::truncated<int32_t>(std::nextafter(0x1p31f, 0.0f)), 2147483520);
  EXPECT_EQ(fl::truncated<uint64_t>(0x1.8p63), uint64_t{3} << 62);
}

}  // namespace
