#include "composit/numpy/statistics.h"

#include <algorithm>
#include <cmath>

#include "composit/ir/error.h"
#include "composit/numpy/creation.h"
#include "composit/numpy/indexing.h"
#include "composit/numpy/linear_algebra.h"
#include "composit/numpy/math.h"
#include "composit/numpy/result_type.h"
#include "composit/numpy/shape.h"
#include "composit/numpy/sorting.h"
#include "composit/op/promotion.h"

namespace composit::numpy {
namespace {

// Elements of the reduced axes, sorted along the last axis, which follows the axes that stay.
struct Sorted {
  NdArray elements;
  Ints kept_shape;  // of a result that keeps reduced axes
  int64_t count;

  NdArray at(int64_t place) const { return select_at(elements, -1, place); }
  // `result`, or NaN where there is one among the elements: sorted, it is the last.
  NdArray result(const NdArray& result, bool keepdims) const {
    const NdArray known = where(isnan(at(count - 1)), at(count - 1), result);
    return keepdims ? reshape(known, kept_shape) : known;
  }
};

Sorted sorted(std::string_view function, const NdArray& x, const Axes& axis) {
  expect_real(function, x.dtype());
  const Ints axes = axis.of_rank(x.ndim(), function);
  Ints ends, kept_shape = x.shape();
  int64_t count = 1;
  for (size_t i = 0; i < axes.size(); ++i) {
    ends.push_back(static_cast<int64_t>(i) - static_cast<int64_t>(axes.size()));
    count *= x.size(axes[i]);
    kept_shape[static_cast<size_t>(axes[i])] = 1;
  }
  if (count == 0)
    refuse(function, "expected an element at least, received shape " + str(x.shape()));
  const NdArray moved = moveaxis(x.astype(divided_dtype(x.dtype())), axes, ends);
  Ints shape = moved.shape();
  shape.resize(shape.size() - axes.size());
  shape.push_back(count);
  return {sort(reshape(moved, shape)), kept_shape, count};
}

}  // namespace

NdArray median(const NdArray& x, const Axes& axis, const KeepOptions& options) {
  const Sorted s = sorted("median", x, axis);
  const NdArray middle = composit::slice(s.elements, -1, (s.count - 1) / 2, s.count / 2 + 1);
  return s.result(mean(middle, -1), options.keepdims);
}

NdArray quantile(const NdArray& x, double q, const Axes& axis, const KeepOptions& options) {
  if (!(q >= 0 && q <= 1))
    refuse("quantile", "expected q from 0 to 1, received " + std::to_string(q));
  const Sorted s = sorted("quantile", x, axis);
  const double place = q * static_cast<double>(s.count - 1);
  const auto before = static_cast<int64_t>(place);
  const NdArray low = s.at(before), high = s.at(std::min(before + 1, s.count - 1));
  const double part = place - static_cast<double>(before);
  const NdArray between = part < 0.5 ? low + (high - low) * part : high - (high - low) * (1 - part);
  return s.result(between, options.keepdims);
}
NdArray percentile(const NdArray& x, double q, const Axes& axis, const KeepOptions& options) {
  return quantile(x, q / 100, axis, options);
}

NdArray average(const NdArray& x, const Axes& axis, const AverageOptions& options) {
  if (!options.weights) return mean(x, axis, {.keepdims = options.keepdims});
  NdArray weights = *options.weights;
  const Ints axes = axis.of_rank(x.rank(), "average");
  if (weights.shape() != x.shape()) {
    if (weights.ndim() != 1 || axes.size() != 1 || weights.size() != x.size(axes[0]))
      refuse("average", "expected weights of shape " + str(x.shape()) +
                            ", or one per place along an axis, received shape " +
                            str(weights.shape()));
    Ints shape(static_cast<size_t>(x.rank()), 1);
    shape[static_cast<size_t>(axes[0])] = weights.size();
    weights = broadcast_to(numpy::reshape(weights, shape), x.shape());
  }
  const DType dtype = result_type(divided_dtype(x.dtype()), weights.dtype());
  const SumOptions keep{.keepdims = options.keepdims};
  const NdArray scale = to(weights, dtype);
  return sum(multiply(x, scale), axis, keep) / sum(scale, axis, keep);
}

NdArray cov(const NdArray& x, double ddof) {
  if (x.ndim() != 2) refuse("cov", "expected two axes, received shape " + str(x.shape()));
  const NdArray y = x.astype(result_type(x.dtype(), DType::float64));
  const NdArray centered = y - mean(y, 1, {.keepdims = true});
  return matmul(centered, conj(centered).T()) / (static_cast<double>(x.size(1)) - ddof);
}
NdArray corrcoef(const NdArray& x) {
  const NdArray c = cov(x);
  const NdArray deviation = sqrt(real(diagonal(c)));
  return c / outer(deviation, deviation);
}

NdArray digitize(const NdArray& x, const NdArray& bins, bool right) {
  return searchsorted(bins, x, right ? "left" : "right");
}

NdArray convolve(const NdArray& a, const NdArray& v, std::string_view mode) {
  if (a.ndim() > 1 || v.ndim() > 1 || a.size() == 0 || v.size() == 0)
    refuse("convolve", "expected vectors with elements, received shapes " + str(a.shape()) +
                           " and " + str(v.shape()));
  if (v.size() > a.size()) return convolve(v, a, mode);
  if (mode != "full" && mode != "same" && mode != "valid")
    refuse("convolve", "expected mode full, same or valid, received '" + std::string(mode) + "'");
  const int64_t n = a.size(), m = v.size();
  const int64_t before = mode == "full" ? m - 1 : mode == "same" ? m / 2 : 0;
  const int64_t count = mode == "full" ? n + m - 1 : mode == "same" ? n : n - m + 1;
  const NdArray padded = pad(ravel(a), m - 1);
  // windows[i, j] stands before the j-th element of v in reverse.
  const NdArray places = expand_dims(arange(count), 1) + arange(m) + (m - 1 - before);
  return matmul(take(padded, places), flip(ravel(v)));
}

NdArray trapezoid(const NdArray& y, double dx, int64_t axis) {
  axis = axis_of_rank(axis, y.ndim(), "trapezoid");
  const int64_t last = std::max<int64_t>(y.size(axis), 1);
  const NdArray later = composit::slice(y, axis, 1, last);
  const NdArray earlier = composit::slice(y, axis, 0, last - 1);
  return sum(dx * (later + earlier) / 2.0, axis);
}

NdArray interp(const NdArray& x, const NdArray& xp, const NdArray& fp) {
  if (xp.ndim() != 1 || xp.shape() != fp.shape() || xp.size() == 0)
    refuse("interp", "expected points as two vectors of one size, received shapes " +
                         str(xp.shape()) + " and " + str(fp.shape()));
  const NdArray at = x.astype(DType::float64), from = xp.astype(DType::float64);
  const NdArray values = fp.astype(result_type(fp.dtype(), DType::float64));
  if (xp.size() == 1) return broadcast_to(values, {1})[0] + 0 * at;
  const NdArray right = clip(searchsorted(from, at, "right"), 1, xp.size() - 1);
  const NdArray left = right - 1;
  const NdArray slope =
      (take(values, right) - take(values, left)) / (take(from, right) - take(from, left));
  const NdArray inside = slope * (at - take(from, left)) + take(values, left);
  const NdArray above = where(at >= from[-1], values[-1], inside);
  return where(isnan(at), at, where(at <= from[0], values[0], above));
}

}  // namespace composit::numpy
