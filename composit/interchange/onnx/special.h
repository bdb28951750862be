// Special functions in ONNX's operators, which has none of them.
#pragma once

#include "composit/interchange/onnx/ops.h"

namespace composit::onnx {

// Of floating point numbers, as torch's functions of these names are.
LazyTensor erfinv(const LazyTensor& x);
LazyTensor lgamma(const LazyTensor& x);
LazyTensor digamma(const LazyTensor& x);
LazyTensor atan2(const LazyTensor& y, const LazyTensor& x);

}  // namespace composit::onnx
