// What a program asks of numbers that it reads on the host, as its user states it.
//
//   // model.cpp:12 has `if (x.sum().item<float>() > 0)`; a tracer sees the number being read, not
//   // what C++ does with it.
//   Cases cases = unify_cases(graphs, {.predicates = {predicate("model.cpp:12", "> 0")}});
//
// The read of the number becomes a read of the predicate's bool, as if the program were written
// `(x.sum() > 0).item<bool>()`. Whether that is what the program asks is tested against all
// examples: those with equal answers have to go the same way.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "composit/ir/graph.h"

namespace composit {

// What is asked of the number that a line reads.
struct Predicate {
  std::string place;  // file and line of the read: "model.cpp:12"
  // One bool of the number, which comes as float64 or int64: as C++ and Python compare it. Absent:
  // nothing is asked, and the program goes the same way whatever the number is.
  std::function<LazyTensor(const LazyTensor& number)> holds;
  std::string text = {};  // "> 0"; empty for a function of the user
};

// A comparison: "> 0", "<= 1e-3", "== 2", "!= 0"; or "any": a number that the program compares with
// nothing, as one that it returns, or that other numbers are made of. UserError for other text.
Predicate predicate(std::string place, std::string_view comparison);

// The graph with a bool in place of each number that is read at one of these places. A number of
// which nothing is asked is the node's attribute "read" instead of one that is expected.
Graph with_predicates(const Graph& graph, const std::vector<Predicate>& predicates);

// "the number read at model.cpp:12: whether it is > 0"
std::string print(const Predicate& predicate);

// UserError where no graph reads a number at a place.
void expect_places(const std::vector<Graph>& graphs, const std::vector<Predicate>& predicates);

}  // namespace composit
