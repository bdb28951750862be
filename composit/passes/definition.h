// Reads the definition of a node from its row, for rewrites that work for all operations.
//
//   if (const auto parts = decomposition(node)) inline_parts(*parts);   // a graph on blocks
//   if (same_loops(node, other)) join(node, other);       // they compute the same
#pragma once

#include <optional>

#include "composit/ir/graph.h"
#include "composit/ir/transform.h"
#include "composit/ops/operations.h"

namespace composit {

// The rewrite that keeps a node where `rewrite` meets a row that refuses it: operands or attributes
// of a legal graph need not be what the row expects.
Rewrite unless_refused(Rewrite rewrite);

// The operation whose row speaks for `node`: it takes the node's operands, all that it needs among
// them, and gives as many results. nullptr where there is none.
const Operation* row_for(const Node& node);

// The decomposition of `node` as a graph: its inputs are blocks for the operands of the node (those
// that are there), its outputs have the types of the node's. Wrapped numbers stay what they are.
// Nothing: the row has no decomposition, refuses the case, or gives other results than the node
// has.
std::optional<Graph> decomposition(const Node& node);

// Stand-ins for the operands of `node`, for a graph that takes its place: a block for each that is
// there, which `blocks` gets; wrapped numbers stay what they are, so that rules see them.
LazyTensors blocks_for(const Node& node, LazyTensors& blocks);

// The nodes of `decomposition(whole)` or of another graph on its operands, in place of `whole`:
// with its place, scope, source and grad mode.
LazyTensors in_place_of(const Node& whole, const Graph& parts);

// The loop form of `node`, without the operands' types; nothing where it has none.
std::optional<Loops> loops_of(const Node& node);
bool same_loops(const Node& a, const Node& b);

// True if `node` may be replaced by an equal value: it is pure, and nothing was recorded of how it
// ran. `grad`: also accepts a node that ran under no_grad.
bool is_replaceable(const Node& node, bool grad = true);

// True if every element of `tensor` is known to be `value` (+0 for a zero): it is a constant of one
// element, or `aten::full`.
bool is_filled_with(const LazyTensor& tensor, double value);

// `name` applied to `arguments` in place of `node`, whose outputs are of the same types.
NodePtr respelled(const Node& node, std::string_view name, std::vector<ArgumentValue> arguments);

}  // namespace composit
