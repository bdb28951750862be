// Types and values in MLIR's text.
//
//   type_text(tensor_type(DType::float32, {2, 3}));        // "tensor<2x3xf32>"
//   value_text(array);                                     // "dense<[1, 2]>"
#pragma once

#include <string>

#include "composit/ir/array.h"

namespace composit::stablehlo {

// UserError for a dtype that MLIR has no name for, and for sparse tensors.
std::string element_text(DType dtype);
std::string type_text(const Type& type);
// One number for all, a list, or the bytes as hexadecimal digits.
std::string value_text(const Array& array);

}  // namespace composit::stablehlo
