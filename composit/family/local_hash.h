// What nodes of two captures have in common.
#pragma once

#include "composit/ir/node.h"

namespace composit {

// Everything of a node but its operands and its place among effects.
Hash local_hash(const Node& node);

// Makes a view of memory, and so reads the strides of its operands, which a region takes as dense.
bool views_memory(const Node& node);

}  // namespace composit
