// Results of custom autograd functions: their derivative is code of the host that the graph does
// not have.
//
//   if (auto name = custom_gradient(recording, value, tensor)) ...   // "MySquareBackward"
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

#include "tracer/recording.h"

namespace flashlight::tracer {

// The name of the function that autograd calls for the gradient of `tensor`, where that is not the
// operator that made `value`: autograd has a gradient for what was computed with grad mode off. A
// tensor that is written in place with grad mode off keeps its gradient, and is no such result.
std::optional<std::string> custom_gradient(const Recording& recording, ValueId value,
                                           const at::Tensor& tensor);

}  // namespace flashlight::tracer
