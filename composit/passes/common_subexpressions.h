// Equal values are computed once.
//
//   Graph shared = common_subexpressions(graph);
//   // shared == graph, shared.size() <= graph.size()
//
// A node's hash stands for its value, so that what remains is to keep one node per hash: the first.
// Types with their strides, the way LibTorch ran a node, and its place among the effects are part
// of the hash; two random draws stay two. The graph stays equal, its hash the same. Equal regions
// become one object. What several modules compute belongs to the module around them then, and
// stands before the first of them, if it takes nothing from there. Nodes that nothing depends on
// are no part of any graph; one with an effect is a root, and stays.
#pragma once

#include "composit/ir/graph.h"

namespace composit {

Graph common_subexpressions(const Graph& graph);

}  // namespace composit
