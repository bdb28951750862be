#include "flashlight/mosaic/kernel_routine.h"

#include <map>
#include <set>

#include "flashlight/cpp/renumber.h"
#include "flashlight/cpp/schedule.h"

namespace flashlight::mosaic {
namespace {

using cpp::Role;
using cpp::Value;

// What a value is called in a kernel, which serves several modules: "bias" for
// "encoder.layer.0.output.bias", and letters for what operations made.
std::string local_name(const Value& value, const char* letter) {
  if (value.role != Role::weight) return letter;
  const size_t dot = value.name.find_last_of('.');
  return dot == std::string::npos ? value.name : value.name.substr(dot + 1);
}

}  // namespace

KernelRoutine kernel_routine(const cpp::Routine& whole, const std::vector<size_t>& steps,
                             const std::function<bool(size_t value)>& is_inside) {
  KernelRoutine kernel;
  cpp::Routine& routine = kernel.routine;
  routine.in_parts = true;
  std::map<size_t, size_t> numbers;
  std::set<size_t> written;
  for (const size_t step : steps)
    for (const size_t value : cpp::writes(whole.steps[step])) written.insert(value);
  const auto take = [&](size_t value) {
    if (numbers.contains(value)) return;
    numbers[value] = routine.values.size();
    Value taken = whole.values[value];
    if (written.contains(value)) {
      taken.role = is_inside(value) ? Role::temporary : Role::result;
      taken.name = taken.role == Role::result ? "y" : taken.name;
    } else if (taken.role != Role::constant) {
      taken.name = local_name(taken, "x");
      taken.role = Role::argument;
    }
    if (taken.role == Role::argument) {
      routine.inputs.push_back(routine.values.size());
      kernel.inputs.push_back(value);
    } else if (taken.role == Role::result) {
      routine.results.push_back(routine.values.size());
      kernel.results.push_back(value);
    }
    routine.values.push_back(std::move(taken));
  };
  for (const size_t step : steps) {
    for (const size_t value : cpp::reads(whole.steps[step])) take(value);
    for (const size_t value : cpp::writes(whole.steps[step])) take(value);
    routine.steps.push_back(cpp::renumbered(whole.steps[step], numbers));
  }
  return kernel;
}

int64_t shared_trips(const cpp::Routine& kernel) {
  const cpp::Schedule schedule = cpp::schedule_of(kernel);
  return schedule.items.size() == 1 ? schedule.items[0].extent : 0;
}

}  // namespace flashlight::mosaic
