// What captures of one program at several sizes have in common, node by node.
#pragma once

#include <vector>

#include "composit/ir/graph.h"

namespace composit {

// A hash for each node that is no input, and one for what the graph returns and writes: of the
// operation, its operands and its attributes, but for integers and floats. Inputs count by name.
// Graphs of equal structure can be unified.
std::vector<Hash> structure_of(const Graph& graph);

// The same of one node, operands left out.
Hash form_of(const Node& node);

}  // namespace composit
