// Bessel's and Airy's functions, in float64: interpolants of what composit/shipped computes up to
// kFar, and the asymptotic series of https://dlmf.nist.gov (10.17, 10.40, 9.7) beyond.
#include <cmath>
#include <numbers>

#include "composit/interchange/common_rows.h"
#include "composit/interchange/polynomials.h"
#include "composit/ops/functions.h"
#include "composit/shipped/classical_functions.h"

namespace composit::interchange {
namespace {

using X = const LazyTensor&;
using special_functions::kInfinity, special_functions::kNaN;

constexpr double kFar = 30;  // from here on kTerms of the series are exact
constexpr int kTerms = 22;
constexpr double kPi = std::numbers::pi;

// There torch gives no number for what oscillates.
LazyTensor is_infinite(X x) { return eq(abs(x), kInfinity); }
// The size of x, 1 where it is infinite: results there are chosen.
LazyTensor finite_size(X x) { return where(is_infinite(x), 1.0, abs(x)); }

// a_k of 10.17.1 for the order 0 or 1; the signs alternate if `alternates`.
std::vector<double> hankel(int order, bool alternates) {
  std::vector<double> all = {1};
  for (int k = 1; k < kTerms; ++k) {
    const double odd = 2 * k - 1, next = all.back() * (4.0 * order - odd * odd) / (8.0 * k);
    all.push_back(alternates ? -next : next);
  }
  return all;
}

// Every second coefficient from `first` on, with alternating signs.
std::vector<double> every_second(const std::vector<double>& all, size_t first) {
  std::vector<double> some;
  for (size_t i = first; i < all.size(); i += 2)
    some.push_back(some.size() % 2 == 0 ? all[i] : -all[i]);
  return some;
}

// ---- of the first and second kind ---------------------------------------------------------------

// Both parts of a wave P cos(x - phase) - Q sin(x - phase), with the phases of cosine and sine
// turned by pi / 4, and how it falls.
struct Wave {
  LazyTensor p, q, sum, difference, falls;
};

Wave wave_of(int order, X x) {
  const LazyTensor inverse = reciprocal(x), square = inverse * inverse;
  const std::vector<double> all = hankel(order, false);
  return {polynomial(every_second(all, 0), square),
          inverse * polynomial(every_second(all, 1), square), cos(x) + sin(x), sin(x) - cos(x),
          rsqrt(x * kPi)};
}

LazyTensor near_j0(X x) { return interpolated_even(special_functions::bessel_j0, kFar, 34, x); }
LazyTensor near_j1(X x) {
  const auto over_x = [](double z) { return z == 0 ? 0.5 : special_functions::bessel_j1(z) / z; };
  return x * interpolated_even(over_x, kFar, 34, x);
}

LazyTensor j0(X x) {
  const LazyTensor size = finite_size(x);
  const Wave w = wave_of(0, size);
  const LazyTensor far = w.falls * (w.p * w.sum - w.q * w.difference);
  return where(is_infinite(x), kNaN, where(size < kFar, near_j0(size), far));
}

LazyTensor j1(X x) {
  const LazyTensor size = finite_size(x);
  const Wave w = wave_of(1, size);
  const LazyTensor far = w.falls * (w.p * w.difference + w.q * w.sum);
  const LazyTensor value = where(size < kFar, near_j1(size), far);
  return where(is_infinite(x), kNaN, where(x < 0, -value, value));
}

// Where x is 0, minus infinity; where it is less, no number.
LazyTensor above_zero(X x, X value, double at_zero) {
  return where(x < 0, kNaN, where(eq(x, 0), at_zero, value));
}

constexpr double kTwoOverPi = 2 / kPi;

LazyTensor y0(X x) {
  const LazyTensor size = finite_size(x);
  const auto regular = [](double z) {
    return special_functions::bessel_y0(z) -
           kTwoOverPi * std::log(z) * special_functions::bessel_j0(z);
  };
  const LazyTensor near =
      interpolated_even(regular, kFar, 34, size) + log(size) * near_j0(size) * kTwoOverPi;
  const Wave w = wave_of(0, size);
  const LazyTensor far = w.falls * (w.p * w.difference + w.q * w.sum);
  const LazyTensor value = where(is_infinite(x), kNaN, where(size < kFar, near, far));
  return above_zero(x, value, -kInfinity);
}

LazyTensor y1(X x) {
  const LazyTensor size = finite_size(x);
  const auto regular = [](double z) {
    return z * (special_functions::bessel_y1(z) -
                kTwoOverPi * std::log(z) * special_functions::bessel_j1(z));
  };
  const LazyTensor near =
      interpolated_even(regular, kFar, 34, size) / size + log(size) * near_j1(size) * kTwoOverPi;
  const Wave w = wave_of(1, size);
  const LazyTensor far = w.falls * (w.q * w.difference - w.p * w.sum);
  const LazyTensor value = where(is_infinite(x), kNaN, where(size < kFar, near, far));
  return above_zero(x, value, -kInfinity);
}

LazyTensor spherical_j0(X x) {
  const LazyTensor size = finite_size(x), square = size * size;
  const LazyTensor near =
      polynomial({1, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800}, square);
  const LazyTensor value = where(size < 0.5, near, sin(size) / size);
  return where(is_infinite(x), 0.0, value);
}

// ---- modified -----------------------------------------------------------------------------------

LazyTensor far_growing(int order, X x) {
  return polynomial(hankel(order, true), reciprocal(x)) * rsqrt(x * (2 * kPi));
}

LazyTensor i0e(X x) {
  const LazyTensor size = abs(x);
  const LazyTensor near = interpolated(special_functions::i0e, 0, kFar, 54, size);
  return where(size < kFar, near, far_growing(0, size));
}

LazyTensor i1e(X x) {
  const LazyTensor size = abs(x);
  const auto over_x = [](double z) { return special_functions::i1e(z) / z; };
  const LazyTensor near = interpolated(over_x, 0, kFar, 54, size) * size;
  const LazyTensor value = where(size < kFar, near, far_growing(1, size));
  return where(x < 0, -value, value);
}

LazyTensor i0(X x) { return i0e(x) * exp(abs(x)); }
LazyTensor i1(X x) { return i1e(x) * exp(abs(x)); }

// Of the third kind, times exp(x) beyond kNear. `regular`: what the logarithm leaves near 0.
constexpr double kNear = 2;

LazyTensor far_falling(int order, double (*f)(double), X x) {
  const auto scaled = [=](double u) {
    const double z = kNear / u;
    return f(z) * std::sqrt(z);
  };
  const LazyTensor middle = interpolated(scaled, kNear / kFar, 1, 30, kNear * reciprocal(x));
  const LazyTensor far = polynomial(hankel(order, false), reciprocal(x)) * std::sqrt(kPi / 2);
  return where(x < kFar, middle, far) * rsqrt(x);
}

LazyTensor near_k0(X x) {
  using namespace special_functions;
  const auto regular = [](double z) { return k0(z) + std::log(z) * special_functions::i0(z); };
  const LazyTensor growing = interpolated_even(special_functions::i0, kNear, 14, x);
  return interpolated_even(regular, kNear, 14, x) - log(x) * growing;
}

LazyTensor near_k1(X x) {
  using namespace special_functions;
  const auto regular = [](double z) {
    return z * (k1(z) - std::log(z) * special_functions::i1(z));
  };
  const auto growing = [](double z) { return special_functions::i1(z) / z; };
  return interpolated_even(regular, kNear, 14, x) / x +
         log(x) * x * interpolated_even(growing, kNear, 14, x);
}

LazyTensor falling(int order, X x, bool is_scaled) {
  const auto scaled = order == 0 ? special_functions::scaled_k0 : special_functions::scaled_k1;
  const LazyTensor size = finite_size(x);
  const LazyTensor near = order == 0 ? near_k0(size) : near_k1(size);
  const LazyTensor far = far_falling(order, scaled, size);
  const LazyTensor value =
      where(size <= kNear, is_scaled ? near * exp(size) : near, is_scaled ? far : far * exp(-size));
  return above_zero(x, where(is_infinite(x), 0.0, value), kInfinity);
}

LazyTensor k0(X x) { return falling(0, x, false); }
LazyTensor k1(X x) { return falling(1, x, false); }
LazyTensor scaled_k0(X x) { return falling(0, x, true); }
LazyTensor scaled_k1(X x) { return falling(1, x, true); }

// ---- Airy's -------------------------------------------------------------------------------------

constexpr double kLeft = -12, kMiddle = 2, kRight = 16;

// u_k of 9.7.2; the signs alternate if `alternates`.
std::vector<double> airy_terms(bool alternates) {
  std::vector<double> all = {1};
  for (int k = 1; k < 18; ++k) {
    const double six = 6 * k;
    const double next = all.back() * (six - 5) * (six - 3) * (six - 1) / (216.0 * k * (2 * k - 1));
    all.push_back(alternates ? -next : next);
  }
  return all;
}

LazyTensor angle_of(X size) { return size * sqrt(size) * (2.0 / 3); }

LazyTensor airy(X x) {
  const LazyTensor size = finite_size(x), angle = angle_of(size), inverse = reciprocal(angle);
  const LazyTensor root = sqrt(sqrt(size)), falls = exp(-angle);
  const auto scaled = [](double z) {
    return special_functions::airy(z) * std::exp(2.0 / 3 * z * std::sqrt(z));
  };
  const LazyTensor near = interpolated(special_functions::airy, kLeft, kMiddle, 60, x);
  const LazyTensor middle = interpolated(scaled, kMiddle, kRight, 40, x) * falls;
  const LazyTensor right =
      falls * polynomial(airy_terms(true), inverse) / (root * (2 * std::sqrt(kPi)));
  const std::vector<double> terms = airy_terms(false);
  const LazyTensor square = inverse * inverse;
  const LazyTensor p = polynomial(every_second(terms, 0), square),
                   q = inverse * polynomial(every_second(terms, 1), square);
  const LazyTensor left =
      ((cos(angle) + sin(angle)) * p + (sin(angle) - cos(angle)) * q) / (root * std::sqrt(2 * kPi));
  const LazyTensor outer = where(x < kLeft, left, where(x > kRight, right, middle));
  const LazyTensor inside = logical_and(x >= kLeft, x <= kMiddle);
  const LazyTensor value = where(inside, near, outer);
  return where(is_infinite(x), kNaN, value);
}

}  // namespace

void add_bessel_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"aten::special_bessel_j0", in_double<j0>},
                           {"aten::special_bessel_j1", in_double<j1>},
                           {"aten::special_bessel_y0", in_double<y0>},
                           {"aten::special_bessel_y1", in_double<y1>},
                           {"aten::i0", in_double<i0>},
                           {"aten::special_i0e", in_double<i0e>},
                           {"aten::special_i1", in_double<i1>},
                           {"aten::special_i1e", in_double<i1e>},
                           {"aten::special_modified_bessel_i0", in_double<i0>},
                           {"aten::special_modified_bessel_i1", in_double<i1>},
                           {"aten::special_modified_bessel_k0", in_double<k0>},
                           {"aten::special_modified_bessel_k1", in_double<k1>},
                           {"aten::special_scaled_modified_bessel_k0", in_double<scaled_k0>},
                           {"aten::special_scaled_modified_bessel_k1", in_double<scaled_k1>},
                           {"aten::special_spherical_bessel_j0", in_double<spherical_j0>},
                           {"aten::special_airy_ai", in_double<airy>}});
}

}  // namespace composit::interchange
