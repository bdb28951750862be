// Calls of samples in LibTorch.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <string_view>
#include <vector>

#include "composit/op/samples.h"

namespace composit {

// Nothing where LibTorch has no operator of that name.
std::optional<c10::OperatorHandle> torch_operator(const Schema& schema);

struct TorchCall {
  std::vector<at::Tensor> places;   // per place of Call::tensors(), undefined where there is none
  std::vector<at::Tensor> results;  // lists flattened; undefined where a result is no tensor
};

// Runs `op` on the sample's values. `grad`: float inputs are leaves that require a gradient, but
// for the arguments named in `fixed`.
TorchCall torch_call(const c10::OperatorHandle& op, const SampleCall& sample, bool grad,
                     std::string_view fixed);

}  // namespace composit
