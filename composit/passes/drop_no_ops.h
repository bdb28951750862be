// Nodes that give their operand back are dropped.
//
//   Graph fewer = drop_no_ops(graph);
//   Graph for_inference = drop_no_ops(graph, {.detach = true});
//
// Dropped, where operand and result have the same type, strides included:
//   * what a decomposition shows to be its operand: dropout in eval mode
//   * what copies its operand element by element: views, permutations, slices, casts, clones,
//     `contiguous` that change nothing
//   * x * 1, x / 1, x - 0 (x + 0 is not x: -0 + 0 is 0)
// Two permutations become one, and so do two reshapes; the negative of a negative is x.
//
// `detach`, and what ran under no_grad, say where gradients end: they stay unless asked for.
#pragma once

#include "composit/ir/graph.h"

namespace composit {

// Options that allow to drop more, or less.
struct DropOptions {
  bool detach = false;  // the graph is not going to be differentiated
  // Slices of everything stay: where the graph stands for others of other sizes, they are slices of
  // a part there.
  bool keep_slices = false;
};

Graph drop_no_ops(const Graph& graph, const DropOptions& options = {});

}  // namespace composit
