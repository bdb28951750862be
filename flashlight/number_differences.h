// Finds numbers of a program that differ from run to run, if the graphs are equal otherwise: an
// optimizer's step count and its bias corrections.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "composit/ir/compare.h"
#include "flashlight/capture_state.h"

namespace flashlight {

// A number of a graph: see ChangingPlace. `place` is its operator and source line, for messages.
struct NumberPlace {
  size_t node = 0;
  std::string key;
  std::string place = {};
  bool operator==(const NumberPlace& other) const { return node == other.node && key == other.key; }
};

// The numbers that differ, in the order of the program; nothing if anything else differs.
std::optional<std::vector<NumberPlace>> number_differences(
    const composit::Graph& before, const composit::Graph& after,
    const std::vector<composit::Difference>& differences);

// The number at `place`; nothing if there is none.
std::optional<double> number_at(const composit::Graph& graph, const NumberPlace& place);

// Finds forms that give the numbers of consecutive runs, for all `places`. A place without a form
// is returned as `unexplained`.
struct CountedNumbers {
  std::vector<ChangingPlace> places;
  bool only_counts = true;  // n + k, and nothing else
  std::optional<NumberPlace> unexplained;
};
CountedNumbers count_calls(const std::vector<composit::Graph>& graphs,
                           const std::vector<NumberPlace>& places, bool python);

// True if the first difference, in the order of the program, is a guard that expects another
// number, or a size that depends on values.
bool begins_with_guard(const std::vector<composit::Difference>& differences);

}  // namespace flashlight
