#include "flashlight/mosaic/kernels/form.h"

#include "flashlight/loops/statement.h"
#include "flashlight/text/literal.h"

namespace flashlight::mosaic {
namespace {

int64_t parallel_points(const loops::Statement& statement) {
  int64_t count = 1;
  for (AxisId axis; axis < loops::parallel_axes(statement); ++axis)
    count *= statement.axes[axis].extent;
  return count;
}

}  // namespace

ValueIds touched_by_steps(const Plan& plan, const Kernel& kernel) {
  ValueIds values;
  for (const StepId step : kernel.steps) {
    for (const ValueId value : loops::reads(plan.routine.steps[step])) values.push_back(value);
    for (const ValueId value : loops::writes(plan.routine.steps[step])) values.push_back(value);
  }
  if (kernel.scratch) values.push_back(*kernel.scratch);
  return values;
}

ValueIds written_by_steps(const Plan& plan, const Kernel& kernel) {
  ValueIds list;
  for (const StepId step : kernel.steps)
    for (const ValueId value : loops::writes(plan.routine.steps[step]))
      if (plan.homes[value] != Home::kernel && !loops::contains(list, value)) list.push_back(value);
  return list;
}

int64_t flops_of(const loops::Statement& statement) {
  int64_t inside = 0, behind = 0;
  for (const auto* list : {&statement.body, &statement.combine})
    for (const composit::Expr& x : *list) inside += loops::cost_of(x).operations;
  for (const composit::Store& store : statement.stores)
    behind += loops::cost_of(store.value).operations;
  return loops::iterations(statement) * inside + parallel_points(statement) * behind;
}

std::string operation_name(const Plan& plan, StepId step) {
  return text::identifier(loops::short_name(loops::origin_of(plan.routine.steps[step])));
}

}  // namespace flashlight::mosaic
