// Decides for derivatives whether a value is kept, or recomputed for its later uses.
//
//   is_cheap(*(x * y).node)          // yes: as soon done as loaded
//   is_cheap(*tanh(x).node)          // no; nor sums, products of matrices, loops
#pragma once

#include "composit/ir/node.h"

namespace composit {

// Moves elements, or works on them one by one with arithmetic and comparisons.
bool is_cheap(const Node& node);

}  // namespace composit
