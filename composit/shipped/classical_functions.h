// Bessel's and Airy's functions, what is made of the normal distribution, incomplete gammas and
// orthogonal polynomials, in double.
//
//   special_functions::log_ndtr(-1.0) == -1.8410216450092634
#pragma once

#include <cmath>
#include <cstdint>

#include "composit/shipped/special_series.h"

namespace special_functions {

inline constexpr double kInversePi = 0.318309886183790671538,
                        kInverseRootPi = 0.564189583547756286948, kRoot2 = 1.41421356237309504880,
                        kRoot2Pi = 2.50662827463100050242;

// ---- Bessel's functions -------------------------------------------------------------------------

inline double bessel_j0(double x) { return ::j0(x); }
inline double bessel_j1(double x) { return ::j1(x); }
inline double bessel_y0(double x) { return x < 0 ? kNaN : ::y0(x); }
inline double bessel_y1(double x) { return x < 0 ? kNaN : ::y1(x); }
// Greater than all doubles from 714 on, where the library throws; of infinity NaN, as torch.
inline double bessel_i(double order, double x) {
  if (!(x <= 714)) return kInfinity * (x / x);
  return std::cyl_bessel_i(order, x);
}
inline double i0(double x) { return bessel_i(0, std::abs(x)); }
inline double i1(double x) { return std::copysign(1, x) * bessel_i(1, std::abs(x)); }

// The sum of a_k / (sign x)^k of https://dlmf.nist.gov/10.40, for x >= kFar.
inline constexpr double kFar = 40;
inline double hankel_series(int order, double x, int sign) {
  double term = 1, sum = 1;
  for (int k = 1; k < 16; ++k)
    sum += term *= sign * (4 * order * order - (2 * k - 1) * (2 * k - 1)) / (8.0 * k) / x;
  return sum;
}
inline double far_growing(int order, double x) {
  return hankel_series(order, x, -1) / std::sqrt(x) / kRoot2Pi;
}
inline double far_falling(int order, double x) {
  return hankel_series(order, x, 1) / std::sqrt(x) * kRoot2Pi / 2;
}
// Scaled by exponentials, which overflow where the functions are far from it.
inline double i0e(double x) {
  const double size = std::abs(x);
  return size < kFar ? i0(x) * std::exp(-size) : far_growing(0, size);
}
inline double i1e(double x) {
  const double size = std::abs(x);
  return size < kFar ? i1(x) * std::exp(-size) : std::copysign(far_growing(1, size), x);
}
inline double k0(double x) { return x < 0 ? kNaN : x == 0 ? kInfinity : std::cyl_bessel_k(0, x); }
inline double k1(double x) { return x < 0 ? kNaN : x == 0 ? kInfinity : std::cyl_bessel_k(1, x); }
inline double scaled_k0(double x) { return x < kFar ? k0(x) * std::exp(x) : far_falling(0, x); }
inline double scaled_k1(double x) { return x < kFar ? k1(x) * std::exp(x) : far_falling(1, x); }
inline double spherical_j0(double x) {
  if (std::isinf(x)) return 0;
  return std::abs(x) < 0.5 ? std::sph_bessel(0, std::abs(x)) : std::sin(x) / x;
}

// By Bessel's functions of a third, https://dlmf.nist.gov/9.6.
inline double airy(double x) {
  if (std::isnan(x) || std::isinf(x)) return std::isnan(x) ? kNaN : x > 0 ? 0 : kNaN;
  const double size = std::abs(x), third = 1.0 / 3;
  const double angle = 2 * third * size * std::sqrt(size);
  if (size < 1e-12) return 0.355028053887817239260063186004;
  if (x > 0) return std::sqrt(size * third) * std::cyl_bessel_k(third, angle) * kInversePi;
  return std::sqrt(size) / 2 *
         (std::cyl_bessel_j(third, angle) - std::cyl_neumann(third, angle) / std::sqrt(3.0));
}

// ---- of the normal distribution -----------------------------------------------------------------

// exp(x^2) erfc(x); by its continued fraction where erfc is small.
inline double erfcx(double x) {
  if (x < 10) return std::exp(x * x) * std::erfc(x);
  double tail = x;
  for (int k = 60; k > 0; --k) tail = x + k / 2.0 / tail;
  return kInverseRootPi / tail;
}

inline double log_ndtr(double x) {
  const double t = x * kRoot2 / 2;
  return x < -1 ? std::log(erfcx(-t) / 2) - t * t : std::log1p(-std::erfc(t) / 2);
}

// Computed from the smaller tail, since one minus a small number loses digits, by Newton's steps in
// the tail's logarithm.
inline double ndtri(double p) {
  if (p < 0 || p > 1 || std::isnan(p)) return kNaN;
  if (p == 0 || p == 1) return p == 0 ? -kInfinity : kInfinity;
  if (p > 0.5) return -ndtri(1 - p);
  double x = p > 0.01 ? 0 : -std::sqrt(-2 * std::log(p));
  for (int step = 0; step < 100; ++step) {
    const double density = std::exp(-x * x / 2 - log_ndtr(x)) / kRoot2Pi;
    const double move = (log_ndtr(x) - std::log(p)) / density;
    x -= move;
    if (std::abs(move) < 1e-16 * std::abs(x)) break;
  }
  return x;
}

// ---- incomplete gammas --------------------------------------------------------------------------

// The share of gamma(a)'s integral up to x: by its series, or by its continued fraction beyond.
inline double upper_gamma_fraction(double a, double x) {
  double b = x + 1 - a, c = 1e300, d = 1 / b, product = d;
  for (int k = 1; k < 10000; ++k) {
    const double factor = -k * (k - a);
    b += 2;
    d = 1 / (factor * d + b);
    c = b + factor / c;
    product *= d * c;
    if (std::abs(d * c - 1) < 1e-16) break;
  }
  return product * std::exp(a * std::log(x) - x - std::lgamma(a));
}
inline double lower_gamma_series(double a, double x) {
  double term = 1 / a, total = term;
  for (int k = 1; k < 10000 && term > total * 1e-17; ++k) total += term *= x / (a + k);
  return total * std::exp(a * std::log(x) - x - std::lgamma(a));
}
inline double igamma(double a, double x) {
  if (std::isnan(a) || std::isnan(x) || a < 0 || x < 0 || (a == 0 && x == 0)) return kNaN;
  if (a == 0 || x == 0) return a == 0 ? 1 : 0;
  if (std::isinf(a) || std::isinf(x)) return std::isinf(a) ? (std::isinf(x) ? kNaN : 0) : 1;
  return x < a + 1 ? lower_gamma_series(a, x) : 1 - upper_gamma_fraction(a, x);
}
inline double igammac(double a, double x) {
  if (std::isnan(a) || std::isnan(x) || a < 0 || x < 0 || (a == 0 && x == 0)) return kNaN;
  if (a == 0 || x == 0) return a == 0 ? 0 : 1;
  if (std::isinf(a) || std::isinf(x)) return std::isinf(a) ? (std::isinf(x) ? kNaN : 1) : 0;
  return x < a + 1 ? 1 - lower_gamma_series(a, x) : upper_gamma_fraction(a, x);
}

// ---- polynomials --------------------------------------------------------------------------------

// p(0) = 1, p(1) = a x + b and p(k + 1) from the two before; 0 for a degree below 0.
template <class Next>
double recurrence(double x, double degree, double first, Next next) {
  const auto n = static_cast<int64_t>(degree);
  if (n < 0) return 0;
  double before = 1, here = first;
  if (n == 0) return before;
  for (int64_t k = 1; k < n && !std::isnan(here); ++k) {
    const double after = next(static_cast<double>(k), x, here, before);
    before = here;
    here = after;
  }
  return here;
}
inline double chebyshev(double x, double n, double first) {
  return recurrence(x, n, first,
                    [](double, double z, double p, double q) { return 2 * z * p - q; });
}
inline double chebyshev_t(double x, double n) { return chebyshev(x, n, x); }
inline double chebyshev_u(double x, double n) { return chebyshev(x, n, 2 * x); }
inline double chebyshev_v(double x, double n) { return chebyshev(x, n, 2 * x - 1); }
inline double chebyshev_w(double x, double n) { return chebyshev(x, n, 2 * x + 1); }
inline double shifted_t(double x, double n) { return chebyshev_t(2 * x - 1, n); }
inline double shifted_u(double x, double n) { return chebyshev_u(2 * x - 1, n); }
inline double shifted_v(double x, double n) { return chebyshev_v(2 * x - 1, n); }
inline double shifted_w(double x, double n) { return chebyshev_w(2 * x - 1, n); }
inline double hermite_h(double x, double n) {
  return recurrence(x, n, 2 * x,
                    [](double k, double z, double p, double q) { return 2 * z * p - 2 * k * q; });
}
inline double hermite_he(double x, double n) {
  return recurrence(x, n, x, [](double k, double z, double p, double q) { return z * p - k * q; });
}
inline double laguerre_l(double x, double n) {
  return recurrence(x, n, 1 - x, [](double k, double z, double p, double q) {
    return ((2 * k + 1 - z) * p - k * q) / (k + 1);
  });
}
inline double legendre_p(double x, double n) {
  return recurrence(x, n, x, [](double k, double z, double p, double q) {
    return ((2 * k + 1) * z * p - k * q) / (k + 1);
  });
}

}  // namespace special_functions
