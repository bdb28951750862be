// Repeated pieces of a sequence of nodes.
//
//   const Sequence sequence = sequence_of(graph);
//   if (const auto repeat = best_repeat(sequence, limits))
//     repeat->begins;                                     // where the pieces start
//
// A piece is a run of nodes in the order of the graph, so that what it takes from outside stands
// before it, and making one node of it can close no circle. Two pieces are equal if their nodes
// are, one by one (operation, attributes, types), and take the same from within the piece; what
// they take from outside may differ.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "composit/ir/graph.h"

namespace composit {

// The nodes of a graph but for inputs and constants, and what they take from each other.
struct Sequence {
  struct Edge {
    uint32_t other;  // the node at the other end
    uint64_t code;   // which operand, which output, and how far apart
  };
  std::vector<NodePtr> nodes;
  std::vector<uint64_t> tokens;           // all of a node but where its operands come from
  std::vector<std::vector<Edge>> before;  // per node: those whose outputs it takes
  std::vector<std::vector<Edge>> behind;  // and those that take its outputs
};
// `effects`: nodes with an effect may come back. Each has its place among the others in it, so as a
// rule none does.
Sequence sequence_of(const Graph& graph, bool effects = false);

// True if a constant belongs to the piece that uses it. A number beside tensors must stay visible
// as a constant, because its dtype counts less in promotion.
bool is_part_of_piece(const LazyTensor& operand);

struct Repeat {
  size_t length = 0;
  std::vector<size_t> begins;  // ascending; pieces do not overlap
  // Nodes that fewer are left when each piece is one call.
  int64_t saved() const;
};

// The module that all nodes of a piece belong to: the longest scope they have in common.
std::string common_scope(const Sequence& sequence, size_t begin, size_t length);

struct RepeatLimits {
  size_t min_length = 4;
  int64_t min_saved = 8;
  // If nodes have scopes, a piece consists of what one module does without a break.
  bool whole_modules = false;
  // Pieces may have effects.
  bool effects = false;
};

// The one that saves most among lengths that are tried: a geometric series, and distances at which
// nodes come back. Nothing where none saves enough. O(n log n) for each of at most about a hundred
// lengths.
std::optional<Repeat> best_repeat(const Sequence& sequence, const RepeatLimits& limits);

}  // namespace composit
