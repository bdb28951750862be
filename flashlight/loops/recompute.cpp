#include "flashlight/loops/recompute.h"

#include <algorithm>
#include <optional>

#include "flashlight/loops/contraction.h"
#include "flashlight/loops/schedule.h"
#include "flashlight/loops/sizes.h"
#include "flashlight/loops/statement.h"

namespace flashlight::loops {
namespace {

// A sum of this many terms takes less time than to read an element that is in no cache.
constexpr int64_t kMostTerms = 128;

// True if `step` makes a large product of few terms that outer loops can run around.
bool is_candidate(const Step& step) {
  const auto* nest = std::get_if<Nest>(&step);
  const auto product = nest != nullptr ? contraction_of(nest->statement) : std::nullopt;
  if (!product || product->outer.empty() || nest->statement.stores.size() != 1) return false;
  int64_t terms = 1;
  for (AxisId axis : product->terms) terms *= nest->statement.axes[axis].extent;
  return terms <= kMostTerms;
}

// The steps of an item; and of the outermost item that has `step`, itself among them.
StepIds with(const Item& item) {
  if (!item.is_loop()) return {item.step};
  StepIds steps;
  for (const Item& inner : item.body)
    for (StepId step : with(inner)) steps.push_back(step);
  return steps;
}
StepIds around(StepId step, const Schedule& schedule) {
  for (const Item& item : schedule.items)
    if (StepIds steps = with(item); contains(steps, step)) return steps;
  return {};
}

Statement with_value(Statement statement, ValueId value, ValueId other) {
  return replaced(std::move(statement), [&](const Expr& part) {
    if (part.kind() != ExprKind::load || part.number() != value) return Expr();
    return Expr::load(other, part.dtype(), part.arguments());
  });
}

// Copies step `maker` before its readers in other loops, which then read the copy. Nothing if this
// does not shrink both values in memory.
std::optional<Routine> recomputed(Routine function, StepId maker, const Schedule& schedule) {
  const ValueId value = value_of(std::get<Nest>(function.steps[maker]).statement.stores[0]);
  const StepIds first = around(maker, schedule);
  StepIds later;
  for (const StepId step : function.steps.ids()) {
    if (step == maker) continue;
    if (contains(writes(function.steps[step]), value)) return std::nullopt;
    for (ValueId read : reads(function.steps[maker]))
      if (step > maker && contains(writes(function.steps[step]), read)) return std::nullopt;
    if (contains(first, step) || !contains(reads(function.steps[step]), value)) continue;
    if (!std::holds_alternative<Nest>(function.steps[step])) return std::nullopt;
    later.push_back(step);
  }
  if (later.empty()) return std::nullopt;
  const ValueId again = function.values.next();
  function.values.push_back(function.values[value]);
  for (StepId step : later) {
    auto& nest = std::get<Nest>(function.steps[step]);
    nest.statement = with_value(std::move(nest.statement), value, again);
  }
  Step copy = function.steps[maker];
  std::get<Nest>(copy).statement.stores[0].result = again;
  function.steps.insert(function.steps.begin() + static_cast<std::ptrdiff_t>(later[0]),
                        std::move(copy));
  const Schedule now = schedule_of(function);
  const bool both_shrink = now.storage[value].elements < schedule.storage[value].elements &&
                           now.storage[again].elements < schedule.storage[value].elements;
  return both_shrink ? std::optional(std::move(function)) : std::nullopt;
}

void recompute(Routine& function) {
  Schedule schedule = schedule_of(function);
  for (const StepId step : function.steps.ids()) {
    if (!is_candidate(function.steps[step])) continue;
    const ValueId value = value_of(std::get<Nest>(function.steps[step]).statement.stores[0]);
    if (function.values[value].role != Role::temporary ||
        schedule.storage[value].elements < kLargeElements)
      continue;
    auto now = recomputed(function, step, schedule);
    if (!now) continue;
    function = std::move(*now);
    schedule = schedule_of(function);
  }
}

}  // namespace

Program recompute(Program program) {
  expect_bound("recompute", program);
  for (Routine& function : program.functions) recompute(function);
  return program;
}

}  // namespace flashlight::loops
