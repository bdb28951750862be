// Scalar functions as ONNX's operators on whole tensors.
#pragma once

#include "composit/interchange/onnx/ops.h"
#include "composit/op/expr.h"

namespace composit::onnx {

// `function` of `arguments`, which broadcast; its result is of `dtype`. UserError for a function
// that ONNX has no operators for.
LazyTensor apply(Function function, const LazyTensors& arguments, DType dtype);

}  // namespace composit::onnx
