// Operators of ATen that StableHLO has, a row each (composit/interchange/row.h). One file per
// family in rows/; each adds its rows in a function that rows.cpp lists.
#pragma once

#include <vector>

#include "composit/interchange/row.h"
#include "composit/interchange/stablehlo/ops.h"

namespace composit::stablehlo {

using interchange::axes_of;
using interchange::axis_of;
using interchange::bool_of;
using interchange::int_of;
using interchange::ints_of;
using interchange::kAsMany;
using interchange::number_of;
using interchange::real_of;
using interchange::Row;
using interchange::tensor_of;

const interchange::RowTable& rows();

void add_control_flow_rows(std::vector<Row>& rows);
void add_convolution_rows(std::vector<Row>& rows);
void add_elementwise_rows(std::vector<Row>& rows);
void add_indexing_rows(std::vector<Row>& rows);
void add_matrix_rows(std::vector<Row>& rows);
void add_movement_rows(std::vector<Row>& rows);
void add_pooling_rows(std::vector<Row>& rows);
void add_product_rows(std::vector<Row>& rows);
void add_reduction_rows(std::vector<Row>& rows);
void add_sorting_rows(std::vector<Row>& rows);

}  // namespace composit::stablehlo
