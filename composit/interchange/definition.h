// What an operation is in terms of others, for targets that do not know it.
//
//   if (const std::optional<Graph> parts = definition_of(node)) write(*parts);
#pragma once

#include <optional>

#include "composit/ir/graph.h"

namespace composit::interchange {

// A graph whose inputs are the operands of `node` that are there, and whose outputs are its
// results: by the decomposition of its row, or by its loops. Nothing where a row defines it by
// neither, or where it has no row. UserError where its loops have no operators (tensorize.h).
std::optional<Graph> definition_of(const Node& node);

// What a composite operation that composit does not know was when it ran: the operators inside,
// less guards. Nothing where it has none.
std::optional<Graph> body_of(const Node& node);

// True if sizes of its results may be others for other values of the same types: a capture holds
// for those that it saw.
bool sizes_follow_values(const Node& node);

}  // namespace composit::interchange
