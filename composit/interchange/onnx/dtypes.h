// ONNX's numbers of dtypes (TensorProto.DataType in onnx.proto).
#pragma once

#include <optional>

#include "composit/ir/dtype.h"

namespace composit::onnx {

// Nothing for a dtype that ONNX does not have.
std::optional<int> data_type(DType dtype);
// UserError there.
int data_type_of(DType dtype);

}  // namespace composit::onnx
