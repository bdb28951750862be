// The difference of two tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include "composit/ir/hash.h"

namespace flashlight {

struct Distance {
  bool equal = true;    // bit for bit
  double absolute = 0;  // largest difference; infinite if NaN meets a number
  double relative = 0;  // `absolute` over the largest finite magnitude of `expected`
  uint64_t ulp =
      0;  // floating point only: largest number of representable values between two elements
};

// The distance of two tensors of the same sizes and dtype; UserError for others.
Distance distance(const at::Tensor& actual, const at::Tensor& expected);

// A hash of a tensor's type and content: equal digests mean equal bits. Zero for tensors without
// CPU memory.
composit::Hash digest(const at::Tensor& tensor);

}  // namespace flashlight
