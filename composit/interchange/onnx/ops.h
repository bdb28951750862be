// Operators of ONNX as nodes of a graph: "onnx::Conv".
//
//   LazyTensor y = call("Relu", {x}, {}, x.type());
//   LazyTensor z = reshaped(transposed(y, {1, 0}), {6});
//
// Attributes are integers, numbers, texts, and lists of them, under ONNX's names; an absent operand
// is an optional one that is left out. Types are always given: ONNX's inference is not repeated
// here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "composit/interchange/checks.h"
#include "composit/interchange/values.h"
#include "composit/ir/node.h"

namespace composit::onnx {

// The domain of the operations: "onnx".
inline constexpr std::string_view kDomain = "onnx";

// The results of an operator; or the only one.
LazyTensors calls(std::string_view op, const LazyTensors& operands, Attributes attributes,
                  std::vector<Type> results);
LazyTensor call(std::string_view op, const LazyTensors& operands, Attributes attributes,
                Type result);

using interchange::attribute;
using interchange::broadcast;
using interchange::checked;
using interchange::filled;
using interchange::integers;
using interchange::number;

// Operators whose types follow from their operands.
LazyTensor unary(std::string_view op, const LazyTensor& x);
LazyTensor binary(std::string_view op, const LazyTensor& x, const LazyTensor& y);   // as x's dtype
LazyTensor compare(std::string_view op, const LazyTensor& x, const LazyTensor& y);  // gives bool
LazyTensor where(const LazyTensor& condition, const LazyTensor& x, const LazyTensor& y);
LazyTensor cast_to(const LazyTensor& x, DType dtype);
LazyTensor reshaped(const LazyTensor& x, const Dims& sizes);
LazyTensor transposed(const LazyTensor& x, const std::vector<int64_t>& order);
LazyTensor expanded(const LazyTensor& x, const Dims& sizes);
// From `begin` to before `end` along an axis.
LazyTensor sliced(const LazyTensor& x, int64_t axis, int64_t begin, int64_t end, int64_t step = 1);
// "ReduceSum", … over these axes.
LazyTensor reduced(std::string_view op, const LazyTensor& x, const std::vector<int64_t>& axes,
                   bool keep);

}  // namespace composit::onnx
