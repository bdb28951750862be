// Operations of a kind that come more than once become calls of one region each.
//
//   Graph outlined = outline_nodes(graph, [](const Node& node) { return is_norm(node); });
//
// For code: what takes many lines is written once (outline_repeats finds pieces of several nodes).
// Equal are nodes of the same operation, attributes and types, here or in regions. `wanted` is
// asked once for those that are equal, and only where there are several. Nodes with an effect stay.
#pragma once

#include <functional>

#include "composit/ir/graph.h"

namespace composit {

Graph outline_nodes(const Graph& graph, const std::function<bool(const Node&)>& wanted);

}  // namespace composit
