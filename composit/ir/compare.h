// Lists the differences between two graphs, for readers and for `check`.
//
//   for (const Difference& difference : compare(before, after))
//     std::cout << str(difference) << '\n';
//
// Nodes are first aligned, in order, by operation, attributes, scope and origin of their operands;
// later rounds compare fewer of these. Aligned nodes are then compared part by part, and operands
// are equal if they are aligned. So one changed attribute is one difference, although all later
// hashes change. Inputs are aligned by name. Time is nearly linear if the graphs are similar.
//
// No difference means equal graphs, and equal graphs have none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "composit/ir/graph.h"

namespace composit {

// The kinds of difference.
enum class DifferenceKind : uint8_t {
  added,      // a node or an input that only `after` has
  removed,    // one that only `before` has
  attribute,  // `key`: its name. The value of a constant is its attribute "value"
  execution,  // `key`: the name of an execution attribute
  type,       // `key`: "output 0"
  operand,    // `key`: "operand 0"
  effect,     // the node runs at another place among the effects
  signature   // no node; `key`: "output 0", "mutation of w", "order of inputs", "number of outputs"
};
// "added", "removed", …
std::string_view name(DifferenceKind kind);

// One difference between the graphs.
struct Difference {
  DifferenceKind kind;   // the kind of difference
  std::string key = {};  // which one, as said at the kinds
  std::string old_value = {},
              new_value = {};  // printed; the whole node where it was added or removed
  NodePtr before = nullptr, after = nullptr;  // the two nodes; null where there is none
  std::string node_name = {};  // in the text of `after`, or where there is none, of `before`
  std::string region = {};     // "%layer_norm.body/%cond.then" for a node of a region

  // The node after, or where there is none, before.
  const Node* node() const { return after ? after.get() : before.get(); }
  // Annotations of the node; empty where there is none.
  std::string_view scope() const;
  std::string_view source() const;
};

// All differences, those of regions included.
std::vector<Difference> compare(const Graph& before, const Graph& after);

// One line: "~ %sum = aten::sum.dim_IntList: attribute dim: [0] -> [1]  # scope=fc1
// source=main.cpp:12"
std::string str(const Difference& difference);

}  // namespace composit
