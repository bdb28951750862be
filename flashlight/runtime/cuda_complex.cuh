// Complex numbers of kernels: std::complex has no functions for a device.
//
//   fl::complex<float> z(1, 2);   fl::abs<fl::complex<float>>(fl::exp<fl::complex<float>>(z));
//
// Two numbers side by side, as in C, std::complex and LibTorch. A product is torch's, without the
// special cases of C's annex G; other functions have the branch cuts of C's.
#pragma once

#include <type_traits>

#include "composit/shipped/half_types.h"

namespace fl {

template <class T>
struct alignas(2 * sizeof(T)) complex {  // one access to memory
  using Part = T;

  complex() = default;  // shared memory is not initialised
  FLASHLIGHT_EVERYWHERE constexpr complex(T real, T imag = 0) : re(real), im(imag) {}
  template <class From>
  FLASHLIGHT_EVERYWHERE constexpr explicit complex(complex<From> z)
      : re(static_cast<T>(z.re)), im(static_cast<T>(z.im)) {}

  FLASHLIGHT_EVERYWHERE friend constexpr complex operator-(complex z) { return {-z.re, -z.im}; }
  FLASHLIGHT_EVERYWHERE friend constexpr complex operator+(complex x, complex y) {
    return {x.re + y.re, x.im + y.im};
  }
  FLASHLIGHT_EVERYWHERE friend constexpr complex operator-(complex x, complex y) {
    return {x.re - y.re, x.im - y.im};
  }
  FLASHLIGHT_EVERYWHERE friend constexpr complex operator*(complex x, complex y) {
    return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
  }
  // The larger part of y is scaled to 1: y * conj(y) would overflow early (Smith 1962).
  FLASHLIGHT_EVERYWHERE friend constexpr complex operator/(complex x, complex y) {
    const bool real = (y.re < 0 ? -y.re : y.re) >= (y.im < 0 ? -y.im : y.im);
    if (real && y.re == 0) return {x.re / y.re, x.im / y.re};
    const T ratio = real ? y.im / y.re : y.re / y.im;
    const T scale = real ? y.re + y.im * ratio : y.re * ratio + y.im;
    return real ? complex{(x.re + x.im * ratio) / scale, (x.im - x.re * ratio) / scale}
                : complex{(x.re * ratio + x.im) / scale, (x.im * ratio - x.re) / scale};
  }
  FLASHLIGHT_EVERYWHERE friend constexpr bool operator==(complex x, complex y) {
    return x.re == y.re && x.im == y.im;
  }
  FLASHLIGHT_EVERYWHERE friend constexpr bool operator!=(complex x, complex y) { return !(x == y); }
  FLASHLIGHT_EVERYWHERE constexpr complex& operator+=(complex y) { return *this = *this + y; }

