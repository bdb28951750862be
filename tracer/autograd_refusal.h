// Calls that autograd turned down before their kernel ran, and which therefore wrote nothing.
//
//   if (autograd_refuses(info, written, differentiated)) return;   // nothing happened
//
// Replay runs below autograd, where such a call would go through.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include "tracer/op_info.h"

namespace flashlight::tracer {

// Appends the tensors that require grad.
void add_differentiated(c10::SmallVectorImpl<at::Tensor>& tensors, c10::ArrayRef<c10::IValue> arguments);

// Is the call refused that writes `written`? `differentiated`: its arguments that require grad, if grad mode is on.
bool autograd_refuses(const OpInfo& info, c10::ArrayRef<at::Tensor> written, c10::ArrayRef<at::Tensor> differentiated);

}  // namespace flashlight::tracer
