// ONNX's numbers of dtypes (TensorProto.DataType in onnx.proto).
#pragma once

#include <cstdint>
#include <optional>

#include "composit/ir/dtype.h"

namespace composit::onnx {

// Nothing for a dtype that ONNX does not have.
std::optional<int> data_type(DType dtype);
// UserError there.
int data_type_of(DType dtype);
// Nothing for a number that is no dtype here: text, types of less than a byte.
std::optional<DType> dtype_of(int64_t data_type);

}  // namespace composit::onnx
