// Operators that write to their arguments though their schemas do not say so, and the operators
// that return what those would write.
#pragma once

#include "composit/ir/node.h"
#include "composit/op/schema.h"

namespace composit::pt2 {

// The schema of the operator that gives all results of `node`; nullptr where its own does, or where
// there is none.
const Schema* functional_spelling(const Node& node);

}  // namespace composit::pt2
