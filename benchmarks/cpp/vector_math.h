// exp and erf of float without branches and calls, so that a compiler makes vector instructions of
// a loop around them, which it does not of the standard library's.
//
//   for (int64_t i = 0; i < n; ++i) y[i] = vector_math::erf(x[i]);
//
// Wrong by at most 1 (exp) and 2.5 (erf) units in the last place. The polynomials are minimax
// fits to the functions in the intervals named, by iteratively weighted least squares in float64.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace vector_math {

// first + x (second + x (...)).
template <class... Coefficients>
float polynomial(float x, float first, Coefficients... rest) {
  if constexpr (sizeof...(rest) == 0)
    return first;
  else
    return first + x * polynomial(x, rest...);
}

inline float power_of_2(int32_t n) {
  return std::bit_cast<float>(static_cast<uint32_t>(n + 127) << 23);
}

// 0 where the result would be below the normal numbers.
inline float exp(float x) {
  constexpr float kLeast = -87.33654F, kMost = 88.72284F, kRounder = 0x1.8p23F;
  const float inside = x < kLeast ? kLeast : x > kMost ? kMost : x;
  const float shifted = inside * 1.44269504F + kRounder;  // its last bits are a whole number: n
  const float n = shifted - kRounder;
  const float r = (inside - n * 0.693359375F) + n * 2.12194440e-4F;  // |r| <= log(2) / 2
  const float p =
      polynomial(r, 1, 1, 0.49999992F, 0.1666642F, 0.041668228F, 0.0083748459F, 0.0013836802F);
  const auto whole =
      static_cast<int32_t>(std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(kRounder));
  const int32_t half = whole >> 1;  // 2^n in two factors: n may be 128
  const float result = p * power_of_2(half) * power_of_2(whole - half);
  return x < kLeast ? 0 : x > kMost ? std::numeric_limits<float>::infinity() : result;
}

inline float erf(float x) {
  constexpr float kNear = 0.92F, kOne = 3.92F;  // erf(3.92) rounds to 1
  const float size = std::abs(x), a = size > kOne ? kOne : size, u = a * a;
  const float near = a * polynomial(u, 1.12837915F, -0.376124965F, 0.112818459F, -0.0267677194F,
                                    0.00499482958F, -0.00059994025F);
  const float far = polynomial(a, -0.000174685167F, 1.12951493F, 0.633346898F, 0.10828010F,
                               -0.0251194338F, 0.00417106561F, -0.000434463181F, 2.10950952e-05F);
  return std::copysign(a < kNear ? near : 1 - exp(-far), x);  // far: -log(1 - erf(a))
}

}  // namespace vector_math
