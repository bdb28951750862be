// Checks that a graph is legal.
//
//   verify(graph);   // after every pass; InternalError with the reason and the nodes around it
//
// The rules, beside those that types enforce and node.h gives:
//   * A type has sizes and strides >= 0, and memory that a 64-bit integer can count in bytes.
//     The type of an undefined tensor is `undefined_type()`.
//   * A node's arguments cover its operands in order; an operand is an output its node has.
//     Attributes have unique names, enumerators are in range, arrays and regions have values.
//   * Inputs have unique names, and every input a node needs is listed. A mutation's target is an
//     input, and of no other mutation; its value has the same dtype, device and sizes.
//   * Nodes with an effect have unique places, and are listed in their order.
//   * A region is closed: its inputs are blocks, and it needs nothing else. One with effects
//     belongs to a node with an effect. The region `body` in `execution`, with which a captured
//     composite says what it did, takes the node's operands (without absent ones) and returns its
//     outputs.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "composit/ir/graph.h"
#include "composit/ir/node.h"
#include "composit/ir/type.h"

namespace composit {

// The maximal depth of regions within regions, and of lists within lists.
inline constexpr size_t kMaxNesting = 64;
inline constexpr size_t kMaxRank = 255;  // axes of a tensor

// InternalError with the rule that is broken, and the nodes around it.
void verify(const Graph& graph);

// The first rule that a part breaks; nothing if it is legal. The part alone is checked, without the
// nodes that it refers to: a node's operands, the nodes of a region, the nodes between a graph's
// inputs and outputs.
std::optional<std::string> fault_of(const Type& type);
std::optional<std::string> fault_of(const Node& node);
std::optional<std::string> fault_of(const Graph::Parts& parts);

}  // namespace composit
