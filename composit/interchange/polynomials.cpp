#include "composit/interchange/polynomials.h"

#include <cmath>
#include <numbers>

#include "composit/ops/functions.h"

namespace composit::interchange {
namespace {

// Those of f's interpolant in Chebyshev's polynomials.
std::vector<double> chebyshev_coefficients(const RealFunction& f, double low, double high,
                                           int degree) {
  using Wide = long double;
  const int points = degree + 1;
  std::vector<Wide> values, coefficients;
  const auto angle = [&](int point) { return std::numbers::pi_v<Wide> * (point + 0.5L) / points; };
  for (int point = 0; point < points; ++point) {
    const Wide place = (low + high + (high - low) * std::cos(angle(point))) / 2;
    values.push_back(f(static_cast<double>(place)));
  }
  std::vector<double> result;
  for (int order = 0; order < points; ++order) {
    Wide sum = 0;
    for (int point = 0; point < points; ++point)
      sum += values[static_cast<size_t>(point)] * std::cos(order * angle(point));
    result.push_back(static_cast<double>((order == 0 ? 1 : 2) * sum / points));
  }
  return result;
}

}  // namespace

LazyTensor polynomial(const std::vector<double>& coefficients, const LazyTensor& x) {
  LazyTensor value = x * 0 + coefficients.back();
  for (size_t i = coefficients.size() - 1; i-- > 0;) value = value * x + coefficients[i];
  return value;
}

// By Clenshaw's recurrence.
LazyTensor interpolated(const RealFunction& f, double low, double high, int degree,
                        const LazyTensor& x) {
  const std::vector<double> coefficients = chebyshev_coefficients(f, low, high, degree);
  const LazyTensor twice = (x - (low + high) / 2) * (4 / (high - low));
  LazyTensor here = twice * 0 + coefficients.back(), before = twice * 0;
  for (size_t i = coefficients.size() - 1; i-- > 1;) {
    const LazyTensor next = twice * here - before + coefficients[i];
    before = here;
    here = next;
  }
  return twice * 0.5 * here - before + coefficients[0];
}

LazyTensor interpolated_even(const RealFunction& f, double high, int degree, const LazyTensor& x) {
  return interpolated([&](double square) { return f(std::sqrt(square)); }, 0, high * high, degree,
                      x * x);
}

LazyTensor in_float64(const LazyTensor& x) { return to(x, DType::float64); }
LazyTensor in_dtype(const LazyTensor& x, DType dtype) { return to(x, dtype); }

}  // namespace composit::interchange
