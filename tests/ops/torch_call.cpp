#include "tests/ops/torch_call.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/clone.h>

#include "tracer/convert.h"

namespace composit {
namespace {

using flashlight::tracer::to_ivalue;
using flashlight::tracer::to_tensor;

c10::IValue list_ivalue(const std::vector<at::Tensor>& items, bool optional_items) {
  if (!optional_items) return c10::List<at::Tensor>(items);
  c10::List<std::optional<at::Tensor>> list;
  for (const at::Tensor& item : items)
    list.push_back(item.defined() ? std::optional(item) : std::nullopt);
  return list;
}

// Tensors of the sample, as leaves where they are differentiated.
std::vector<at::Tensor> tensors_of(const SampleCall& sample, bool grad, std::string_view fixed) {
  std::vector<at::Tensor> places;
  const Call& call = sample.call;
  for (size_t i = 0; i < call.size(); ++i) {
    const size_t end = i + 1 < call.size() ? call.first_tensor(i + 1) : call.tensors().size();
    const bool leaf = grad && fixed.find(call.schema().arguments[i].name) == std::string_view::npos;
    for (size_t place = call.first_tensor(i); place < end; ++place) {
      places.emplace_back();
      if (!call.tensors()[place].defined()) continue;
      at::Tensor& tensor = places.back() = to_tensor(sample.values[place]).clone();
      if (!is_input(*call.tensors()[place].node))
        tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
      else if (leaf && tensor.is_floating_point())
        tensor.requires_grad_(true);
    }
  }
  return places;
}

}  // namespace

std::optional<c10::OperatorHandle> torch_operator(const Schema& schema) {
  const std::string& name = schema.name.str();
  const size_t dot = name.find('.');
  const std::string overload = dot == std::string::npos ? "" : name.substr(dot + 1);
  return c10::Dispatcher::singleton().findSchema({name.substr(0, dot), overload});
}

TorchCall torch_call(const c10::OperatorHandle& op, const SampleCall& sample, bool grad,
                     std::string_view fixed) {
  TorchCall torch{tensors_of(sample, grad, fixed), {}};
  const Call& call = sample.call;
  torch::jit::Stack stack;
  // What a row has beyond the operator's schema says how LibTorch ran a call.
  for (size_t i = 0; i < op.schema().arguments().size(); ++i) {
    const SchemaArgument& argument = call.schema().arguments[i];
    const auto begin = torch.places.begin() + static_cast<std::ptrdiff_t>(call.first_tensor(i));
    if (call[i].is_list())
      stack.push_back(
          list_ivalue({begin, begin + static_cast<std::ptrdiff_t>(call[i].tensors().size())},
                      argument.optional_items));
    else if (argument.is_tensor())
      stack.push_back(call[i].is_none() ? c10::IValue() : c10::IValue(*begin));
    else
      stack.push_back(to_ivalue(call[i].data(), op.schema().arguments()[i].type(), {}));
  }
  op.callBoxed(stack);
  for (const c10::IValue& value : stack) {
    if (value.isTensorList()) {
      for (const at::Tensor& item : value.toTensorVector()) torch.results.push_back(item);
    } else {
      torch.results.push_back(value.isTensor() ? value.toTensor() : at::Tensor());
    }
  }
  return torch;
}

}  // namespace composit
