// Divisors of whole numbers; fractions and exponents of real ones.
//
//   fl::gcd(x, y, divisors);   fl::frexp(x, fractions, exponents);
#pragma once

#include <numeric>

#include "flashlight/runtime/flashlight.hpp"

namespace fl {

template <class T, std::size_t kCount>
void gcd(const T (&x)[kCount], const T (&y)[kCount], T (&divisors)[kCount]) {
  for (std::size_t i = 0; i < kCount; ++i)
    divisors[i] = static_cast<T>(std::gcd(static_cast<int64_t>(x[i]), static_cast<int64_t>(y[i])));
}

// x = fraction * 2^exponent with a fraction in [0.5, 1); infinities and NaN are fractions.
template <class T, std::size_t kCount>
void frexp(const T (&x)[kCount], T (&fractions)[kCount], int32_t (&exponents)[kCount]) {
  for (std::size_t i = 0; i < kCount; ++i) {
    int exponent = 0;
    fractions[i] = static_cast<T>(std::frexp(x[i], &exponent));
    exponents[i] = std::isfinite(static_cast<float>(fractions[i])) ? exponent : 0;
  }
}

}  // namespace fl
