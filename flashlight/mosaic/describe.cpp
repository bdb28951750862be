#include "flashlight/mosaic/describe.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <set>

#include "composit/ir/scope.h"
#include "flashlight/loops/statement.h"
#include "flashlight/mosaic/buffers.h"
#include "flashlight/mosaic/kernels/forms.h"
#include "flashlight/text/literal.h"

namespace flashlight::mosaic {
namespace {

using loops::Statement;

// A table whose rows are picked by indices counts with as many bytes as they can pick at most.
int64_t bytes_of(const Plan& plan, const Kernel& kernel) {
  std::set<ValueId> values;
  for (const ValueId value : touched(plan, kernel)) values.insert(value);
  const bool is_loops = kernel.form == &kLoops;
  int64_t most = is_loops ? 0 : INT64_MAX;
  for (const StepId step : kernel.steps)
    if (const auto* nest = std::get_if<loops::Nest>(&plan.routine.steps[step]);
        nest != nullptr && is_loops)
      most += loops::iterations(nest->statement);
    else
      most = INT64_MAX;
  int64_t sum = 0;
  for (const ValueId value : values) {
    const composit::Type& type = plan.routine.values[value].type;
    const auto item = static_cast<int64_t>(composit::item_size(type.dtype));
    if (plan.homes[value] != Home::kernel) sum += std::min(type.numel(), most) * item;
  }
  return sum;
}

void add_operations(const loops::Step& step, std::vector<loops::Origin>& operations) {
  const auto add = [&](const loops::Origin& one) {
    if (std::find(operations.begin(), operations.end(), one) == operations.end())
      operations.push_back(one);
  };
  if (const auto* nest = std::get_if<loops::Nest>(&step))
    for (const loops::Origin& one : nest->fused) add(one);
  add(loops::origin_of(step));
}

std::string amount(double x) {
  return x >= 1e6   ? fmt::format("{:.1f} M", x * 1e-6)
         : x >= 1e3 ? fmt::format("{:.1f} k", x * 1e-3)
                    : fmt::format("{:.0f} ", x);
}

}  // namespace

Description describe(const Plan& plan, const Kernel& kernel,
                     const std::vector<std::string>& names) {
  Description one;
  for (const StepId step : kernel.steps) add_operations(plan.routine.steps[step], one.operations);
  one.bytes = bytes_of(plan, kernel);
  one.loops = kernel.form->loops(plan, kernel, names);
  if (kernel.form->flops != nullptr) one.flops = kernel.form->flops(plan, kernel);
  return one;
}

std::string names_of(const std::vector<loops::Origin>& operations) {
  std::vector<std::string> names;
  for (const loops::Origin& one : operations) {
    const std::string name = loops::short_name(one);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string work_of(const Description& one) {
  return fmt::format(
      "{}FLOP, {}B, {:.2g} FLOP per byte", amount(static_cast<double>(one.flops)),
      amount(static_cast<double>(one.bytes)),
      static_cast<double>(one.flops) / static_cast<double>(std::max<int64_t>(one.bytes, 1)));
}

text::Code comment_of(const Plan& plan, const Kernel& kernel) {
  const Description one = describe(plan, kernel, {});
  text::Code code;
  if (!one.operations.empty()) code += text::comment(names_of(one.operations));
  if (!one.loops.empty()) code += text::comment(one.loops);
  if (one.flops > 0) code += text::comment(work_of(one));
  return code;
}

std::vector<std::string> value_names(const loops::Routine& routine) {
  std::set<std::string> taken;
  std::vector<std::string> names;
  for (const loops::Value& value : routine.values)
    names.push_back(composit::unused_name(text::identifier(value.name), taken));
  return names;
}

}  // namespace flashlight::mosaic
