#include "tracer/custom_gradient.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include "tracer/op_info.h"

namespace flashlight::tracer {

std::optional<std::string> custom_gradient(const Recording& recording, ValueId value,
                                           const at::Tensor& tensor) {
  if (value >= kListMark || !tensor.defined()) return std::nullopt;
  const Record& record = recording.records[recording.values[value].record];
  const bool made = record.kind == RecordKind::op && !record.rewrites && !record.info->writes_any;
  if (record.grad || !made) return std::nullopt;
  // Not grad_fn(): that may call operators to make a view's anew.
  const auto* meta = torch::autograd::impl::get_autograd_meta(tensor);
  if (meta == nullptr || meta->grad_fn_ == nullptr) return std::nullopt;
  return meta->grad_fn_->name();
}

}  // namespace flashlight::tracer
