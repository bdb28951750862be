// The canonical spelling of one node; see canonicalize.h.
#pragma once

#include <vector>

#include "composit/ir/node.h"

namespace composit {

// A node that gives the same, and which of its outputs is each output of the old one.
struct Spelling {
  NodePtr node;
  std::vector<uint32_t> outputs;
};

// `node` must be replaceable and have a row.
Spelling canonical_spelling(const NodePtr& node);

}  // namespace composit
