#include "composit/interchange/common_rows.h"

namespace composit::interchange {

const RowTable& common_rows() {
  static const auto* table =
      new RowTable({add_bessel_rows, add_decomposition_rows, add_gamma_rows, add_matrix_rows,
                    add_normal_distribution_rows, add_number_part_rows,
                    add_orthogonal_polynomial_rows, add_value_size_rows, add_window_rows});
  return *table;
}

}  // namespace composit::interchange
