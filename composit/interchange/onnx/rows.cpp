#include "composit/interchange/onnx/rows.h"

namespace composit::onnx {

const interchange::RowTable& rows() {
  static const auto* table = new interchange::RowTable(
      {add_activation_rows, add_control_flow_rows, add_convolution_rows, add_elementwise_rows,
       add_indexing_rows, add_movement_rows, add_normalization_rows, add_pooling_rows,
       add_product_rows, add_reduction_rows});
  return *table;
}

bool fits_attribute(double value, const LazyTensor& x) {
  return x.dtype() != DType::float64 || static_cast<double>(static_cast<float>(value)) == value;
}

}  // namespace composit::onnx
