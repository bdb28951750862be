// Views that a program writes through. Whether `reshape` gives a view or a copy follows from
// strides, and these from sizes: a graph in which the write reaches the tensor behind the view
// holds for views alone.
#pragma once

#include <set>

#include "composit/ir/graph.h"

namespace composit {

// Results of operators that may be views of their operand, and that operators in place write.
std::set<const Node*> written_views(const Graph& graph);

// UserError if `node` gives a copy and `example` a view, or the other way round; `example` is one
// of `written_views`, and both have the same operation.
void expect_same_memory(const Node& node, const Node& example);

}  // namespace composit
