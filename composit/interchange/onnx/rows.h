// Operators of ATen that ONNX has, a row each.
//
//   const Row* row = find_row(Symbol("aten::relu"));
//   LazyTensors results = row->rule(call, types);
//
// A rule makes ONNX's nodes (ops.h) of a call; results that it leaves out (none at all) stand for a
// case that ONNX's operator does not do, which is then written by its definition. One file per
// family in rows/; each adds its rows in a function that rows.cpp lists.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "composit/interchange/onnx/ops.h"
#include "composit/op/call.h"

namespace composit::onnx {

// `results`: the types of the results, as the graph has them.
using RowRule = LazyTensors (*)(const Call& call, const std::vector<Type>& results);

struct Row {
  std::string_view op;  // of ATen: "aten::relu"
  RowRule rule;
};

// nullptr: ONNX has no operator for it.
const Row* find_row(Symbol op);
// All rows, for tables.
const std::vector<Row>& all_rows();

void add_activation_rows(std::vector<Row>& rows);
void add_convolution_rows(std::vector<Row>& rows);
void add_elementwise_rows(std::vector<Row>& rows);
void add_indexing_rows(std::vector<Row>& rows);
void add_movement_rows(std::vector<Row>& rows);
void add_normalization_rows(std::vector<Row>& rows);
void add_pooling_rows(std::vector<Row>& rows);
void add_product_rows(std::vector<Row>& rows);
void add_reduction_rows(std::vector<Row>& rows);

// ---- arguments of a call ------------------------------------------------------------------------

const LazyTensor& tensor_of(const Call& call, std::string_view name);
std::vector<int64_t> ints_of(const Call& call, std::string_view name);  // empty where it is none
int64_t int_of(const Call& call, std::string_view name);
bool bool_of(const Call& call, std::string_view name);
double real_of(const Call& call, std::string_view name);
// An axis counted from the front.
int64_t axis_of(const Call& call, std::string_view name, const LazyTensor& x);
// Axes counted from the front, in order; all of them, where none is given.
std::vector<int64_t> axes_of(const Call& call, std::string_view name, const LazyTensor& x);
// True if a number may be an attribute of an operator on `x`: ONNX keeps it in float32, which is
// too few digits for float64.
bool fits_attribute(double value, const LazyTensor& x);
// The number that a Scalar is.
double number_of(const Scalar& scalar);

}  // namespace composit::onnx
