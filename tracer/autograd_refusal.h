// Calls that autograd turned down before their kernel ran, and which therefore wrote nothing.
//
//   if (autograd_refuses(info, written, any_requires_grad(arguments))) return;   // nothing happened
//
// Replay runs below autograd, where such a call would go through.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include "tracer/op_info.h"

namespace flashlight::tracer {

bool any_requires_grad(c10::ArrayRef<c10::IValue> arguments);

// Is the call refused that writes `written`? `requires_grad`: grad mode is on and an argument requires grad.
bool autograd_refuses(const OpInfo& info, c10::ArrayRef<at::Tensor> written, bool requires_grad);

}  // namespace flashlight::tracer
