// Types of a node's results at other sizes than those of an example.
#pragma once

#include <vector>

#include "composit/ir/node.h"
#include "composit/op/operation.h"

namespace composit {

// The types that `node` has in place of `example`'s: sizes as `sizes` says, one list per output;
// all else as in the example. Strides are those of views of the operands where the example's are;
// those of an operand that is written in place; or dense in the example's order of axes.
// `operation`: of both nodes; nullptr: there is none. `node` and `example` have the same operation
// and as many operands.
std::vector<Type> result_types(const Node& node, const Node& example, const Operation* operation,
                               const std::vector<Dims>& sizes);

// True if the first result is a view of operands as their strides are.
bool is_view(const Node& node, const Operation& operation);

// Strides that axes of extent 1 have address nothing: equal but for those.
bool same_but_for_unit_strides(const Type& a, const Type& b);

}  // namespace composit
