// A value of the graph as rules see it. Arithmetic on it, and functions named as in ATen, are in
// composit/ops/functions.h.
#pragma once

#include <functional>
#include <vector>

#include "composit/ir/node.h"

namespace composit {

class Tensor {
 public:
  Tensor() = default;                                     // absent
  Tensor(LazyTensor value) : value_(std::move(value)) {}  // NOLINT
  // The same as an edge of the graph.
  operator const LazyTensor&() const { return value_; }  // NOLINT
  const LazyTensor& lazy() const { return value_; }      // the same as an edge of the graph

  bool defined() const { return static_cast<bool>(value_); }  // whether it is there
  // Type, dtype, number of axes and of elements; of a tensor that is there.
  const Type& type() const { return value_.type(); }
  DType dtype() const { return type().dtype; }
  int64_t rank() const { return static_cast<int64_t>(type().rank()); }
  int64_t numel() const { return type().numel(); }
  // Axes count from the end where they are negative.
  int64_t size(int64_t axis) const;
  // The sizes of all axes.
  std::vector<int64_t> sizes() const;

 private:
  LazyTensor value_;
};

// Some may be absent.
using Tensors = std::vector<Tensor>;
// Results of inputs, all as nodes.
using TensorFunction = std::function<Tensors(const Tensors& inputs)>;

}  // namespace composit
