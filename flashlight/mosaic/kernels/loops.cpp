#include "flashlight/mosaic/kernels/loops.h"

#include <spdlog/fmt/fmt.h>

#include <set>

#include "flashlight/loops/schedule.h"
#include "flashlight/mosaic/called_functions.h"
#include "flashlight/mosaic/in_place.h"
#include "flashlight/text/literal.h"

namespace flashlight::mosaic {
namespace {

// A kernel as the last function of a program.
struct LoopsProgram {
  LoopsProgram(const Plan& plan, const Kernel& kernel)
      : of(routine_of(plan, kernel)), functions(plan) {
    loops::Routine routine = of.routine;
    routine.name = kKernelName;
    for (loops::Step& step : routine.steps)
      if (auto* nest = std::get_if<loops::Nest>(&step))
        nest->origin = {nest->origin.operation, "", ""};
    program = program_of(plan, std::move(routine));
    structs.resize(program.functions.size());
  }
  text::RoutineWriter writer() const {
    return {program, loops::FunctionId(program.functions.size() - 1), structs,
            functions.signatures()};
  }

  KernelRoutine of;
  CalledFunctions functions;
  loops::Program program;
  std::vector<text::WeightStruct> structs;
};

int64_t trips_of(const Kernel& kernel) { return data_of<LoopsData>(kernel).trips; }

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

struct LoopsForm {
  static std::string loops(const Plan& plan, const Kernel& kernel, const KernelForm::Names&) {
    const loops::Routine routine = routine_of(plan, kernel).routine;
    const loops::Schedule schedule = loops::schedule_of(routine);
    return nested(routine, schedule, schedule.items, trips_of(kernel) > 0);
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
    const KernelRoutine one = routine_of(plan, kernel);
    return loops_may_overwrite(one.routine, one.numbers.at(result), one.numbers.at(operand));
  }

  static KernelText write(const Plan& plan, const Kernel& kernel) {
    const LoopsProgram one(plan, kernel);
    text::RoutineWriter writer = one.writer();
    KernelText text;
    text.name = operation_name(plan, kernel.steps.back());
    text.function = writer.write();
    std::set<ValueId> overwritten;
    for (const ValueId value : one.of.results)
      if (plan.in_place.contains(value)) overwritten.insert(plan.in_place.at(value));
    for (const auto* values : {&one.of.inputs, &one.of.results})
      for (const ValueId value : *values)
        if (plan.routine.values[value].type.numel() > 0 && !overwritten.contains(value))
          text.values.push_back(value);
    if (trips_of(kernel) > 0) text.first = fmt::format("team.part({})", trips_of(kernel));
    const text::Signature& signature = writer.signature();
    if (signature.has_arena)
      text.last.push_back(kernel.scratch
                              ? fmt::format("arena + {}", plan.offsets[*kernel.scratch])
                              : fmt::format("fl::own_memory({})", signature.arena_bytes));
    if (signature.has_generator) text.last.push_back("*generator");
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

int64_t trips_of(const loops::Routine& routine, const StepIds& steps) {
  const auto nowhere = [](ValueId) { return false; };
  return shared_trips(kernel_routine(routine, steps, nowhere).routine);
}

Kernel loops_kernel(const loops::Routine& routine, StepIds steps, bool alone,
                    const std::string& ends) {
  const int64_t trips = alone ? 0 : trips_of(routine, steps);
  return {.form = &kLoops,
          .steps = std::move(steps),
          .data = std::make_shared<LoopsData>(trips),
          .ends = ends};
}

KernelRoutine routine_of(const Plan& plan, const Kernel& kernel) {
  KernelRoutine one = kernel_routine(
      plan.routine, kernel.steps, [&](ValueId value) { return plan.homes[value] == Home::kernel; });
  one.routine.in_parts = trips_of(kernel) > 0;
  for (const ValueId value : one.results)
    if (const auto operand = plan.in_place.find(value);
        operand != plan.in_place.end() && one.numbers.contains(operand->second))
      one.routine.overwrites[one.numbers.at(value)] = one.numbers.at(operand->second);
  return one;
}

int64_t scratch_bytes(const Plan& plan, const Kernel& kernel) {
  const LoopsProgram one(plan, kernel);
  return one.writer().signature().arena_bytes;
}

}  // namespace flashlight::mosaic
