// Makes one graph of captures of a program that read other answers to questions about values.
//
//   Graph both = merge_branches({on_true, on_false});   // … composit::cond(%gt, …) …
//
// The captures are alike up to the first bool that they read differently. What each of them
// computes behind it becomes an arm of a `composit::cond`, but for the end that both have in
// common: the last nodes that are equal but for the values that arms give them. Nothing is guessed:
// with an answer, the graph computes what the capture with that answer does.
//
// Arms are pure, so
//   * what an arm writes is a result, and is written behind; the other arm gives the old value;
//   * a guard of an arm, an answer that only it asks for, stands behind: the other arm gives a
//     number that it lets through.
#pragma once

#include <optional>
#include <vector>

#include "composit/ir/graph.h"

namespace composit {

// Where the two part: the index into `effects` of the first that differs. It is a bool that both
// read, with another answer.
struct BranchPoint {
  size_t effect = 0;         // index into both graphs' effects
  bool first_answer = true;  // what the first graph reads; the second reads the opposite
};

// UserError, which names the place, where the graphs part in another way: "[unify] the ways …".
BranchPoint branch_point(const Graph& a, const Graph& b);

// `ways`: at least one; equal ones count once. The inputs are those of the first, then those that
// only others have. UserError where the graphs part in another way than by an answer, where an arm
// draws, or has another effect that is no guard, and where arms give results of other types.
Graph merge_branches(const std::vector<Graph>& ways);

// What a node reads on the host, as it was captured; nothing: another node.
std::optional<Scalar> scalar_read_by(const Node& node);
// The same of a bool; nothing: another node, or another number.
std::optional<bool> bool_read_by(const Node& node);

}  // namespace composit
