#include "composit/interchange/onnx/rows.h"

namespace composit::onnx {

const interchange::RowTable& rows(int opset) {
  constexpr auto no_rows = [](std::vector<Row>&) {};
  const auto table_with = [](void (*last)(std::vector<Row>&)) {
    return new interchange::RowTable(
        {add_activation_rows, add_control_flow_rows, add_convolution_rows, add_elementwise_rows,
         add_indexing_rows, add_movement_rows, add_normalization_rows, add_pooling_rows,
         add_product_rows, add_quantization_rows, add_reduction_rows, last});
  };
  static const auto* of_20 = table_with(no_rows);
  static const auto* of_21 = table_with(add_block_rows);
  return opset < 21 ? *of_20 : *of_21;
}

bool fits_attribute(double value, const LazyTensor& x) {
  return x.dtype() != DType::float64 || static_cast<double>(static_cast<float>(value)) == value;
}

}  // namespace composit::onnx