  T re, im;
};

template <class C>
using Complex = std::enable_if_t<is_complex<C>::value, C>;
template <class C>
using Part = typename Complex<C>::Part;

// ---- parts --------------------------------------------------------------------------------------

template <class C>
FLASHLIGHT_DEVICE Part<C> real(C z) {
  return z.re;
}
template <class C>
FLASHLIGHT_DEVICE Part<C> imag(C z) {
  return z.im;
}
template <class C>
FLASHLIGHT_DEVICE Complex<C> conj(C z) {
  return {z.re, -z.im};
}
// Real numbers have no other part.
template <class T>
FLASHLIGHT_DEVICE NotComplex<T> real(T x) {
  return x;
}
template <class T>
FLASHLIGHT_DEVICE NotComplex<T> imag(T) {
  return 0;
}
template <class T>
FLASHLIGHT_DEVICE NotComplex<T> conj(T x) {
  return x;
}
template <class C>
FLASHLIGHT_DEVICE Part<C> abs(C z) {
  return hypot(z.re, z.im);
}
namespace detail {
// i z, -i z: the circular functions are the hyperbolic ones there.
template <class C>
FLASHLIGHT_DEVICE C times_i(C z) {
  return {-z.im, z.re};
}
template <class C>
FLASHLIGHT_DEVICE C by_i(C z) {
  return {z.im, -z.re};
}
// x y, where a factor that is 0 makes 0 of infinity and of NaN, too.
template <class T>
FLASHLIGHT_DEVICE T scaled(T x, T y) {
  return y == 0 ? y : x == 0 ? x : x * y;
}
// log |x + i y|, also where the size is larger than any number.
template <class T>
FLASHLIGHT_DEVICE T log_size(T x, T y) {
  constexpr T kLog2 = T(0.693147180559945309417);
  const T size = hypot(x, y);
  return size <= kMax<T> ? log(size) : log(hypot(x / 2, y / 2)) + kLog2;
}
// True where z^2 + 1 is z^2, up to infinity: inverse functions are logarithms of 2 z there.
template <class C>
FLASHLIGHT_DEVICE bool is_large(C z) {
  return hypot(z.re, z.im) > (sizeof(z.re) == 4 ? Part<C>(1e9) : Part<C>(1e17));
}
template <class C>
FLASHLIGHT_DEVICE Part<C> log_of_twice(C z) {
  return log_size(z.re, z.im) + Part<C>(0.693147180559945309417);
}
}  // namespace detail

// ---- functions ----------------------------------------------------------------------------------

template <class C>
FLASHLIGHT_DEVICE Complex<C> exp(C z) {
  const auto growth = exp(z.re);
  return {detail::scaled(growth, cos(z.im)), detail::scaled(growth, sin(z.im))};
}
template <class C>
FLASHLIGHT_DEVICE Complex<C> expm1(C z) {  // cos(b) = 1 - 2 sin(b / 2)^2
  const auto sine = sin(z.im / 2), growth = expm1(z.re);
  return {growth * cos(z.im) - 2 * sine * sine, (growth + 1) * sin(z.im)};
}
template <class C>
FLASHLIGHT_DEVICE Complex<C> log1p(C z) {  // |1 + z|^2 = 1 + a (2 + a) + b^2
  const auto a = z.re, b = z.im;
  const bool small = a < Part<C>(0.5) && a > Part<C>(-0.5) && b < Part<C>(0.5) && b > Part<C>(-0.5);
  return {small ? log1p(a * (2 + a) + b * b) / 2 : log(hypot(1 + a, b)), atan2(b, 1 + a)};
}
template <class C>
FLASHLIGHT_DEVICE Complex<C> log(C z) {
  const auto size = hypot(z.re, z.im);
  const bool near_1 = size > Part<C>(0.5) && size < 2;  // where a logarithm is 0
  const auto large = max(abs(z.re), abs(z.im)), small = min(abs(z.re), abs(z.im));
  return {near_1 ? log1p((large - 1) * (large + 1) + small * small) / 2
                 : detail::log_size(z.re, z.im),
          atan2(z.im, z.re)};
}
template <class C>
FLASHLIGHT_DEVICE Complex<C> log2(C z) {
  const C natural = log(z);
  return {natural.re / Part<C>(0.693147180559945309417), natural.im / Part<C>(0.693147180559945309417)};
}
template <class C>
FLASHLIGHT_DEVICE Complex<C> log10(C z) {
  const C natural = log(z);
  return {natural.re / Part<C>(2.302585092994045684018), natural.im / Part<C>(2.302585092994045684018)};
}
template <class C>
FLASHLIGHT_DEVICE Complex<C> exp2(C z) {
  return exp(C(z.re * Part<C>(0.693147180559945309417), z.im * Part<C>(0.693147180559945309417)));
}
// No part of a sum of squares cancels. Large numbers are divided by 16, so that the sum is one.
template <class C>
FLASHLIGHT_DEVICE Complex<C> sqrt(C z) {
  constexpr Part<C> kMost = kMax<Part<C>>;
  if (z.re == 0 && z.im == 0) return {0, z.im};
  if (abs(z.im) > kMost) return {abs(z.im), z.im};
  const bool is_large = abs(z.re) > kMost / 4 || abs(z.im) > kMost / 4;
  const Part<C> scale = is_large ? 4 : 1;
  if (is_large) z = C(z.re / 16, z.im / 16);
  const Part<C> half = sqrt((abs(z.re) + hypot(z.re, z.im)) / 2);
  if (z.re >= 0) return {scale * half, scale * (z.im / (2 * half))};
  return {scale * (abs(z.im) / (2 * half)), copysign(scale * half, z.im)};
}
template <class C>
FLASHLIGHT_DEVICE Complex<C> rsqrt(C z) {
  return C(1) / sqrt(z);
}

template <class C>
FLASHLIGHT_DEVICE Complex<C> sinh(C z) {
  return {detail::scaled(sinh(z.re), cos(z.im)), detail::scaled(cosh(z.re), sin(z.im))};
}
template <class C>
FLASHLIGHT_DEVICE Complex<C> cosh(C z) {
  return {detail::scaled(cosh(z.re), cos(z.im)), detail::scaled(sinh(z.re), sin(z.im))};
}
// (sinh 2a + i sin 2b) / (cosh 2a + cos 2b), in terms that do not overflow.
template <class C>
FLASHLIGHT_DEVICE Complex<C> tanh(C z) {
  const Part<C> e = exp(-2 * abs(z.re)), sine = sin(z.im), cosine = cos(z.im);
  const Part<C> rest = expm1(-2 * abs(z.re));  // e - 1
  const Part<C> scale = rest * rest + 4 * e * cosine * cosine;
  if (e == 0) return {copysign(Part<C>(1), z.re), copysign(Part<C>(0), sine * cosine)};
  return {z.re == 0 ? z.re : copysign(-rest * (1 + e) / scale, z.re),
          4 * e * sine * cosine / scale};
}
template <class C>
FLASHLIGHT_DEVICE Complex<C> sin(C z) {
  return detail::by_i(sinh(detail::times_i(z)));
}
template <class C>
FLASHLIGHT_DEVICE Complex<C> cos(C z) {
  return cosh(detail::times_i(z));
}
template <class C>
FLASHLIGHT_DEVICE Complex<C> tan(C z) {
  return detail::by_i(tanh(detail::times_i(z)));
}

// The inverse functions by square roots of 1 + z and 1 - z (Kahan 1987).
template <class C>
FLASHLIGHT_DEVICE Complex<C> asin(C z) {
  if (detail::is_large(z))
    return {copysign(atan2(abs(z.re), abs(z.im)), z.re),
            copysign(detail::log_of_twice(z), z.im)};
  const C below = sqrt(C(1 - z.re, -z.im)), above = sqrt(C(1 + z.re, z.im));
  return {atan2(z.re, below.re * above.re - below.im * above.im),
          asinh(below.re * above.im - below.im * above.re)};
}
template <class C>
FLASHLIGHT_DEVICE Complex<C> acos(C z) {
  if (detail::is_large(z))
    return {atan2(abs(z.im), z.re), -copysign(detail::log_of_twice(z), z.im)};
  const C below = sqrt(C(1 - z.re, -z.im)), above = sqrt(C(1 + z.re, z.im));
  return {2 * atan2(below.re, above.re), asinh(above.re * below.im - above.im * below.re)};
}
template <class C>
FLASHLIGHT_DEVICE Complex<C> acosh(C z) {
  if (detail::is_large(z))
    return {detail::log_of_twice(z), copysign(atan2(abs(z.im), z.re), z.im)};
  const C below = sqrt(C(z.re - 1, z.im)), above = sqrt(C(z.re + 1, z.im));
  return {asinh(below.re * above.re + below.im * above.im), 2 * atan2(below.im, above.re)};
}
template <class C>
FLASHLIGHT_DEVICE Complex<C> asinh(C z) {
  return detail::by_i(asin(detail::times_i(z)));
}
template <class C>
FLASHLIGHT_DEVICE Complex<C> atanh(C z) {
  const auto x = z.re, y = z.im;
  if (detail::is_large(z)) {  // 1 / z and a quarter of a turn
    const Part<C> size = hypot(x, y), turn = copysign(Part<C>(1.570796326794896619231), y);
    return {size > kMax<Part<C>> ? copysign(Part<C>(0), x) : x / size / size, isnan(y) ? y : turn};
  }
  return {log1p(4 * x / ((1 - x) * (1 - x) + y * y)) / 4,
          atan2(2 * y, (1 - x) * (1 + x) - y * y) / 2};
}
template <class C>
FLASHLIGHT_DEVICE Complex<C> atan(C z) {
  return detail::by_i(atanh(detail::times_i(z)));
}
template <class C>
FLASHLIGHT_DEVICE Complex<C> pow(C x, C y) {
  return exp(y * log(x));
}

}  // namespace fl
