#include "flashlight/mosaic/kernels/loops.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <set>

#include "flashlight/loops/widen.h"
#include "flashlight/mosaic/called_functions.h"
#include "flashlight/mosaic/in_place.h"
#include "flashlight/text/literal.h"
#include "flashlight/text/open_numbers.h"

namespace flashlight::mosaic {
namespace {

// A kernel as the last function of a program.
loops::Program program_of_kernel(const Plan& plan, const Kernel& kernel) {
  const KernelRoutine& of = data_of<LoopsData>(kernel).of;
  loops::Routine routine = of.routine;
  routine.name = kKernelName;
  for (loops::Step& step : routine.steps)
    if (auto* nest = std::get_if<loops::Nest>(&step))
      nest->origin = {nest->origin.operation, "", ""};
  for (const ValueId value : of.results)
    if (const auto operand = plan.in_place.find(value);
        operand != plan.in_place.end() && of.numbers.contains(operand->second))
      routine.overwrites[of.numbers.at(value)] = of.numbers.at(operand->second);
  return program_of(plan, std::move(routine));
}

// "mean: for 32, 768 terms": what is inside of the loops that steps share.
std::string step_loops(const loops::Routine& routine, const loops::Schedule& schedule,
                       StepId number) {
  const std::string name = loops::short_name(loops::origin_of(routine.steps[number]));
  const auto* nest = std::get_if<loops::Nest>(&routine.steps[number]);
  if (nest == nullptr) return name;
  const loops::Statement& statement = nest->statement;
  std::vector<std::string> inside, terms;
  for (size_t i = schedule.shared[number]; i < schedule.order[number].size(); ++i)
    inside.push_back(fmt::format("for {}", statement.axes[schedule.order[number][i]].extent));
  for (const composit::Axis& axis : statement.axes)
    if (axis.kind != composit::AxisKind::parallel) terms.push_back(std::to_string(axis.extent));
  if (!terms.empty()) inside.push_back(fmt::format("{} terms", fmt::join(terms, " x ")));
  return inside.empty() ? name : fmt::format("{}: {}", name, fmt::join(inside, ", "));
}

std::string nested(const loops::Routine& routine, const loops::Schedule& schedule,
                   const std::vector<loops::Item>& items, bool divided) {
  std::vector<std::string> parts;
  for (const loops::Item& item : items)
    parts.push_back(item.is_loop()
                        ? fmt::format("for {}{} {{ {} }}", item.extent, divided ? " (threads)" : "",
                                      nested(routine, schedule, item.body, false))
                        : step_loops(routine, schedule, item.step));
  return fmt::format("{}", fmt::join(parts, "; "));
}

bool has_nests_alone(const loops::Routine& routine) {
  return std::all_of(routine.steps.begin(), routine.steps.end(), [](const loops::Step& step) {
    return std::holds_alternative<loops::Nest>(step);
  });
}

struct LoopsForm {
  static std::string loops(const Plan&, const Kernel& kernel, const KernelForm::Names&) {
    const auto& data = data_of<LoopsData>(kernel);
    const loops::Schedule& schedule = data.scheduled.schedule;
    return nested(data.of.routine, schedule, schedule.items, kernel.split.parts > 0);
  }

  static int64_t flops(const Plan& plan, const Kernel& kernel) {
    int64_t flops = 0;
    for (const StepId step : kernel.steps)
      if (const auto* nest = std::get_if<loops::Nest>(&plan.routine.steps[step]))
        flops += flops_of(nest->statement);
    return flops;
  }

  static bool may_overwrite(const Plan& plan, const Kernel& kernel, ValueId result,
                            ValueId operand) {
    const auto& data = data_of<LoopsData>(kernel);
    const StepIds needless = needless_steps(plan.routine, kernel.steps, result, operand);
    StepIds own;  // the same, by number in the kernel
    for (size_t i = 0; i < kernel.steps.size(); ++i)
      if (loops::contains(needless, kernel.steps[i])) own.push_back(StepId(i));
    return loops_may_overwrite(data.of.routine, data.scheduled.schedule, own,
                               data.of.numbers.at(result), data.of.numbers.at(operand));
  }

