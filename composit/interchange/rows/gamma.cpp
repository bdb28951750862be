// Zeta, polygamma and the incomplete gammas, in float64.
#include <cmath>

#include "composit/interchange/common_rows.h"
#include "composit/interchange/polynomials.h"
#include "composit/ops/control_flow.h"
#include "composit/ops/functions.h"
#include "composit/shipped/special_series.h"

namespace composit::interchange {
namespace {

using X = const LazyTensor&;
using special_functions::kInfinity, special_functions::kNaN;

// ---- zeta ---------------------------------------------------------------------------------------

// Of s > 1, q > 0: ten terms, and Euler-Maclaurin's formula for the rest (DLMF 25.11.28).
LazyTensor zeta_sum(X s, X q) {
  constexpr int64_t kTerms = 10;
  const LazyTensor places = unsqueeze(q, -1) + arange(kTerms, DType::float64);
  const LazyTensor terms = pow(places, -unsqueeze(s, -1));
  const LazyTensor w = q + static_cast<double>(kTerms), first = pow(w, -s);
  LazyTensor total = sum(terms, {-1}) + first * w / (s - 1) + first * 0.5;
  LazyTensor factor = first * s / (w * 2);
  int k = 1;
  for (const long double bernoulli : special_functions::kBernoulli) {
    total = total + factor * static_cast<double>(bernoulli);
    factor = factor * ((s + (2 * k - 1)) / (w * (2 * k + 1))) * ((s + 2 * k) / (w * (2 * k + 2)));
    ++k;
  }
  return total;
}

// Of operands of one size. With an integer s, terms of a negative q are the difference of two sums
// above it.
LazyTensor zeta_of(X order, X place) {
  const LazyTensor is_infinite = eq(place, kInfinity),
                   is_pole = logical_and(place <= 0, eq(floor(place), place));
  const LazyTensor converges = order > 1, s = where(converges, order, 2.0);
  const LazyTensor q = where(logical_or(is_infinite, is_pole), 1.0, place);
  const LazyTensor above = where(q < 0, q - floor(q), q), below = where(q < 0, 1 - above, 1.0);
  const LazyTensor behind = where(q < 0, 1 - q, 1.0);
  const LazyTensor finite = zeta_sum(s, below) - zeta_sum(s, behind);
  const LazyTensor is_even = eq(apply_one("aten::remainder.Scalar", {s, 2.0}), 0);
  const LazyTensor sums = zeta_sum(s, above) + where(is_even, finite, -finite);
  const LazyTensor has_none = logical_and(q < 0, ne(s, floor(s)));
  const LazyTensor regular = where(is_infinite, 0.0, where(has_none, kNaN, sums));
  const LazyTensor value = where(is_pole, kInfinity, regular);
  return where(eq(order, 1), kInfinity, where(converges, value, kNaN));
}

LazyTensors zeta(const Call& call, const std::vector<Type>& results) {
  const Dims& sizes = results[0].sizes;
  const LazyTensor s = expand(in_float64(call.tensors().at(0)), sizes),
                   q = expand(in_float64(call.tensors().at(1)), sizes);
  return {in_dtype(zeta_of(s, q), results[0].dtype)};
}

// (-1)^(n + 1) n! zeta(n + 1, x)
LazyTensors polygamma(const Call& call, const std::vector<Type>& results) {
  const LazyTensor x = in_float64(tensor_of(call, "self"));
  const auto order = static_cast<double>(int_of(call, "n"));
  if (order == 0) return {apply_one("aten::digamma", {tensor_of(call, "self")})};
  const double factor = std::tgamma(order + 1) * (std::fmod(order, 2) == 0 ? -1 : 1);
  const LazyTensor s = full(x.sizes(), order + 1, DType::float64);
  return {in_dtype(zeta_of(s, x) * factor, results[0].dtype)};
}

// ---- incomplete gammas --------------------------------------------------------------------------

constexpr double kMostTerms = 10000;

LazyTensor any(X x) { return apply_one("aten::any", {x}); }

// exp(a log x - x - lgamma(a))
LazyTensor weight(X a, X x) { return exp(a * log(x) - x - apply_one("aten::lgamma", {a})); }

// The share of the integral up to x by its series; 0 < x < a + 1.
LazyTensor lower_series(X a, X x) {
  const LazyTensor first = reciprocal(a), one = full({}, 1.0, DType::float64);
  const LazyTensor total = while_loop(
      [&](const LazyTensors& in) {
        return logical_and(any(in[1] > in[2] * 1e-17), in[0] < kMostTerms);
      },
      [&](const LazyTensors& in) {
        const LazyTensor term = in[1] * x / (a + in[0]);
        return LazyTensors{in[0] + 1, term, in[2] + term};
      },
      {one, first, first})[2];
  return total * weight(a, x);
}

// The share beyond x by its continued fraction (Lentz's method); x >= a + 1.
LazyTensor upper_fraction(X a, X x) {
  const LazyTensor b = x + 1 - a, d = reciprocal(b), one = full({}, 1.0, DType::float64);
  const LazyTensors end = while_loop(
      [&](const LazyTensors& in) {
        return logical_and(any(abs(in[5]) >= 1e-16), in[0] < kMostTerms);
      },
      [&](const LazyTensors& in) {
        const LazyTensor &k = in[0], factor = -k * (k - a), next_b = in[1] + 2;
        const LazyTensor next_d = reciprocal(factor * in[3] + next_b);
        const LazyTensor next_c = next_b + factor / in[2], change = next_d * next_c;
        return LazyTensors{k + 1, next_b, next_c, next_d, in[4] * change, change - 1};
      },
      {one, b, ones_like(b) * 1e300, d, d, ones_like(b)});
  return end[4] * weight(a, x);
}

template <bool upper>
LazyTensors incomplete(const Call& call, const std::vector<Type>& results) {
  const Dims& sizes = results[0].sizes;
  const LazyTensor a = expand(in_float64(call.tensors().at(0)), sizes),
                   x = expand(in_float64(call.tensors().at(1)), sizes);
  const LazyTensor a_ends = logical_or(eq(a, 0), eq(a, kInfinity)),
                   x_ends = logical_or(eq(x, 0), eq(x, kInfinity));
  const LazyTensor inside =
      logical_and(logical_and(a > 0, x > 0), logical_not(logical_or(a_ends, x_ends)));
  const LazyTensor is_low = logical_and(inside, x < a + 1),
                   is_high = logical_and(inside, x >= a + 1);
  const LazyTensor low = lower_series(where(is_low, a, 1.0), where(is_low, x, 1.0));
  const LazyTensor high = upper_fraction(where(is_high, a, 1.0), where(is_high, x, 3.0));
  const LazyTensor regular = upper ? where(is_low, 1 - low, high) : where(is_low, low, 1 - high);
  // All of the integral, or none of it; where both ends meet, no number.
  const double whole = upper ? 0 : 1, none = upper ? 1 : 0;
  const auto either = [](X condition, double one, double other) {
    return where(condition, one, full({}, other, DType::float64));
  };
  LazyTensor value = where(inside, regular, kNaN);
  value = where(eq(x, kInfinity), whole, value);
  value = where(eq(a, kInfinity), either(eq(x, kInfinity), kNaN, none), value);
  value = where(eq(x, 0), none, value);
  value = where(eq(a, 0), either(x > 0, whole, kNaN), value);
  value = where(logical_or(a < 0, x < 0), kNaN, value);
  return {in_dtype(value, results[0].dtype)};
}

}  // namespace

void add_gamma_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"aten::special_zeta", zeta},
                           {"aten::polygamma", polygamma},
                           {"aten::igamma", incomplete<false>},
                           {"aten::igammac", incomplete<true>}});
}

}  // namespace composit::interchange
