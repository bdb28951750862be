#include "flashlight/mosaic/kernel_writer.h"

#include "flashlight/text/literal.h"

namespace flashlight::mosaic {

std::string operation_name(const Plan& plan, StepId step) {
  return text::identifier(loops::short_name(loops::origin_of(plan.routine.steps[step])));
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
