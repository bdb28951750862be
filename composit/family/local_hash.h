// What nodes of two captures have in common.
#pragma once

#include "composit/ir/node.h"

namespace composit {

// Everything of a node but its operands and its place among effects.
Hash local_hash(const Node& node);

}  // namespace composit
