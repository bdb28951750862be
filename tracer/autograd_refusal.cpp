#include "tracer/autograd_refusal.h"

#include <torch/csrc/autograd/VariableTypeUtils.h>

#include <algorithm>

namespace flashlight::tracer {
namespace {

template <class Check>
bool throws(Check check) {
  try {
    check();
    return false;
  } catch (const c10::Error&) {
    return true;
  }
}

}  // namespace

void add_differentiated(c10::SmallVectorImpl<at::Tensor>& tensors, c10::ArrayRef<c10::IValue> arguments) {
  const auto add = [&](const c10::IValue& value) {
    if (value.isTensor() && value.toTensor().requires_grad()) tensors.push_back(value.toTensor());
  };
  for (const c10::IValue& argument : arguments) {
    if (!argument.isTensorList()) {
      add(argument);
      continue;
    }
    for (const c10::IValue& item : argument.toListRef()) add(item);
  }
}

bool autograd_refuses(const OpInfo& info, c10::ArrayRef<at::Tensor> written, c10::ArrayRef<at::Tensor> differentiated) {
  if (differentiated.empty()) return false;
  if (std::find(info.out.begin(), info.out.end(), true) != info.out.end()) return true;
  // A view whose base was written in a way autograd does not allow is turned down when it is read.
  return std::any_of(differentiated.begin(), differentiated.end(),
                     [](const at::Tensor& tensor) { return throws([&] { (void)tensor.grad_fn(); }); }) ||
         std::any_of(written.begin(), written.end(), [](const at::Tensor& tensor) {
           return throws([&] { torch::autograd::check_inplace(tensor, true); });
         });
}

}  // namespace flashlight::tracer
