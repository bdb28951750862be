// Makes a family of captures of one program at several sizes.
//
//   Family family = unify({at_2x16, at_3x23, at_5x12}, {.names = {"batch", "tokens"}});
//
// Axes of inputs that differ between examples are free sizes; those with the same numbers in all
// examples are one size. The graphs must be alike node by node but for integers. An integer that
// differs is the simplest formula over sizes of earlier values that gives it in every example,
// those of the node's operands first; if another formula as simple gives another number at sizes
// within the range that was shown, one more example is asked for. At the end the family is bound to
// the sizes of each example, which must give that example's graph.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "composit/family/family.h"
#include "composit/ir/error.h"

namespace composit {

// The least number of examples: with two, formulas come out that a third refutes.
inline constexpr size_t kLeastExamples = 3;

struct UnifyOptions {
  // Names of the free sizes, in the order of inputs and axes; as many as there are. Empty: they are
  // called by input and axis, as "input_ids_1".
  std::vector<std::string> names = {};
};

// The sizes of inputs that differ between examples, called by input and axis. UserError where
// inputs have another number of axes.
std::vector<FreeSize> free_sizes(const std::vector<Graph>& examples);

// Thrown where one more example tells what is right.
class ExampleWanted : public UserError {
 public:
  // The text of the error, and the sizes to show.
  ExampleWanted(const std::string& what, SizeValues sizes)
      : UserError(what), sizes(std::move(sizes)) {}
  SizeValues sizes;  // of the example
};

// UserError that names the node and its line, what was expected, what each example has, and what to
// show next.
Family unify(const std::vector<Graph>& examples, const UnifyOptions& options = {});

}  // namespace composit
