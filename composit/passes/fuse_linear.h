// Matrix products with a transposed weight, with what stands around them, become `aten::linear`:
// the last step of `canonicalize`, which says what it assumes.
#pragma once

#include "composit/ir/graph.h"

namespace composit {

Graph fuse_linear(const Graph& graph);

}  // namespace composit
