// A graph of ONNX's operators.
//
//   const Lowered lowered = lower(graph);
//   print(lowered.graph);                       // %Conv = onnx::Conv(%x, %weight, …)
#pragma once

#include <string>
#include <vector>

#include "composit/ir/graph.h"

namespace composit::onnx {

struct Lowered {
  Graph graph;  // outputs of the graph, then a bool for each guard; no effects
  // What each guard asks, for people; in the order of their outputs.
  std::vector<std::string> guards = {};
};

// Each node by the row for its operation, or by its definition. UserError that lists all nodes that
// have neither, with module and line.
Lowered lower(const Graph& graph);

}  // namespace composit::onnx
