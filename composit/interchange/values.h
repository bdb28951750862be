// Constants and other nodes, and the sizes of what broadcasts.
#pragma once

#include <string_view>
#include <vector>

#include "composit/ir/node.h"

namespace composit::interchange {

LazyTensor integers(const std::vector<int64_t>& values);  // of int64, along one axis
LazyTensor filled(double value, DType dtype, const Dims& sizes);
LazyTensor number(double value, DType dtype);

NamedAttribute attribute(std::string_view name, Attribute value);
// The results of a new node.
LazyTensors results_of(std::string_view op, const LazyTensors& operands, Attributes attributes,
                       std::vector<Type> results);

// The sizes of both, broadcast.
Dims broadcast(const Dims& a, const Dims& b);

// True where an operator that takes a value of sizes `from` to sizes `to`, and does nothing where
// they are equal, is left out.
bool is_left_out(const Dims& from, const Dims& to);

// While one of these lives, such operators are written on this thread: two sizes that are equal may
// be equal by chance, and others when the model runs.
class AllOperators {
 public:
  AllOperators();
  ~AllOperators();
  AllOperators(const AllOperators&) = delete;
  AllOperators& operator=(const AllOperators&) = delete;

 private:
  const bool before_;
};

}  // namespace composit::interchange
