// Graphs of outputs that depend on inputs which hold their values.
//
//   const auto [graph, values] = held_graph({y});
//   evaluate(graph, values);
#pragma once

#include <utility>
#include <vector>

#include "composit/ir/graph.h"

namespace composit::test {

struct HeldGraph {
  Graph graph;
  std::vector<Array> values;  // of its inputs, in order
};

inline HeldGraph held_graph(const LazyTensors& outputs) {
  HeldGraph one;
  Graph::Parts parts{.outputs = outputs};
  const Graph all(parts);
  for (const NodePtr& node : all.nodes()) {
    if (!is_input(*node)) continue;
    parts.inputs.push_back({node, 0});
    one.values.push_back(node->held());
  }
  one.graph = Graph(std::move(parts));
  return one;
}

}  // namespace composit::test
