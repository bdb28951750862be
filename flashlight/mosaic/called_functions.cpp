#include "flashlight/mosaic/called_functions.h"

#include <set>

#include "flashlight/text/runtime_call_text.h"

namespace flashlight::mosaic {
namespace {

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

loops::Program program_of(const Plan& plan, loops::Routine kernel) {
  loops::Program program = {plan.functions};
  program.functions.push_back(std::move(kernel));
  return program;
}

std::vector<text::Function> called_functions(const Plan& plan) {
  loops::Program program = program_of(plan, {});
  program.functions.back().name = kKernelName;
  const std::vector<text::WeightStruct> structs(program.functions.size());  // none has any
  std::vector<text::Function> functions;
  for (const loops::FunctionId i : plan.functions.ids())
    functions.push_back(text::RoutineWriter(program, i, structs, plan.schedules).write());
  return functions;
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
