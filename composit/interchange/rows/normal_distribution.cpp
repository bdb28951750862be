// What is made of the normal distribution, in float64, by the formulas of
// composit/shipped/classical_functions.h.
#include <cmath>

#include "composit/interchange/common_rows.h"
#include "composit/interchange/polynomials.h"
#include "composit/ops/control_flow.h"
#include "composit/ops/functions.h"
#include "composit/shipped/classical_functions.h"

namespace composit::interchange {
namespace {

using X = const LazyTensor&;
using special_functions::kInfinity, special_functions::kNaN;

// exp(x^2) erfc(x) for x >= 0, as an interpolant in t = 2 / (2 + x), which falls as it does.
LazyTensor erfcx_of_size(X size) {
  const auto over_t = [](double t) { return special_functions::erfcx(2 / t - 2) / t; };
  const LazyTensor t = 2 * reciprocal(size + 2);
  return interpolated(over_t, 0, 1, 40, t) * t;
}

LazyTensor erfcx(X x) {
  const LazyTensor value = erfcx_of_size(abs(x));
  return where(x < 0, exp(x * x) * 2 - value, value);
}

LazyTensor erfc(X x) {
  const LazyTensor value = exp(-(x * x)) * erfcx_of_size(abs(x));
  return where(x < 0, 2 - value, value);
}

LazyTensor log_ndtr(X x) {
  const LazyTensor t = x * std::sqrt(0.5);
  const LazyTensor low = log(erfcx_of_size(abs(t)) * 0.5) - t * t;
  return where(x < -1, low, log1p(erfc(t) * -0.5));
}

// By Newton's steps in the logarithm of the smaller tail.
LazyTensor ndtri(X p) {
  constexpr int64_t kSteps = 40;
  const LazyTensor tail = minimum(p, 1 - p), wanted = log(tail);
  const LazyTensor start = where(tail > 0.01, 0.0, -sqrt(wanted * -2));
  const LazyTensor x = scan(
                           [&](const LazyTensors& in, const LazyTensors&) {
                             const LazyTensor &here = in[0], logarithm = log_ndtr(here);
                             const LazyTensor density =
                                 exp(here * here * -0.5 - logarithm) / special_functions::kRoot2Pi;
                             return ScanStep{{here - (logarithm - wanted) / density}, {}};
                           },
                           {start}, {}, {.length = kSteps})
                           .carried[0];
  const LazyTensor inner = where(p > 0.5, -x, x);
  const LazyTensor ends = where(eq(p, 0), -kInfinity, where(eq(p, 1), kInfinity, inner));
  return where(logical_and(p >= 0, p <= 1), ends, kNaN);
}

}  // namespace

void add_normal_distribution_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"aten::special_erfcx", in_double<erfcx>},
                           {"aten::special_log_ndtr", in_double<log_ndtr>},
                           {"aten::special_ndtri", in_double<ndtri>}});
}

}  // namespace composit::interchange
