// Values that are known while a model is read: they follow from constants and weights alone.
//
//   Known known(/*folds=*/true);
//   if (const auto sizes = known.find(operand)) ...     // an Array
//   result = known.folded(result);                      // a constant, where it is a small one
//
// ONNX computes sizes, axes and indices in the graph; here they are numbers.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <unordered_map>

#include "composit/ir/array.h"
#include "composit/ir/node.h"

namespace composit::onnx_read {

class Known {
 public:
  // `folds`: false leaves all but single numbers to the graph, where `folded` takes them out of it.
  explicit Known(bool folds) : folds_(folds) {}
  bool folds() const { return folds_; }
  // The value; nothing where it depends on an input of the model, or is too large to look at.
  std::optional<Array> find(const LazyTensor& tensor);
  // The tensor as a constant where it follows from constants and from weights of integers, and is
  // small; else itself. Weights of floating point stay what they are: a derivative asks for them.
  LazyTensor folded(const LazyTensor& tensor);

 private:
  // What a value follows from; the larger one of several counts.
  enum class Source { constants, weights, inputs };
  Source source_of(const NodePtr& node);

  bool folds_;
  std::unordered_map<const Node*, std::pair<NodePtr, Source>> sources_;
  std::unordered_map<const Node*, std::map<uint32_t, Array>> found_;  // of nodes of `sources_`
};

}  // namespace composit::onnx_read
