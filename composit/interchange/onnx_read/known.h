// Values that are known while a model is read: they follow from constants and weights alone.
//
//   Known known;
//   if (const auto sizes = known.find(operand)) ...     // an Array
//   result = known.folded(result);                      // a constant, where it is a small one
//
// ONNX computes sizes, axes and indices in the graph; here they are numbers.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>

#include "composit/ir/array.h"
#include "composit/ir/node.h"

namespace composit::onnx_read {

class Known {
 public:
  // The value; nothing where it depends on an input of the model, or is too large to look at.
  std::optional<Array> find(const LazyTensor& tensor);
  // The tensor as a constant where it follows from constants and from weights of integers, and is
  // small; else itself. Weights of floating point stay what they are: a derivative asks for them.
  LazyTensor folded(const LazyTensor& tensor);

 private:
  // What a value follows from; the larger one of several counts.
  enum class Source { constants, weights, inputs };
  Source source_of(const NodePtr& node);

  std::unordered_map<const Node*, std::pair<NodePtr, Source>> sources_;
};

}  // namespace composit::onnx_read
