// Operations that their row defines by others become those others, all the way down: what is left
// has a loop form, a scalar expression or a native function.
//
//   Graph small_steps = decompose(graph);
//   Graph g = decompose(graph, {.keep = [](const Node& node) { return is_softmax(node); }});
//
// The parts take over scope, source and grad mode. Nodes with an effect are kept, and those whose
// decomposition does not give as many results, or refuses the case (dropout in training).
#pragma once

#include <functional>

#include "composit/ir/graph.h"

namespace composit {

struct DecomposeOptions {
  std::function<bool(const Node&)> keep = {};  // nodes that stay closed; none by default
  // Composite operations without a row become the nodes that LibTorch ran for them.
  bool open_bodies = false;
};

Graph decompose(const Graph& graph, const DecomposeOptions& options = {});

}  // namespace composit
