// NumPy's order statistics, weighted means, and functions of sampled curves.
//
//   cnp::NdArray middle = cnp::median(x, 0);
//   cnp::NdArray low = cnp::percentile(x, 5, -1, {.keepdims = true});
//
// UserErrors: no elements, a quantile outside of [0, 1], shapes that do not fit, complex numbers
// where an order is needed.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "composit/numpy/reductions.h"

namespace composit::numpy {

// NaN where there is one among the elements.
NdArray median(const NdArray& x, const Axes& axis = none, const KeepOptions& options = {});
// Between the elements around place q (count - 1), linearly. q from 0 to 1; from 0 to 100.
NdArray quantile(const NdArray& x, double q, const Axes& axis = none,
                 const KeepOptions& options = {});
NdArray percentile(const NdArray& x, double q, const Axes& axis = none,
                   const KeepOptions& options = {});

struct AverageOptions {
  std::optional<NdArray> weights = {};  // has x's shape, or one weight per index of the single axis
  bool keepdims = false;                // reduced axes stay, with size 1
};
// The mean, each element times its weight.
NdArray average(const NdArray& x, const Axes& axis = none, const AverageOptions& options = {});

// Rows are variables, columns observations.
NdArray cov(const NdArray& x, double ddof = 1);
NdArray corrcoef(const NdArray& x);

// The number of the bin, whose edges are sorted upwards, that each element lies in.
NdArray digitize(const NdArray& x, const NdArray& bins, bool right = false);
// The convolution of two vectors. Modes: full, same, valid.
NdArray convolve(const NdArray& a, const NdArray& v, std::string_view mode = "full");
// The area below samples `dx` apart.
NdArray trapezoid(const NdArray& y, double dx = 1, int64_t axis = -1);
// The curve through the points (xp, fp), xp sorted upwards, at x; its ends beyond them.
NdArray interp(const NdArray& x, const NdArray& xp, const NdArray& fp);

}  // namespace composit::numpy
