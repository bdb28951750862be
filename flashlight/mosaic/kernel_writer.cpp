#include "flashlight/mosaic/kernel_writer.h"

#include <spdlog/fmt/fmt.h>

#include <set>

#include "flashlight/cpp/literal.h"
#include "flashlight/cpp/routine_writer.h"
#include "flashlight/mosaic/kernel_routine.h"

namespace flashlight::mosaic {
namespace {

KernelText write_loops(const Plan& plan, const Kernel& kernel) {
  KernelRoutine one = kernel_routine(
      plan.routine, kernel.steps, [&](size_t value) { return plan.homes[value] == Home::kernel; });
  KernelText text;
  text.name = operation_name(plan, kernel.steps.back());
  one.routine.name = kKernelName;
  one.routine.in_parts = kernel.trips > 0;
  for (cpp::Step& step : one.routine.steps)
    if (auto* nest = std::get_if<cpp::Nest>(&step)) nest->origin = {nest->origin.operation, "", ""};
  cpp::Program program = {{one.routine}};
  const std::vector<cpp::WeightStruct> structs(1);
  const std::vector<cpp::Signature> callees;
  cpp::RoutineWriter writer(program, 0, structs, callees);
  std::string operations;
  std::set<std::string> seen;
  for (const size_t step : kernel.steps) {
    const std::string name = operation_name(plan, step);
    if (seen.insert(name).second) operations += (operations.empty() ? "" : ", ") + name;
  }
  text.code = cpp::comment(operations);
  const cpp::Code code = writer.write();
  text.code += code;
  // It was named as an identifier, in lower case.
  const std::string name = cpp::identifier(kKernelName);
  for (std::string& line : text.code.lines)
    if (const size_t at = line.find("void " + name + "("); at != std::string::npos)
      line.replace(at + 5, name.size(), kKernelName);
  text.values = one.inputs;
  text.values.insert(text.values.end(), one.results.begin(), one.results.end());
  if (kernel.trips > 0) text.first = fmt::format("team.part({})", kernel.trips);
  return text;
}

}  // namespace

std::string operation_name(const Plan& plan, size_t step) {
  std::string name = cpp::origin_of(plan.routine.steps[step]).operation;
  if (const size_t colons = name.find("::"); colons != std::string::npos) name.erase(0, colons + 2);
  return cpp::identifier(name.substr(0, name.find('.')));
}

KernelText write_kernel(const Plan& plan, const Kernel& kernel) {
  switch (kernel.form) {
    case Kernel::Form::product:
      return write_product(plan, kernel);
    case Kernel::Form::pack:
      return write_pack(plan, kernel);
    case Kernel::Form::attention:
      return write_attention(plan, kernel);
    default:
      return write_loops(plan, kernel);
  }
}

}  // namespace flashlight::mosaic
