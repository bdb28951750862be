// A family of cases as questions about the sizes of its inputs, and a program behind each way: the
// form in which other tools take programs whose structure depends on sizes or on values.
//
//   const SizeTree tree = size_tree(load("model"));
//   const SizeCondition& asked = tree.choices[0].condition;  // size(%x, 1) <= 16
//   const SavedCapture& leaf = tree.leaves[1];               // a family of one case
//
// Cases between which answers about values choose become one program with branches: the ways are
// merged at several sizes (merge_branches.h), and the merged graphs unified.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "composit/family/cases.h"
#include "composit/family/saved_family.h"

namespace composit {

struct SizeTree {
  // A question about sizes of inputs, and where its two ways lead: `Way::is_case` for a leaf.
  struct Choice {
    SizeCondition condition;  // over the inputs of `Family::example` of the first case
    Way holds, fails;         // indices into `leaves` or `choices`
    std::string place;        // where the programs part
  };
  LazyTensors inputs;                // what conditions read: of the first case
  std::vector<Choice> choices;       // the first is asked first; none: one leaf
  std::vector<FreeSize> sizes;       // what all leaves take together, axes over `inputs`
  std::vector<SavedCapture> leaves;  // families of one case, or captures where no size is free
};

// UserError where ways that answers choose between were not shown at sizes that they have in
// common, or cannot be merged, and where a condition reads a size that does not follow from those
// of the inputs.
SizeTree size_tree(const SavedCapture& saved);

// The leaf at these sizes, whether or not it was shown there. UserError where a condition cannot be
// evaluated.
size_t leaf_at(const SizeTree& tree, const SizeValues& sizes);
// Sizes within the ranges of a leaf at which it is the one: all of them if they are few.
std::vector<SizeValues> sizes_of_leaf(const SizeTree& tree, size_t leaf);

// The family with answers merged, where no condition on sizes decides: a family of one case, or a
// capture where no size is free; `saved` itself where it has one case, or is none. UserError as
// above, and where conditions on sizes decide.
SavedCapture of_one_case(const SavedCapture& saved);

}  // namespace composit
