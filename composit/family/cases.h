// Programs whose structure depends on sizes or on values: a family for each structure, chosen by
// conditions on sizes, or by answers about values that the program reads.
//
//   Cases cases = unify_cases(graphs, {.names = {"batch", "tokens"}});
//   cases.forks[0];           // mod(size(%x, 1), 8) == 0: case 1, otherwise case 2
//   Graph graph = graph_at(cases, sizes);
//
// Examples of equal structure are unified: see unify.h. Where structures part behind a bool that
// the examples read differently, the answer chooses, and `graph_at` makes a branch of it: see
// merge_branches.h. Where they part elsewhere, the condition is the
// simplest one that tells the examples on both sides apart, over sizes of inputs and of values
// before that place. As long as another condition fits as well and gives another answer within the
// range that was shown, one more example is asked for; then some at the border of the condition.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "composit/family/family.h"
#include "composit/family/roll_loops.h"
#include "composit/family/roll_scans.h"
#include "composit/family/size_condition.h"
#include "composit/family/unify.h"

namespace composit {

// A fork, or a case.
struct Way {
  bool is_case = true;  // else a fork
  size_t index = 0;     // among `Cases::forks` or `Cases::cases`
};

// Where structures part.
struct Fork {
  size_t reader = 0;        // the case whose values the condition reads
  SizeCondition condition;  // what decides
  Way holds, fails;         // where it holds, and where not
  std::string place;        // "%pad = aten::pad at model.cpp:12": the first node that differs
  bool by_value = false;    // no condition on sizes decides, but the bool that is read there
};

struct Cases {
  std::vector<Family> cases;  // at least one; all have the same free sizes
  std::vector<Fork> forks;    // the first is asked first; none: one case
  // By example, the case that it belongs to.
  std::vector<size_t> case_of_example;
  // What the program asks of numbers that it reads; not saved.
  std::vector<Predicate> predicates;
  // Loops that captures of the program have, not saved: of a bool, and of a size.
  std::vector<LoopShape> loops;
  std::vector<ScanShape> scans;
};

// UserError as of `unify`, and where no condition on sizes tells structures apart; ExampleWanted
// where one more example tells conditions or formulas apart.
Cases unify_cases(const std::vector<Graph>& examples, const UnifyOptions& options = {});

// The sizes that conditions over values of `family.example` read, at these sizes of the inputs.
// UserError where the family cannot be bound up to them.
SizeFormula::SizeOf sizes_before(const Family& family, const std::vector<SizeCondition>& conditions,
                                 const SizeValues& sizes);

// The case at these sizes, or those that answers choose between; whatever was shown.
std::vector<size_t> cases_at(const Cases& cases, const SizeValues& sizes);
// Those of them that were shown at these sizes or around; all of them if none was.
std::vector<size_t> shown_cases_at(const Cases& cases, const SizeValues& sizes);

// The graph at these sizes and numbers, with a branch for each answer that was shown with both of
// its ways there. UserError as of `bind` for a family, and of `merge_branches`.
Graph graph_at(const Cases& cases, const SizeValues& sizes, const NumberValues& numbers = {});
// True if some case has numbers that are no sizes.
bool has_numbers(const Cases& cases);
// The names of the numbers of all cases, and where they come from.
std::map<std::string, NumberOrigin> numbers_of(const Cases& cases);

// Numbers for all free sizes within their ranges: all of them if they are few, or else those that
// differ from what was shown first in one size, and some others.
std::vector<SizeValues> grid_of(const std::vector<FreeSize>& sizes);

// Sizes at which these cases are the ones, by number, about `count` of them from the least to the
// greatest by their product: the ends, those next to the ends, for a size at the end may have a
// form of its own, and others between them.
std::vector<SizeValues> spread_sizes(const Cases& cases, const std::vector<size_t>& numbers,
                                     size_t count);

// By size, what the cases show and take together: a call also has to lie within its own case.
std::vector<FreeSize> hull_of(const Cases& cases);

// The texts of all cases, and the conditions: see `fork_lines`.
std::string print(const Cases& cases, const PrintOptions& options = {});

// The first example of a case, by number.
size_t first_example_of(const Cases& cases, size_t number);

// A capture of the program in the form of `family.example`: without incidentals, loops rolled.
Graph in_form(const Cases& cases, const Graph& graph);
// True if answers choose between some cases.
bool has_branches(const Cases& cases);
// The bools that a program reads on its way, in order.
std::vector<bool> answers_of(const Graph& graph);
// The case at these sizes whose program reads these answers; nothing: no example showed it.
std::optional<size_t> case_of_answers(const Cases& cases, const SizeValues& sizes,
                                      const std::vector<bool>& answers);

// "mod(size(%x, 1), 8) == 0: case 1, otherwise case 2, from %pad = aten::pad at model.cpp:12 on"
std::vector<std::string> fork_lines(const Cases& cases);

}  // namespace composit
