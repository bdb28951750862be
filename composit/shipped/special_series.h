// Digamma, polygamma, zeta and the inverse of erf, which the C++ standard library has not.
//
//   special_functions::digamma(1.0) == -0.5772156649015329
//   special_functions::zeta(2.0, 1.0) == pi * pi / 6
//
// Accurate to a few units in the last place of a double, near a zero of digamma or of zeta to as
// much of the largest term: they are evaluated in long double. At poles and outside of the domain
// they give what torch gives, where that is the limit.
#pragma once

#include <cmath>
#include <limits>

namespace special_functions {

using Real = long double;
inline constexpr Real kPi = 3.14159265358979323846264338327950288L;
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// B_2, B_4, … (NIST Digital Library of Mathematical Functions, table 24.2.3).
inline constexpr Real kBernoulli[] = {1.0L / 6,         -1.0L / 30,      1.0L / 42,
                                      -1.0L / 30,       5.0L / 66,       -691.0L / 2730,
                                      7.0L / 6,         -3617.0L / 510,  43867.0L / 798,
                                      -174611.0L / 330, 854513.0L / 138, -236364091.0L / 2730};

// From here on asymptotic series with these terms reach the precision of long double.
inline constexpr Real kLarge = 20;

// S. Winitzki, "A handy approximation for the error function and its inverse" (2008), formula 7:
// within 0.2 % for 0 <= x < 1.
inline Real rough_erfinv(Real x) {
  constexpr Real a = 0.147L;
  const Real log = std::log1p(-x * x), b = 2 / (kPi * a) + log / 2;
  return std::sqrt(std::sqrt(b * b - log / a) - b);
}

// Abramowitz & Stegun 6.3.18, for x >= kLarge.
inline Real asymptotic_digamma(Real x) {
  Real sum = std::log(x) - 0.5L / x, power = 1;
  int k = 1;
  for (const Real bernoulli : kBernoulli) {
    power /= x * x;
    sum -= bernoulli * power / static_cast<Real>(2 * k++);
  }
  return sum;
}

// The sum from the term w^-s on, w >= kLarge: Euler-Maclaurin, DLMF 25.11.28.
inline Real zeta_tail(Real s, Real w) {
  const Real first = std::pow(w, -s);
  Real sum = first * w / (s - 1) + first / 2, factor = first * s / (2 * w);
  int k = 1;
  for (const Real bernoulli : kBernoulli) {
    sum += bernoulli * factor;
    factor *= (s + static_cast<Real>(2 * k - 1)) / (w * static_cast<Real>(2 * k + 1)) *
              ((s + static_cast<Real>(2 * k)) / (w * static_cast<Real>(2 * k + 2)));
    ++k;
  }
  return sum;
}

inline Real zeta_sum(Real s, Real q) {
  Real sum = 0;
  for (int terms = 0; q < kLarge || terms < 9; ++terms, q += 1) {
    const Real term = std::pow(q, -s);
    sum += term;
    if (q > 1 && term <= sum * std::numeric_limits<Real>::epsilon() / 64) return sum;
  }
  return sum + zeta_tail(s, q);
}

// Terms of a large negative q, with an integer s: those below zero are the difference of two sums
// above it, so that no q takes more time than others.
inline Real zeta_of_negative(Real s, Real q) {
  const Real above = q - std::floor(q), below = 1 - above;
  const Real sum = zeta_sum(s, below) - zeta_sum(s, 1 - q);
  return zeta_sum(s, above) + (std::fmod(s, 2.0L) == 0 ? sum : -sum);
}

inline Real any_zeta_sum(Real s, Real q) {
  return q < -kLarge ? zeta_of_negative(s, q) : zeta_sum(s, q);
}

// The y with erf(y) = x; infinite at -1 and 1, NaN outside.
inline double erfinv(double x) {
  const Real target = std::abs(x);
  if (!(target < 1)) return target == 1 ? std::copysign(kInfinity, x) : kNaN;
  Real y = rough_erfinv(target);
  for (int step = 0; step < 4; ++step) {  // Halley's method: each triples the digits
    const Real error = target < 0.5L ? std::erf(y) - target : (1 - target) - std::erfc(y);
    const Real newton = error * std::sqrt(kPi) / 2 * std::exp(y * y);
    y -= newton / (1 + y * newton);
  }
  return std::copysign(static_cast<double>(y), x);
}

// The derivative of ln(gamma(x)). At 0 an infinity with the sign opposite to zero's; NaN at the
// other poles -1, -2, … , where the sign depends on the side.
inline double digamma(double x) {
  if (x == 0) return std::copysign(kInfinity, -x);
  if (x < 0) {  // Abramowitz & Stegun 6.3.7
    if (x == std::floor(x)) return kNaN;
    const Real phase = x - std::nearbyint(x);
    Real sum = -kPi / std::tan(kPi * phase), at = 1 - static_cast<Real>(x);
    for (; at < kLarge; at += 1) sum -= 1 / at;
    return static_cast<double>(sum + asymptotic_digamma(at));
  }
  Real sum = 0, at = x;
  for (; at < kLarge; at += 1) sum -= 1 / at;
  return static_cast<double>(sum + asymptotic_digamma(at));
}

// The n-th derivative of digamma, n = 0, 1, 2, …; NaN for another n. Abramowitz & Stegun 6.4.10.
inline double polygamma(double n, double x) {
  if (n == 0) return digamma(x);
  if (!(n > 0) || n != std::floor(n)) return kNaN;
  const double sign = std::fmod(n, 2) == 1 ? 1 : -1;
  if (x <= 0 && x == std::floor(x)) return sign * kInfinity;
  if (x == kInfinity) return sign * 0.0;
  const Real factorial = std::tgamma(static_cast<Real>(n) + 1);
  return static_cast<double>(sign * factorial * any_zeta_sum(static_cast<Real>(n) + 1, x));
}

// Hurwitz' zeta function, the sum of (q + k)^-s over k = 0, 1, 2, … . Infinite for s = 1 and
// q = 0, -1, -2, … ; NaN for s < 1, and for q < 0 with an s that is no integer.
inline double zeta(double s, double q) {
  if (s == 1) return kInfinity;
  if (!(s > 1) || std::isnan(q)) return kNaN;
  if (q <= 0 && q == std::floor(q)) return kInfinity;
  if (q < 0 && s != std::floor(s)) return kNaN;
  if (q == kInfinity) return 0;
  return static_cast<double>(any_zeta_sum(s, q));
}

}  // namespace special_functions
