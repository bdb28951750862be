#include "composit/numpy/reductions.h"

#include <algorithm>
#include <cmath>

#include "composit/ir/error.h"
#include "composit/numpy/math.h"
#include "composit/numpy/result_type.h"
#include "composit/numpy/shape.h"
#include "composit/op/promotion.h"
#include "composit/ops/axes.h"

namespace composit::numpy {
namespace {

// The arguments of a torch reduction, for which an empty list of axes would mean all axes.
struct Reduction {
  NdArray x;
  Ints axes;
  bool keepdims;
  int64_t count() const { return count_over(x.sizes(), axes); }
};

Reduction reduction(std::string_view function, const NdArray& x, const Axes& axis, bool keepdims) {
  Ints axes = axis.of_rank(x.rank(), function);
  if (!axes.empty()) return {x, std::move(axes), keepdims};
  return {unsqueeze(x, x.rank()), {x.rank()}, false};
}

NdArray cast(const NdArray& x, std::optional<DType> wanted, DType fallback) {
  return to(x, wanted.value_or(fallback));
}

NdArray product(const Reduction& r) {
  NdArray y = r.x;
  Ints axes = r.axes;
  std::sort(axes.rbegin(), axes.rend());  // the last axis first: the numbers of others stay
  for (int64_t axis : axes) y = apply_one("aten::prod.dim_int", {y, axis, r.keepdims, y.dtype()});
  return y;
}

NdArray extremum(std::string_view function, std::string_view op, const NdArray& x, const Axes& axis,
                 bool keepdims) {
  expect_real(function, x.dtype());
  const Reduction r = reduction(function, x, axis, keepdims);
  if (r.count() == 0)
    refuse(function,
           "expected an element at least along the axes that are reduced, received shape " +
               str(x.shape()));
  return apply_one(op, {r.x, r.axes, r.keepdims});
}

NdArray truth(std::string_view function, std::string_view op, const NdArray& x, const Axes& axis,
              bool keepdims) {
  const Reduction r = reduction(function, x, axis, keepdims);
  return apply_one(op, {to(r.x, DType::bool_), r.axes, r.keepdims});
}

NdArray place_of_extremum(std::string_view function, std::string_view op, const NdArray& x,
                          std::optional<int64_t> axis, bool keepdims) {
  expect_real(function, x.dtype());
  if (x.size() == 0 ||
      (axis && x.shape()[static_cast<size_t>(axis_of_rank(*axis, x.rank(), function))] == 0))
    refuse(function, "expected an element at least, received shape " + str(x.shape()));
  const NdArray y = x.dtype() == DType::bool_ ? NdArray(to(x, DType::uint8)) : x;
  if (axis) return apply_one(op, {y, *axis, keepdims});
  const NdArray place = apply_one(op, {ravel(y), 0, false});
  return keepdims ? numpy::reshape(place, Ints(static_cast<size_t>(x.rank()), 1)) : place;
}

// Along `axis`, or of x flattened. Left to itself, torch scans unsigned integers as signed ones.
NdArray scan(std::string_view function, std::string_view op, const NdArray& x,
             std::optional<int64_t> axis, std::optional<DType> dtype) {
  if (!axis) return scan(function, op, ravel(x), 0, dtype);
  const NdArray y = cast(x, dtype, total_dtype(x.dtype()));
  return apply_one(op, {y, axis_of_rank(*axis, x.rank(), function), y.dtype()});
}

NdArray without_nan(const NdArray& x, double replacement) {
  if (category(x.dtype()) < DTypeCategory::floating) return x;
  return where(isnan(x), replacement, x);
}

NdArray extremum_but_nan(const NdArray& x, double replacement, const Axes& axis,
                         const KeepOptions& options, bool largest) {
  const NdArray y = without_nan(x, replacement);
  const NdArray result = largest ? max(y, axis, options) : min(y, axis, options);
  if (category(x.dtype()) < DTypeCategory::floating) return result;
  return where(all(isnan(x), axis, options), NAN, result);
}

// |x|^2, of complex numbers, too: real.
NdArray squares(const NdArray& centered) {
  if (!is_complex(centered.dtype())) return square(centered);
  return square(real(centered)) + square(imag(centered));
}

}  // namespace

NdArray sum(const NdArray& x, const Axes& axis, const SumOptions& options) {
  const Reduction r = reduction("sum", x, axis, options.keepdims);
  const DType dtype = options.dtype.value_or(total_dtype(x.dtype()));
  std::vector<ArgumentValue> arguments{r.x, r.axes, r.keepdims};
  const bool as_it_is = dtype == x.dtype() && category(dtype) >= DTypeCategory::floating;
  if (!as_it_is) arguments.emplace_back(dtype);
  return apply_one("aten::sum.dim_IntList", std::move(arguments));
}
NdArray prod(const NdArray& x, const Axes& axis, const SumOptions& options) {
  Reduction r = reduction("prod", x, axis, options.keepdims);
  r.x = cast(r.x, options.dtype, total_dtype(x.dtype()));
  return product(r);
}
NdArray mean(const NdArray& x, const Axes& axis, const SumOptions& options) {
  const Reduction r = reduction("mean", x, axis, options.keepdims);
  return composit::mean(cast(r.x, options.dtype, divided_dtype(x.dtype())), r.axes, r.keepdims);
}

NdArray nansum(const NdArray& x, const Axes& axis, const SumOptions& options) {
  return sum(without_nan(x, 0), axis, options);
}
NdArray nanprod(const NdArray& x, const Axes& axis, const SumOptions& options) {
  return prod(without_nan(x, 1), axis, options);
}
NdArray nanmean(const NdArray& x, const Axes& axis, const SumOptions& options) {
  const DType dtype = options.dtype.value_or(divided_dtype(x.dtype()));
  const SumOptions in_dtype{.dtype = dtype, .keepdims = options.keepdims};
  const NdArray count = sum(logical_not(isnan(x)), axis, {.keepdims = options.keepdims});
  return divide(nansum(x, axis, in_dtype), to(count, dtype));
}

NdArray max(const NdArray& x, const Axes& axis, const KeepOptions& options) {
  return extremum("max", "aten::amax", x, axis, options.keepdims);
}
NdArray min(const NdArray& x, const Axes& axis, const KeepOptions& options) {
  return extremum("min", "aten::amin", x, axis, options.keepdims);
}
NdArray amax(const NdArray& x, const Axes& axis, const KeepOptions& options) {
  return max(x, axis, options);
}
NdArray amin(const NdArray& x, const Axes& axis, const KeepOptions& options) {
  return min(x, axis, options);
}
NdArray nanmax(const NdArray& x, const Axes& axis, const KeepOptions& options) {
  return extremum_but_nan(x, -INFINITY, axis, options, /*largest=*/true);
}
NdArray nanmin(const NdArray& x, const Axes& axis, const KeepOptions& options) {
  return extremum_but_nan(x, INFINITY, axis, options, /*largest=*/false);
}
NdArray ptp(const NdArray& x, const Axes& axis, const KeepOptions& options) {
  return subtract(max(x, axis, options), min(x, axis, options));
}
NdArray any(const NdArray& x, const Axes& axis, const KeepOptions& options) {
  return truth("any", "aten::any.dims", x, axis, options.keepdims);
}
NdArray all(const NdArray& x, const Axes& axis, const KeepOptions& options) {
  return truth("all", "aten::all.dims", x, axis, options.keepdims);
}
NdArray count_nonzero(const NdArray& x, const Axes& axis, const KeepOptions& options) {
  return sum(to(x, DType::bool_), axis, {.keepdims = options.keepdims});
}

NdArray var(const NdArray& x, const Axes& axis, const VarianceOptions& options) {
  Reduction r = reduction("var", x, axis, options.keepdims);
  r.x = cast(r.x, options.dtype, divided_dtype(x.dtype()));
  if (is_complex(r.x.dtype())) {
    const NdArray distances = squares(r.x - NdArray(composit::mean(r.x, r.axes, true)));
    return NdArray(composit::sum(distances, r.axes, r.keepdims)) /
           (static_cast<double>(r.count()) - options.ddof);
  }
  return apply_one("aten::var.correction", {r.x, r.axes, Scalar(options.ddof), r.keepdims});
}
NdArray std(const NdArray& x, const Axes& axis, const VarianceOptions& options) {
  return sqrt(var(x, axis, options));
}
NdArray nanvar(const NdArray& x, const Axes& axis, const VarianceOptions& options) {
  if (category(x.dtype()) < DTypeCategory::floating) return var(x, axis, options);
  const NdArray y = cast(x, options.dtype, x.dtype());
  const NdArray known = logical_not(isnan(y));
  const NdArray centered = where(known, y - nanmean(y, axis, {.keepdims = true}), 0);
  const SumOptions keep{.keepdims = options.keepdims};
  const NdArray distances = sum(squares(centered), axis, keep);
  const NdArray freedom = to(sum(known, axis, keep), distances.dtype()) - options.ddof;
  return where(freedom > 0, distances / freedom, NAN);
}
NdArray nanstd(const NdArray& x, const Axes& axis, const VarianceOptions& options) {
  return sqrt(nanvar(x, axis, options));
}

NdArray argmax(const NdArray& x, std::optional<int64_t> axis, const KeepOptions& options) {
  return place_of_extremum("argmax", "aten::argmax", x, axis, options.keepdims);
}
NdArray argmin(const NdArray& x, std::optional<int64_t> axis, const KeepOptions& options) {
  return place_of_extremum("argmin", "aten::argmin", x, axis, options.keepdims);
}

NdArray nanargmax(const NdArray& x, std::optional<int64_t> axis, const KeepOptions& options) {
  return argmax(without_nan(x, -INFINITY), axis, options);
}
NdArray nanargmin(const NdArray& x, std::optional<int64_t> axis, const KeepOptions& options) {
  return argmin(without_nan(x, INFINITY), axis, options);
}

NdArray cumsum(const NdArray& x, std::optional<int64_t> axis, std::optional<DType> dtype) {
  return scan("cumsum", "aten::cumsum", x, axis, dtype);
}
NdArray cumprod(const NdArray& x, std::optional<int64_t> axis, std::optional<DType> dtype) {
  return scan("cumprod", "aten::cumprod", x, axis, dtype);
}

NdArray nancumsum(const NdArray& x, std::optional<int64_t> axis, std::optional<DType> dtype) {
  return cumsum(without_nan(x, 0), axis, dtype);
}
NdArray nancumprod(const NdArray& x, std::optional<int64_t> axis, std::optional<DType> dtype) {
  return cumprod(without_nan(x, 1), axis, dtype);
}

NdArray diff(const NdArray& x, int64_t n, int64_t axis) {
  if (n < 0) refuse("diff", "expected n of at least 0, received " + std::to_string(n));
  axis = axis_of_rank(axis, x.rank(), "diff");
  NdArray y = x;
  for (; n > 0; --n) {
    const int64_t last = std::max<int64_t>(y.size(axis), 1);
    const NdArray later = slice(y, axis, 1, last), earlier = slice(y, axis, 0, last - 1);
    y = y.dtype() == DType::bool_ ? not_equal(later, earlier) : subtract(later, earlier);
  }
  return y;
}

}  // namespace composit::numpy
