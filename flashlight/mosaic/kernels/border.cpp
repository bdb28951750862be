#include "flashlight/mosaic/kernels/border.h"

#include <spdlog/fmt/fmt.h>

#include "flashlight/text/open_numbers.h"

namespace flashlight::mosaic {
namespace {

struct BorderForm {
  static ValueIds touched(const Plan&, const Kernel& kernel) {
    return {data_of<Border>(kernel).value};
  }

  static std::string loops(const Plan& plan, const Kernel& kernel, const KernelForm::Names& names) {
    const ValueId value = data_of<Border>(kernel).value;
    return fill_name(plan.layouts.at(value)) + " around " + names[value];
  }

  static KernelText write(const Plan& plan, const Kernel& kernel) {
    const ValueId value = data_of<Border>(kernel).value;
    const Layout& layout = plan.layouts.at(value);
    std::vector<int64_t> sizes, before, after;
    const std::vector<Tiling::Loop>& axes = layout.tiling.loops();
    for (size_t i = 0; i < axes.size(); ++i) {
      const size_t dimension = axes[i].dimension;
      // Elements after the zeros of the innermost dimension are cleared with them.
      const int64_t apart = i + 1 == axes.size() && layout.after[dimension] > 0 ? layout.apart : 0;
      sizes.push_back(plan.routine.values[value].type.sizes[i]);
      before.push_back(layout.before[dimension]);
      after.push_back(layout.after[dimension] + apart);
    }
    const auto list = [](const std::vector<int64_t>& numbers) {
      std::string text;
      for (const int64_t one : numbers) text += (text.empty() ? "" : ", ") + text::open_number(one);
      return "{" + text + "}";
    };
    KernelText text = {.name = fmt::format("fl::clear_border<{}>", axes.size()),
                       .values = {value},
                       .by_pointer = true,
                       .first = "team",
                       .last = {list(sizes), list(before), list(after)}};
    if (layout.fill != 0) text.last.push_back(std::to_string(layout.fill));
    return text;
  }
};

}  // namespace

const KernelForm kBorder = {.name = "border",
                            .touched = BorderForm::touched,
                            .written = BorderForm::touched,
                            .loops = BorderForm::loops,
                            .write = BorderForm::write};

Kernel border_kernel(ValueId value) {
  return {.form = &kBorder, .data = std::make_shared<Border>(value)};
}

}  // namespace flashlight::mosaic
