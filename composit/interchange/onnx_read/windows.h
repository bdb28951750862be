// Windows over the last axes of a tensor, as convolutions and poolings have them.
//
//   const Windows windows = windows_of(call, x, kernel);
//   windows.outputs;       // sizes of the result
//
// Padding is given, or follows from the sizes (`auto_pad`).
#pragma once

#include "composit/interchange/onnx_read/rows.h"

namespace composit::onnx_read {

struct Windows {
  Ints kernel, strides, dilations;
  Ints before, behind;  // padding per axis
  Ints outputs = {};    // sizes of the result
  bool ceil = false;    // windows that lie beyond the padding, in part, count as well

  size_t axes() const { return kernel.size(); }
  // True if padding is the same on both sides, at most half of a window, and nothing lies beyond.
  bool is_plain() const;
  // Elements that the last windows ask for beyond the padding.
  Ints beyond(const LazyTensor& x) const;
};

// Of `x`, whose first two axes are batch and channels. UserError for sizes that do not fit.
Windows windows_of(const OperatorCall& call, const LazyTensor& x, const Ints& kernel);
// `x` with padding, and what lies beyond it, of `value`.
LazyTensor padded(const LazyTensor& x, const Windows& windows, const Scalar& value);
// The sum of each window of `x`, without padding.
LazyTensor window_sums(const LazyTensor& x, const Windows& windows);
// A list of numbers per axis, `otherwise` where it is not there. UserError for another length.
Ints per_axis(const OperatorCall& call, std::string_view attribute, size_t axes, int64_t otherwise);

}  // namespace composit::onnx_read
