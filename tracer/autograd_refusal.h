// Calls that autograd turned down before their kernel ran, and which therefore wrote nothing.
//
//   if (autograd_refused(info, arguments)) return;   // nothing happened
//
// Replay runs below autograd, where such a call would go through.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <optional>
#include <vector>

#include "tracer/op_info.h"

namespace flashlight::tracer {

// Does autograd keep what this call is given?
bool any_requires_grad(c10::ArrayRef<c10::IValue> arguments);

// The results of the operator for copies of these arguments, below autograd; nothing if it throws.
std::optional<std::vector<c10::IValue>> results_on_copies(const OpInfo& info,
                                                          c10::ArrayRef<c10::IValue> arguments);

// The call threw: was it autograd that did, by its own rules or since the kernel alone goes through
// on copies?
bool autograd_refused(const OpInfo& info, c10::ArrayRef<c10::IValue> arguments);

}  // namespace flashlight::tracer
