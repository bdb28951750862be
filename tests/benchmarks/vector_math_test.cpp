#include "benchmarks/cpp/vector_math.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace vector_math {
namespace {

// In units in the last place of a float near `exact`.
double error(float ours, double exact) {
  const auto size = static_cast<float>(std::abs(exact));
  const float unit = std::nextafter(size, std::numeric_limits<float>::infinity()) - size;
  return std::abs(ours - exact) / unit;
}

// Numbers of all sizes and signs.
template <class Visit>
void for_floats(const Visit& visit) {
  constexpr uint32_t kStep = 9973;
  for (uint64_t bits = 0; bits <= std::numeric_limits<uint32_t>::max(); bits += kStep)
    if (const auto x = std::bit_cast<float>(static_cast<uint32_t>(bits)); !std::isnan(x)) visit(x);
}

TEST(VectorMath, IsRightToFewUnits) {
  double of_exp = 0, of_erf = 0;
  for_floats([&](float x) {
    of_erf = std::max(of_erf, error(erf(x), std::erf(double{x})));
    if (x > -87.3F && x < 88.7F) of_exp = std::max(of_exp, error(exp(x), std::exp(double{x})));
  });
  EXPECT_LE(of_exp, 1.5);
  EXPECT_LE(of_erf, 2.5);
}

TEST(VectorMath, HasItsLimits) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(exp(-kInfinity), 0);
  EXPECT_EQ(exp(-87.4F), 0);
  EXPECT_EQ(exp(88.73F), kInfinity);
  EXPECT_EQ(erf(kInfinity), 1);
  EXPECT_EQ(erf(-kInfinity), -1);
  EXPECT_TRUE(std::signbit(erf(-0.0F)));
  EXPECT_TRUE(std::isnan(exp(std::nanf(""))));
  EXPECT_TRUE(std::isnan(erf(std::nanf(""))));
}

}  // namespace
}  // namespace vector_math
