#include "composit/interchange/stablehlo/rows.h"

namespace composit::stablehlo {

const interchange::RowTable& rows() {
  static const auto* table = new interchange::RowTable(
      {add_control_flow_rows, add_convolution_rows, add_elementwise_rows, add_indexing_rows,
       add_matrix_rows, add_movement_rows, add_pooling_rows, add_product_rows, add_reduction_rows,
       add_sorting_rows});
  return *table;
}

}  // namespace composit::stablehlo
