// A plan as text.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <set>

#include "flashlight/mosaic/buffers.h"
#include "flashlight/mosaic/describe.h"
#include "flashlight/mosaic/kernel_writer.h"

namespace flashlight::mosaic {
namespace {

double megabytes(int64_t bytes) { return static_cast<double>(bytes) * 1e-6; }

class Printer {
 public:
  explicit Printer(const Plan& plan) : plan_(plan), names_(value_names(plan.routine)) {}

  std::string run() const {
    return fmt::format(
        "prepare, {:.1f} MB\n{}\nrun, {:.1f} MB for {:.1f} MB of values, at least {:.1f} MB\n{}",
        megabytes(plan_.prepared_bytes), kernels(plan_.prepare), megabytes(plan_.arena_bytes),
        megabytes(plan_.sum_bytes), megabytes(plan_.least_bytes), kernels(plan_.run));
  }

 private:
  std::string kernels(const std::vector<Kernel>& list) const {
    std::string text;
    for (size_t i = 0; i < list.size(); ++i)
      text += list[i].form == Kernel::Form::border
                  ? fmt::format("{:>5}  zeros around {}\n", i, names_[list[i].value])
                  : kernel(i, list[i]);
    return text;
  }

  std::string kernel(size_t number, const Kernel& kernel) const {
    const Description one = describe(plan_, kernel);
    std::string text = fmt::format("{:>5}  {}{}\n", number, write_kernel(plan_, kernel).name,
                                   modules(one.operations));
    const auto line = [&](const std::string& what) {
      if (!what.empty()) text += "         " + what + "\n";
    };
    line(one.loops);
    if (one.operations.size() > 1) line("fuses " + names_of(one.operations));
    if (one.flops > 0) line(work_of(one));
    if (kernel.factor) line("columns are multiplied by " + names_[*kernel.factor]);
    for (const size_t value : written(plan_, kernel)) line(memory(value));
    if (!kernel.ends.empty()) line("ends here: " + kernel.ends);
    return text;
  }

  // Where they stand in the model: "(layer1.0.conv1, layer1.0.bn1)".
  static std::string modules(const std::vector<cpp::Origin>& operations) {
    std::vector<std::string> list;
    for (const cpp::Origin& one : operations)
      if (!one.module.empty() && std::find(list.begin(), list.end(), one.module) == list.end())
        list.push_back(one.module);
    return list.empty() ? "" : fmt::format("  ({})", fmt::join(list, ", "));
  }

  // "writes relu_3 [56, 56, 64] at 401408 over add_2, which is read by 2: conv2d, add".
  std::string memory(size_t value) const {
    const cpp::Value& one = plan_.routine.values[value];
    std::vector<int64_t> sizes;
    for (const composit::Dim& size : one.type.sizes) sizes.push_back(size.value());
    std::string text = fmt::format("writes {} [{}]", names_[value], fmt::join(sizes, ", "));
    if (plan_.homes[value] == Home::arena) text += fmt::format(" at {}", plan_.offsets[value]);
    if (const auto operand = plan_.in_place.find(value); operand != plan_.in_place.end())
      text += " over " + names_[operand->second];
    if (one.role == cpp::Role::result) return text + ", a result";
    const auto reason = plan_.routine.kept.find(value);
    return reason == plan_.routine.kept.end() ? text : text + ", which " + reason->second;
  }

  const Plan& plan_;
  const std::vector<std::string> names_;
};

}  // namespace

std::string print(const Plan& plan) { return Printer(plan).run(); }

}  // namespace flashlight::mosaic
