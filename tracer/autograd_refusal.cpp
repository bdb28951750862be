#include "tracer/autograd_refusal.h"

#include <torch/csrc/autograd/VariableTypeUtils.h>

#include <algorithm>

namespace flashlight::tracer {
namespace {

bool refuses_to_write(const at::Tensor& tensor, bool requires_grad) {
  try {
    torch::autograd::check_inplace(tensor, requires_grad);
    return false;
  } catch (const c10::Error&) {
    return true;
  }
}

}  // namespace

bool any_requires_grad(c10::ArrayRef<c10::IValue> arguments) {
  const auto requires_grad = [](const c10::IValue& value) { return value.isTensor() && value.toTensor().requires_grad(); };
  return std::any_of(arguments.begin(), arguments.end(), [&](const c10::IValue& argument) {
    if (!argument.isTensorList()) return requires_grad(argument);
    const auto list = argument.toListRef();
    return std::any_of(list.begin(), list.end(), requires_grad);
  });
}

bool autograd_refuses(const OpInfo& info, c10::ArrayRef<at::Tensor> written, bool requires_grad) {
  if (!requires_grad) return false;
  if (std::find(info.out.begin(), info.out.end(), true) != info.out.end()) return true;
  return std::any_of(written.begin(), written.end(),
                     [](const at::Tensor& tensor) { return refuses_to_write(tensor, true); });
}

}  // namespace flashlight::tracer
