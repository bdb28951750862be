#include "flashlight/mosaic/loops_writer.h"

#include <spdlog/fmt/fmt.h>

#include <set>

#include "flashlight/text/literal.h"
#include "flashlight/text/runtime_call_text.h"

namespace flashlight::mosaic {
namespace {

loops::Program program_of(const Plan& plan, loops::Routine kernel) {
  loops::Program program = {plan.functions};
  program.functions.push_back(std::move(kernel));
  return program;
}

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

// All runtime calls, in functions as well.
std::vector<const loops::RuntimeCall*> runtime_calls(const Plan& plan) {
  std::vector<const loops::RuntimeCall*> calls;
  const auto add = [&](const loops::Routine& routine) {
    for (const loops::Step& step : routine.steps)
      if (const auto* call = std::get_if<loops::RuntimeCall>(&step)) calls.push_back(call);
  };
  for (const loops::Routine& function : plan.functions) add(function);
  add(plan.routine);
  return calls;
}

}  // namespace

KernelRoutine routine_of(const Plan& plan, const Kernel& kernel) {
  KernelRoutine one = kernel_routine(
      plan.routine, kernel.steps, [&](ValueId value) { return plan.homes[value] == Home::kernel; });
  one.routine.in_parts = kernel.trips > 0;
  for (const ValueId value : one.results)
    if (const auto operand = plan.in_place.find(value);
        operand != plan.in_place.end() && one.numbers.contains(operand->second))
      one.routine.overwrites[one.numbers.at(value)] = one.numbers.at(operand->second);
  return one;
}

CalledFunctions::CalledFunctions(const Plan& plan) : program_(program_of(plan, {})) {
  program_.functions.back().name = kKernelName;
  structs_.resize(program_.functions.size());
  for (const loops::FunctionId i : plan.functions.ids())
    signatures_.push_back(text::RoutineWriter(program_, i, structs_, signatures_).signature());
}

std::vector<text::Code> CalledFunctions::write() {
  std::vector<text::Code> functions;
  for (loops::FunctionId i; i + 1 < program_.functions.size(); ++i)
    functions.push_back(text::RoutineWriter(program_, i, structs_, signatures_).write());
  return functions;
}

int64_t scratch_bytes(const Plan& plan, const Kernel& kernel) {
  const LoopsProgram one(plan, kernel);
  return one.writer().signature().arena_bytes;
}

KernelText write_loops(const Plan& plan, const Kernel& kernel) {
  const LoopsProgram one(plan, kernel);
  text::RoutineWriter writer = one.writer();
  KernelText text;
  text.name = operation_name(plan, kernel.steps.back());
  text.code = writer.write();
  // It was named as an identifier, in lower case.
  const std::string name = text::identifier(kKernelName);
  for (std::string& line : text.code.lines)
    if (const size_t at = line.find("void " + name + "("); at != std::string::npos)
      line.replace(at + 5, name.size(), kKernelName);
  std::set<ValueId> overwritten;
  for (const ValueId value : one.of.results)
    if (plan.in_place.contains(value)) overwritten.insert(plan.in_place.at(value));
  for (const auto* values : {&one.of.inputs, &one.of.results})
    for (const ValueId value : *values)
      if (plan.routine.values[value].type.numel() > 0 && !overwritten.contains(value))
        text.values.push_back(value);
  if (kernel.trips > 0) text.first = fmt::format("team.part({})", kernel.trips);
  const text::Signature& signature = writer.signature();
  if (signature.has_arena)
    text.last.push_back(kernel.scratch ? fmt::format("arena + {}", plan.offsets[*kernel.scratch])
                                       : fmt::format("fl::own_memory({})", signature.arena_bytes));
  if (signature.has_generator) text.last.push_back("*generator");
  return text;
}

std::vector<std::string> headers_of(const Plan& plan) {
  std::set<std::string> headers;
  for (const loops::RuntimeCall* call : runtime_calls(plan)) headers.insert(text::header_of(*call));
  return {headers.begin(), headers.end()};
}

bool draws(const Plan& plan) {
  for (const loops::RuntimeCall* call : runtime_calls(plan))
    if (call->draws) return true;
  return false;
}

}  // namespace flashlight::mosaic
