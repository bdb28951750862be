// Branches and loops of a graph, run by LibTorch: each region is a plan of its own.
//
//   const ControlFlow branch(node, options);          // composit::cond, while_loop, scan, map
//   std::vector<at::Tensor> results = branch.run(operands);
//
// The operators of a region run as they were recorded, so a branch has the bits of the program.
#pragma once

#include <vector>

#include "tracer/replay.h"

namespace flashlight::tracer {

class ControlFlow {
 public:
  // True for the nodes that this class runs.
  static bool is(const composit::Node& node);

  // `options` of the plan that the node belongs to.
  ControlFlow(const composit::Node& node, const PlanOptions& options);

  // `operands`: one per operand of `node`, in order. UserError where a loop goes on after its
  // limit, or an operator of a region refuses.
  std::vector<at::Tensor> run(const composit::Node& node,
                              const std::vector<at::Tensor>& operands) const;

 private:
  using Tensors = std::vector<at::Tensor>;
  Tensors cond(const Tensors& operands) const;
  Tensors loop(const composit::Node& node, const Tensors& operands) const;
  Tensors scan(const composit::Node& node, const Tensors& operands) const;

  std::vector<Plan> regions_;  // in the order of the node's attributes
};

}  // namespace flashlight::tracer
