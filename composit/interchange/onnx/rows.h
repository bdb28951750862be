// Operators of ATen that ONNX has, a row each (composit/interchange/row.h). One file per family in
// rows/; each adds its rows in a function that rows.cpp lists.
#pragma once

#include <vector>

#include "composit/interchange/onnx/ops.h"
#include "composit/interchange/row.h"

namespace composit::onnx {

using interchange::axes_of;
using interchange::axis_of;
using interchange::bool_of;
using interchange::int_of;
using interchange::ints_of;
using interchange::number_of;
using interchange::real_of;
using interchange::Row;
using interchange::tensor_of;

// Those that models of this opset may have.
const interchange::RowTable& rows(int opset);

// An operator of ours that takes a weight of bytes and gives the integers of 4 bits that they are;
// model.cpp writes an initializer of them in its place.
inline constexpr std::string_view kInt4Initializer = "Int4Initializer";

void add_activation_rows(std::vector<Row>& rows);
void add_control_flow_rows(std::vector<Row>& rows);
void add_convolution_rows(std::vector<Row>& rows);
void add_elementwise_rows(std::vector<Row>& rows);
void add_indexing_rows(std::vector<Row>& rows);
void add_movement_rows(std::vector<Row>& rows);
void add_normalization_rows(std::vector<Row>& rows);
void add_pooling_rows(std::vector<Row>& rows);
void add_product_rows(std::vector<Row>& rows);
void add_quantization_rows(std::vector<Row>& rows);
void add_block_rows(std::vector<Row>& rows);  // from opset 21 on
void add_reduction_rows(std::vector<Row>& rows);

// True if a number may be an attribute of an operator on `x`: ONNX keeps it in float32, which is
// too few digits for float64.
bool fits_attribute(double value, const LazyTensor& x);

}  // namespace composit::onnx
