// Compiled functions as an operator of LibTorch, which captures see:
//
//   composit::evaluate(Tensor[] inputs, str graph, str compiled) -> Tensor[]
//
// `graph` is the graph's text, `compiled` says how it is compiled. The operator finds the compiled
// code in this process, or compiles it: a capture that was saved replays elsewhere. Its meaning,
// its derivative and its code in a compiled capture are those of the graph
// (composit/ops/rows/graphs.cpp).
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "flashlight/compiled_graph.h"

namespace flashlight {

// Calls the operator, so that scopes around record it.
std::vector<at::Tensor> evaluate_operator(const std::vector<at::Tensor>& inputs,
                                          const CompiledGraph& graph,
                                          const CompileSettings& settings);

}  // namespace flashlight
