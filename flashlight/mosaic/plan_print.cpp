// A plan as text.
#include <spdlog/fmt/fmt.h>

#include "flashlight/mosaic/kernel_writer.h"

namespace flashlight::mosaic {
namespace {

// "conv2d, relu (layer1.0)".
std::string steps_of(const Plan& plan, const Kernel& kernel) {
  std::string operations, module;
  for (const size_t step : kernel.steps) {
    const std::string name = operation_name(plan, step);
    if (operations.find(name) == std::string::npos)
      operations += (operations.empty() ? "" : ", ") + name;
    module = cpp::origin_of(plan.routine.steps[step]).module;
  }
  return operations + (module.empty() ? "" : " (" + module + ")");
}

std::string division_of(const Kernel& kernel) {
  if (kernel.form != Kernel::Form::loops) return "";
  return kernel.trips > 0 ? fmt::format(", threads divide {} rounds", kernel.trips)
                          : ", one thread";
}

std::string lines(const Plan& plan, const std::vector<Kernel>& kernels) {
  std::string text;
  for (const Kernel& kernel : kernels) {
    if (kernel.form == Kernel::Form::border)
      text += fmt::format("  zeros around {}\n", plan.routine.values[kernel.value].name);
    else
      text += fmt::format("  {:<44} {}{}\n", write_kernel(plan, kernel).name,
                          steps_of(plan, kernel), division_of(kernel));
  }
  return text;
}

}  // namespace

std::string print(const Plan& plan) {
  return fmt::format(
      "prepare, {:.1f} MB\n{}run, {:.1f} MB for {:.1f} MB of values, at least {:.1f} MB\n{}",
      static_cast<double>(plan.prepared_bytes) * 1e-6, lines(plan, plan.prepare),
      static_cast<double>(plan.arena_bytes) * 1e-6, static_cast<double>(plan.sum_bytes) * 1e-6,
      static_cast<double>(plan.least_bytes) * 1e-6, lines(plan, plan.run));
}

}  // namespace flashlight::mosaic
