// Functions of tensors as regions.
//
//   const Traced f({x.type()}, [&](const LazyTensors& blocks) { return LazyTensors{blocks[0] * y};
//   }); const Closed closed = close({f});     // closed.regions[0]: (x, y) -> x * y;
//   closed.outside: y
//
// A function is called once, on blocks: inputs that are arguments of a region.
#pragma once

#include <optional>
#include <vector>

#include "composit/ir/flat_map.h"
#include "composit/ir/graph.h"
#include "composit/ir/node.h"

namespace composit {

class Traced {
 public:
  // Calls `f` on a block per type (of its dtype and sizes, contiguous). UserError for a result that
  // is not there.
  Traced(const std::vector<Type>& types, const TensorFunction& f);

  const LazyTensors& blocks() const { return blocks_; }
  const LazyTensors& outputs() const { return outputs_; }
  // The nodes that `f` made, operands first; without nodes that existed before the call.
  const std::vector<NodePtr>& nodes() const { return nodes_; }
  // Replaces the outputs. The new ones may be tensors of `f`, its blocks, tensors from outside, and
  // nodes made of these since.
  void give(const LazyTensors& outputs);
  // Makes these values, which `f` computes, blocks of the function beside those it has.
  void cut(const LazyTensors& values);
  // True if a tensor comes from outside of `f`.
  bool is_outside(const LazyTensor& tensor) const;
  // Which blocks the outputs depend on.
  std::vector<bool> used() const;

 private:
  bool is_block(const LazyTensor& tensor) const { return places_.contains(tensor.hash()); }
  void collect();

  uint64_t begin_ = 0;  // serial of the first node that is the function's own
  LazyTensors blocks_, outputs_;
  FlatMap<Hash, size_t> places_;  // of blocks
  std::vector<NodePtr> nodes_;
};

// An input of this type that is no other one: for `cut`, as what a function has in place of a value
// that it does not compute.
LazyTensor fresh_block(const Type& type);

// Regions made of functions. Their inputs are the blocks in the order `order` (all blocks, if it is
// absent), followed by all values that any of the functions takes from outside.
struct Closed {
  std::vector<Region> regions;
  LazyTensors outside;
};
Closed close(const std::vector<Traced>& functions,
             const std::optional<std::vector<size_t>>& order = {});

// The type of each. UserError for an absent one.
std::vector<Type> tensor_types(const LazyTensors& tensors);

// The results of a region for `arguments`, one per input, as nodes.
LazyTensors call_region(const Graph& region, const LazyTensors& arguments);

}  // namespace composit
