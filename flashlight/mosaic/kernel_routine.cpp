#include "flashlight/mosaic/kernel_routine.h"

#include <algorithm>
#include <set>

#include "composit/op/affine.h"
#include "composit/op/stores.h"
#include "flashlight/loops/renumber.h"

namespace flashlight::mosaic {
namespace {

using loops::Role;
using loops::Value;

// True if no two rounds of a loop write the same element. Stores that add to an element may.
bool rounds_are_apart(const loops::Statement& statement, size_t loop) {
  composit::IndexAnalysis analysis(statement.axes);
  return std::all_of(
      statement.stores.begin(), statement.stores.end(), [&](const composit::Store& store) {
        const bool has_loop =
            std::any_of(store.at.begin(), store.at.end(), [&](const composit::Expr& index) {
              return index.kind() == composit::ExprKind::axis && index.number() == loop;
            });
        return has_loop || composit::injective(store.at, composit::store_axes(statement), analysis);
      });
}

}  // namespace

std::string local_name(const Value& value, const char* letter) {
  if (value.role != Role::weight) return letter;
  const size_t dot = value.name.find_last_of('.');
  return dot == std::string::npos ? value.name : value.name.substr(dot + 1);
}

KernelRoutine kernel_routine(const loops::Routine& whole, const StepIds& steps) {
  KernelRoutine kernel;
  loops::Routine& routine = kernel.routine;
  routine.in_parts = true;
  std::map<ValueId, ValueId>& numbers = kernel.numbers;
  std::set<ValueId> written;
  for (const StepId step : steps)
    for (const ValueId value : loops::writes(whole.steps[step])) written.insert(value);
  const auto take = [&](ValueId value) {
    if (numbers.contains(value)) return;
    numbers[value] = routine.values.next();
    Value taken = whole.values[value];
    if (written.contains(value)) {
      taken.role = Role::temporary;
    } else if (taken.role != Role::constant) {
      taken.name = local_name(taken, "x");
      taken.role = Role::argument;
    }
    if (taken.role == Role::argument) {
      routine.inputs.push_back(routine.values.next());
      kernel.inputs.push_back(value);
    }
    routine.values.push_back(std::move(taken));
  };
  for (const StepId step : steps) {
    for (const ValueId value : loops::reads(whole.steps[step])) take(value);
    for (const ValueId value : loops::writes(whole.steps[step])) take(value);
    routine.steps.push_back(loops::renumbered(whole.steps[step], numbers));
  }
  return kernel;
}

void make_results(KernelRoutine& kernel, loops::Schedule& schedule,
                  const std::function<bool(ValueId value)>& is_memory) {
  std::map<ValueId, ValueId> memory;  // by number in the routine
  for (const auto& [value, number] : kernel.numbers)
    if (kernel.routine.values[number].role == Role::temporary && is_memory(value))
      memory[number] = value;
  for (const auto& [number, value] : memory) {
    Value& result = kernel.routine.values[number];
    result.role = Role::result;
    result.name = "y";
    schedule.storage[number] = loops::whole_storage(result.type);
    kernel.routine.results.push_back(number);
    kernel.results.push_back(value);
  }
}

int64_t shared_trips(const loops::Routine& kernel, const loops::Schedule& schedule) {
  if (schedule.items.size() != 1 || !schedule.items[0].is_loop()) return 0;
  for (const StepId step : kernel.steps.ids()) {
    const auto* nest = std::get_if<loops::Nest>(&kernel.steps[step]);
    if (nest == nullptr || !rounds_are_apart(nest->statement, schedule.order[step][0])) return 0;
  }
  return schedule.items[0].extent;
}

}  // namespace flashlight::mosaic
