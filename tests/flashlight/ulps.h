// Distances in units of the last place.
//
//   EXPECT_LE(ulps(std::exp(x), std::exp(static_cast<double>(x))), 1);
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace flashlight::test {

// The unit of the last place of a T of about this size, as a power of 2: that of the smallest
// normal number, of the largest one at most.
template <class T, class Wide>
int last_place(Wide size) {
  int exponent;
  std::frexp(std::min<Wide>(std::abs(size), std::numeric_limits<T>::max()), &exponent);
  return std::max(exponent, std::numeric_limits<T>::min_exponent) - std::numeric_limits<T>::digits;
}

// The distance of `x` from `expected`, in units of the last place of a T; infinity where one of
// them is NaN, or has the other sign.
template <class T, class Wide>
double ulps(T x, Wide expected) {
  const T rounded = static_cast<T>(expected);
  if (std::isnan(expected)) return std::isnan(x) ? 0 : INFINITY;
  if (std::signbit(x) != std::signbit(rounded)) return INFINITY;
  if (x == rounded) return 0;
  const Wide finite =
      std::isinf(x) ? std::copysign(std::ldexp(Wide(1), std::numeric_limits<T>::max_exponent), x)
                    : Wide(x);
  return static_cast<double>(std::abs(std::ldexp(finite - expected, -last_place<T>(expected))));
}

// The largest so far, and where.
template <class T>
struct Worst {
  double error = 0;
  T at = 0;
  void see(T x, double now) {
    if (now > error || std::isnan(now)) *this = {now, x};
  }
};

}  // namespace flashlight::test