  static KernelText write(const Plan& plan, const Kernel& kernel) {
    const auto& data = data_of<LoopsData>(kernel);
    // What calls functions passes them arrays, whose sizes are types.
    const bool has_functions = !has_nests_alone(data.of.routine);
    const text::OpenNumbers open(text::has_open_numbers() && !has_functions);
    const text::WideIndices wide(!has_functions);
    const loops::Program program = program_of_kernel(plan, kernel);
    const std::vector<text::WeightStruct> structs(program.functions.size());  // none has any
    Table<loops::FunctionId, loops::ScheduledRoutine> scheduled = plan.schedules;
    const loops::FunctionId number = scheduled.add(data.scheduled);
    text::RoutineWriter writer(program, number, structs, scheduled);
    KernelText text;
    text.name = operation_name(plan, kernel.steps.back());
    text.function = writer.write();
    std::set<ValueId> overwritten;
    for (const ValueId value : data.of.results)
      if (plan.in_place.contains(value)) overwritten.insert(plan.in_place.at(value));
    for (const auto* values : {&data.of.inputs, &data.of.results})
      for (const ValueId value : *values)
        if (plan.routine.values[value].type.numel() > 0 && !overwritten.contains(value))
          text.values.push_back(value);
    if (kernel.split.parts > 0)
      text.first = "team.part(" + text::open_number(kernel.split.parts) + ")";
    const loops::Needs& needs = data.scheduled.needs;
    if (needs.has_arena)
      text.last.push_back(kernel.scratch
                              ? "arena + " + text::open_number(plan.offsets[*kernel.scratch])
                              : "fl::own_memory(" + text::open_number(needs.arena_bytes) + ")");
    if (needs.has_generator) text.last.push_back("*generator");
    text.by_pointer = text::has_open_numbers();
    return text;
  }
};

}  // namespace

const KernelForm kLoops = {.name = "loops",
                           .touched = touched_by_steps,
                           .written = written_by_steps,
                           .loops = LoopsForm::loops,
                           .write = LoopsForm::write,
                           .may_overwrite = LoopsForm::may_overwrite,
                           .flops = LoopsForm::flops,
                           .follows_steps = true};

Kernel loops_kernel(const loops::Routine& routine, StepIds steps, bool alone,
                    const std::string& ends) {
  const auto data = std::make_shared<LoopsData>();
  loops::Routine& own = (data->of = kernel_routine(routine, steps)).routine;
  own = loops::with_wide_arithmetic(std::move(own));
  loops::Schedule& schedule = data->scheduled.schedule;
  Split split;
  own.in_parts = !alone;
  schedule = loops::schedule_of(own);
  if (!alone) split.parts = shared_trips(own, schedule);
  if (split.parts > 0) {
    split.of = Split::Of::rows;
  } else if (own.in_parts) {
    own.in_parts = false;
    schedule = loops::schedule_of(own);
  }
  return {.form = &kLoops, .steps = std::move(steps), .data = data, .split = split, .ends = ends};
}

void drop_needless(const Plan& plan, Kernel& kernel) {
  StepIds needless;
  for (const ValueId result : data_of<LoopsData>(kernel).of.results)
    if (const auto operand = plan.in_place.find(result); operand != plan.in_place.end())
      for (const StepId step : needless_steps(plan.routine, kernel.steps, result, operand->second))
        needless.push_back(step);
  if (needless.empty()) return;
  StepIds left;
  for (const StepId step : kernel.steps)
    if (!loops::contains(needless, step)) left.push_back(step);
  kernel = loops_kernel(plan.routine, left, /*alone=*/kernel.split.parts == 0, kernel.ends);
  set_homes(plan, kernel);
}

void set_homes(const Plan& plan, Kernel& kernel) {
  const auto data = std::make_shared<LoopsData>(data_of<LoopsData>(kernel));
  loops::Schedule schedule = std::move(data->scheduled.schedule);
  make_results(data->of, schedule,
               [&](ValueId value) { return plan.homes[value] != Home::kernel; });
  data->of.routine = loops::with_wide_temporaries(std::move(data->of.routine));
  data->scheduled = loops::scheduled_routine(data->of.routine, plan.functions, plan.schedules,
                                             std::move(schedule));
  kernel.data = data;
}

}  // namespace flashlight::mosaic
