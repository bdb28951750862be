// Walks all rows of the table and compares with LibTorch: schemas, values, dtypes, sizes, and
// first and second derivatives in float64.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/sin.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include <cmath>

#include "composit/ad/chain_rule.h"
#include "composit/ad/vjp.h"
#include "composit/eval/evaluate.h"
#include "composit/ir/print.h"
#include "composit/op/samples.h"
#include "composit/ops/functions.h"
#include "tests/ops/tolerance.h"
#include "tracer/convert.h"

namespace composit {
namespace {

using Row = const Operation*;
using flashlight::tracer::to_ivalue;
using flashlight::tracer::to_tensor;

std::optional<c10::OperatorHandle> torch_operator(const Schema& schema) {
  const std::string& name = schema.name.str();
  const size_t dot = name.find('.');
  const c10::OperatorName key(name.substr(0, dot),
                              dot == std::string::npos ? "" : name.substr(dot + 1));
  return c10::Dispatcher::singleton().findSchema(key);
}

// A sample in LibTorch: results, with autograd's graph where `leaves` (the float inputs, by place)
// require a gradient.
struct TorchCall {
  std::vector<at::Tensor> places, results;
};

TorchCall torch_call(const c10::OperatorHandle& op, const SampleCall& sample, bool grad,
                     std::string_view fixed) {
  TorchCall call;
  for (const Array& value : sample.values)
    call.places.push_back(value.defined() ? to_tensor(value).clone() : at::Tensor());
  const Call& ours = sample.call;
  torch::jit::Stack stack;
  for (size_t i = 0; i < ours.size(); ++i) {
    const size_t place = ours.first_tensor(i);
    const bool leaf = grad && fixed.find(ours.schema().arguments[i].name) == std::string_view::npos;
    const auto tensor = [&](size_t at) {
      at::Tensor& value = call.places[at];
      if (value.defined() && is_input(*ours.tensors()[at].lazy().node)) {
        if (leaf && value.is_floating_point()) value.requires_grad_(true);
      } else if (value.defined()) {
        value.unsafeGetTensorImpl()->set_wrapped_number(true);
      }
      return value;
    };
    if (ours[i].is_list()) {
      const auto& type = op.schema().arguments()[i].real_type();
      c10::List<c10::IValue> items(type->expectRef<c10::ListType>().getElementType());
      for (size_t k = 0; k < ours[i].tensors().size(); ++k) {
        const at::Tensor item = tensor(place + k);
        items.push_back(item.defined() ? c10::IValue(item) : c10::IValue());
      }
      stack.emplace_back(c10::impl::toTypedList<at::Tensor>, items);
    } else if (ours[i].is_tensor()) {
      const at::Tensor value = tensor(place);
      stack.push_back(value.defined() ? c10::IValue(value) : c10::IValue());
    } else {
      stack.push_back(to_ivalue(ours[i].data(), op.schema().arguments()[i].real_type(), {}));
    }
  }
  op.callBoxed(stack);
  for (const c10::IValue& value : stack) {
    if (value.isTensorList())
      for (const at::Tensor& item : value.toTensorVector()) call.results.push_back(item);
    else
      call.results.push_back(value.isTensor() ? value.toTensor() : at::Tensor());
  }
  return call;
}

}  // namespace
}  // namespace composit
