// NumPy's reductions and scans along axes.
//
//   cnp::NdArray total = cnp::sum(x);
//   cnp::NdArray means = cnp::mean(x, {0, 2}, {.keepdims = true});
//   cnp::NdArray spread = cnp::std(x, -1, {.ddof = 1});
//
// `axis` is none (all axes), one, or several; NumPy's keyword arguments are in a struct after it.
// Sums, products and means of integers are int64, uint64 and float64, as in NumPy. UserErrors: an
// axis out of range or given twice, the extremum of no elements, dtypes without an order.
#pragma once

#include <optional>

#include "composit/numpy/ndarray.h"

namespace composit::numpy {

// The options of sums and products.
struct SumOptions {
  std::optional<DType> dtype = {};  // dtype of the computation and of the result
  bool keepdims = false;            // reduced axes stay, with size 1
};
// The options of functions that choose an element.
struct KeepOptions {
  bool keepdims = false;  // reduced axes stay, with size 1
};
// The options of variances.
struct VarianceOptions {
  std::optional<DType> dtype = {};  // dtype of the computation and of the result
  double ddof = 0;                  // divides by count - ddof
  bool keepdims = false;            // reduced axes stay, with size 1
};
// clang-format off
#define COMPOSIT_NUMPY_SUMS(f) f(sum) f(prod) f(mean) f(nansum) f(nanprod) f(nanmean)
#define COMPOSIT_NUMPY_EXTREMA(f) f(max) f(min) f(amax) f(amin) f(nanmax) f(nanmin) f(ptp) \
  f(any) f(all) f(count_nonzero)
// clang-format on
#define COMPOSIT_DECLARE(name) \
  NdArray name(const NdArray& x, const Axes& axis = none, const SumOptions& options = {});
// Over an axis, several, or all (none). UserError for an axis out of range.
COMPOSIT_NUMPY_SUMS(COMPOSIT_DECLARE)
#undef COMPOSIT_DECLARE
#define COMPOSIT_DECLARE(name) \
  NdArray name(const NdArray& x, const Axes& axis = none, const KeepOptions& options = {});
// Over an axis, several, or all (none). UserError for an axis out of range.
COMPOSIT_NUMPY_EXTREMA(COMPOSIT_DECLARE)
#undef COMPOSIT_DECLARE

// The mean square distance from the mean; its root; both without NaN.
NdArray var(const NdArray& x, const Axes& axis = none, const VarianceOptions& options = {});
NdArray std(const NdArray& x, const Axes& axis = none, const VarianceOptions& options = {});
NdArray nanvar(const NdArray& x, const Axes& axis = none, const VarianceOptions& options = {});
NdArray nanstd(const NdArray& x, const Axes& axis = none, const VarianceOptions& options = {});

// The place of the first extremum, int64; NaN counts as one. none: in x flattened.
NdArray argmax(const NdArray& x, std::optional<int64_t> axis = {}, const KeepOptions& options = {});
NdArray argmin(const NdArray& x, std::optional<int64_t> axis = {}, const KeepOptions& options = {});
// The same without NaN; of nothing but NaN, 0.
NdArray nanargmax(const NdArray& x, std::optional<int64_t> axis = {},
                  const KeepOptions& options = {});
NdArray nanargmin(const NdArray& x, std::optional<int64_t> axis = {},
                  const KeepOptions& options = {});

// none: of x flattened.
NdArray cumsum(const NdArray& x, std::optional<int64_t> axis = {}, std::optional<DType> dtype = {});
// As good a match for a plain number as composit's function of tensors.
inline NdArray cumsum(const NdArray& x, int64_t axis, std::optional<DType> dtype = {}) {
  return cumsum(x, std::optional(axis), dtype);
}
// Products so far; both without NaN. none: of x flattened.
NdArray cumprod(const NdArray& x, std::optional<int64_t> axis = {},
                std::optional<DType> dtype = {});
NdArray nancumsum(const NdArray& x, std::optional<int64_t> axis = {},
                  std::optional<DType> dtype = {});
NdArray nancumprod(const NdArray& x, std::optional<int64_t> axis = {},
                   std::optional<DType> dtype = {});
// Differences of neighbours, `n` times over.
NdArray diff(const NdArray& x, int64_t n = 1, int64_t axis = -1);

}  // namespace composit::numpy
