// Operators of ONNX, a row each: what they are in operators of ATen.
//
//   const Row* row = find_row("", "Conv");
//   LazyTensors results = row->rule(call);
//
// A rule makes nodes of a call by composit's functions, and refuses what it does not understand.
// One file per family in rows/; each adds its rows in a function that rows.cpp lists.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "composit/interchange/onnx/fields.h"
#include "composit/interchange/onnx_read/operator_call.h"
#include "composit/ops/functions.h"

namespace composit::onnx_read {

// Versions of ai.onnx that are understood.
inline constexpr int64_t kOldestOpset = 6, kNewestOpset = 28;

using RowRule = LazyTensors (*)(const OperatorCall& call);

struct Row {
  std::string_view op;  // "Conv"
  RowRule rule;
};

// onnxruntime writes these when it optimizes and quantizes models.
using onnx::kMicrosoft;

// nullptr: the operator is not known.
const Row* find_row(std::string_view domain, std::string_view op);
// All rows of a domain ("": ai.onnx) in order of their names, for tables.
const std::vector<Row>& all_rows(std::string_view domain = "");

void add_activation_rows(std::vector<Row>& rows);
void add_attention_rows(std::vector<Row>& rows);
void add_constant_rows(std::vector<Row>& rows);
void add_convolution_rows(std::vector<Row>& rows);
void add_elementwise_rows(std::vector<Row>& rows);
void add_indexing_rows(std::vector<Row>& rows);
void add_loss_rows(std::vector<Row>& rows);
void add_movement_rows(std::vector<Row>& rows);
void add_normalization_rows(std::vector<Row>& rows);
void add_picture_rows(std::vector<Row>& rows);
void add_pooling_rows(std::vector<Row>& rows);
void add_product_rows(std::vector<Row>& rows);
void add_quantization_rows(std::vector<Row>& rows);
void add_recurrent_rows(std::vector<Row>& rows);
void add_reduction_rows(std::vector<Row>& rows);
void add_resize_rows(std::vector<Row>& rows);
// Of com.microsoft.
void add_microsoft_attention_rows(std::vector<Row>& rows);
void add_microsoft_fused_rows(std::vector<Row>& rows);
void add_microsoft_quantized_rows(std::vector<Row>& rows);

// ---- for rules ----------------------------------------------------------------------------------

// The only result of an operation of ATen: op("aten::relu", {x}).
LazyTensor op(std::string_view name, std::vector<ArgumentValue> arguments);
// A number as a tensor without axes, of a dtype.
LazyTensor number_like(double value, DType dtype);
LazyTensor integers(const Ints& values);  // a constant list of int64
// Sums of squares and the like of small floats are made in float32, as runtimes make them.
LazyTensor cast(const LazyTensor& x, DType dtype);
// With a cache or a table of it for each token, x [batch, heads, tokens, size] turned in pairs, of
// its first `size` elements: neighbours, or else halves.
LazyTensor rotated(const LazyTensor& x, const LazyTensor& cosines, const LazyTensor& sines,
                   int64_t size, bool pairs);
// The sizes that both broadcast to. UserError where they do not.
Dims broadcast(const Dims& a, const Dims& b);
// The sizes `x` has along axes from `first` on.
Dims sizes_from(const LazyTensor& x, size_t first);
// x without axes from `begin` to before `end`, which become one.
LazyTensor joined_axes(const LazyTensor& x, int64_t begin, int64_t end);
// Product of sizes. UserError where that is no number of 64 bits.
int64_t product_of(const Ints& sizes);
// The same sizes. UserError where one is negative, or memory has not so many elements.
Dims expect_sizes(const Ints& sizes);
// UserError where the operator is called otherwise than these texts say.
void expect_one_of(const std::string& attribute, const std::string& value,
                   const std::vector<std::string>& known);

}  // namespace composit::onnx_read
