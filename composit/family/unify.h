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

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "composit/family/family.h"
#include "composit/family/predicates.h"
#include "composit/ir/error.h"

namespace composit {

// The least number of examples: with two, formulas come out that a third refutes.
inline constexpr size_t kLeastExamples = 3;

struct UnifyOptions {
  // Names of the free sizes, in the order of inputs and axes; as many as there are. Empty: they are
  // called by input and axis, as "input_ids_1".
  std::vector<std::string> names = {};
  // What the program asks of numbers that it reads on the host: for `unify_cases`.
  std::vector<Predicate> predicates = {};
  // Numbers that are no sizes: see numbers.h.
  NumbersShown numbers = {};
};

// The sizes of inputs that differ between examples, called by input and axis, with the indices of
// inputs of the first. UserError where inputs have another number of axes, or an example lacks one.
std::vector<FreeSize> free_sizes(const std::vector<Graph>& examples);

// Thrown where one more example tells what is right.
class ExampleWanted : public UserError {
 public:
  // The text of the error, and the sizes to show.
  ExampleWanted(const std::string& what, SizeValues sizes)
      : UserError(what), sizes(std::move(sizes)) {}
  SizeValues sizes;  // of the example
};

// Calls sizes by these names, if there are any. UserError for another number of names.
void set_names(std::vector<FreeSize>& sizes, const std::vector<std::string>& names);
// UserError for less than three.
void expect_examples(const std::vector<Graph>& examples);
// UserError where less than three numbers of a size were shown, or size 1.
void expect_shown_apart(const std::vector<FreeSize>& sizes);
// The index of the input of this name; nothing where there is none.
std::optional<size_t> find_input(const Graph& graph, const std::string& name);
// The same. UserError where there is none.
size_t input_called(const Graph& graph, const std::string& name);
// UserError where a number of a size and others were shown for one structure: size 1.
[[noreturn]] void refuse_one(const std::string& size, int64_t number);

// True for sizes of inputs at which a program has the structure of a family.
using Within = std::function<bool(const SizeValues& sizes)>;
// The family of examples without incidentals (see family.h) that have these sizes and numbers.
Family unify_alike(const std::vector<Graph>& examples, std::vector<FreeSize> sizes,
                   const Within& within, const NumbersShown& numbers);

// UserError that names the node and its line, what was expected, what each example has, and what to
// show next.
Family unify(const std::vector<Graph>& examples, const UnifyOptions& options = {});

}  // namespace composit
