// Operators of ATen in terms of others that every target has, a row each, for targets that do not
// know them: factors of matrices, special functions, results as long as values say. A target's own
// row comes first.
//
//   const Row* row = common_rows().find(Symbol("aten::linalg_qr"));
//
// Loops are composit's (composit/ops/control_flow.h), which targets have as rows of their own. What
// a row asks of values it marks by `checked` (checks.h).
#pragma once

#include <vector>

#include "composit/interchange/row.h"

namespace composit::interchange {

const RowTable& common_rows();

void add_bessel_rows(std::vector<Row>& rows);
void add_decomposition_rows(std::vector<Row>& rows);
void add_gamma_rows(std::vector<Row>& rows);
void add_matrix_rows(std::vector<Row>& rows);
void add_normal_distribution_rows(std::vector<Row>& rows);
void add_number_part_rows(std::vector<Row>& rows);
void add_orthogonal_polynomial_rows(std::vector<Row>& rows);
void add_value_size_rows(std::vector<Row>& rows);
void add_window_rows(std::vector<Row>& rows);

}  // namespace composit::interchange
