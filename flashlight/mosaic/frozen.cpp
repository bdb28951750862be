#include "flashlight/mosaic/frozen.h"

#include <algorithm>

namespace flashlight::mosaic {
namespace {

using loops::Role;

bool reads_others(const ValueIds& read, ValueId value) {
  return std::any_of(read.begin(), read.end(), [&](ValueId one) { return one != value; });
}

}  // namespace

std::set<std::string> changing_inputs(const composit::Graph& graph) {
  std::set<std::string> names;
  for (const composit::Mutation& mutation : graph.mutations())
    names.insert(composit::input_name(*mutation.target.node));
  return names;
}

std::vector<bool> frozen_values(const loops::Routine& routine,
                                const std::set<std::string>& changing, bool freeze,
                                const std::set<ValueId>& sized) {
  std::vector<bool> frozen(routine.values.size(), false);
  for (const ValueId i : routine.values.ids()) {
    const loops::Value& value = routine.values[i];
    frozen[i] = freeze && value.role == Role::weight && !changing.contains(value.name);
  }
  Table<StepId, ValueIds> read, made;
  for (const loops::Step& step : routine.steps) {
    read.push_back(loops::reads(step));
    made.push_back(loops::writes(step));
    for (const ValueId value : made.back())
      if (routine.values[value].role == Role::temporary && !sized.contains(value))
        frozen[value] = frozen[value] || reads_others(read.back(), value);
  }
  // A value is not frozen if any of its writers reads one that is not.
  const auto is_frozen = [&](ValueId value) { return frozen[value]; };
  for (bool changed = true; changed;) {
    changed = false;
    for (const StepId i : routine.steps.ids()) {
      if (std::holds_alternative<loops::Nest>(routine.steps[i]) &&
          std::all_of(read[i].begin(), read[i].end(), is_frozen) &&
          std::all_of(made[i].begin(), made[i].end(), is_frozen))
        continue;
      for (const ValueId value : made[i]) {
        changed |= frozen[value];
        frozen[value] = false;
      }
    }
  }
  return frozen;
}

}  // namespace flashlight::mosaic
