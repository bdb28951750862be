// The checks of a replay's inputs before the first step: their types, and the memory around them.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "tracer/plan.h"

namespace flashlight::tracer {

// Ends an error about inputs that a capture does not hold for.
constexpr const char* kCaptureAgain = "; capture again for these inputs: trace(model, inputs…)";

// UserError that names the first input that is of another type than the graph's, or shares memory
// with another one as it did not when it was captured.
void expect_inputs(const Plan::Impl& plan, const std::vector<at::Tensor>& inputs);

// The error about a tensor, `who`, of whose storage the program uses more than the tensor shows:
// `count` bytes, `begin` of them before its first element.
std::string lies_elsewhere(const std::string& who, int64_t begin, int64_t count);

std::string describe(const at::Tensor& tensor);
std::string describe(const composit::Type& type);
bool same_sizes(const at::Tensor& tensor, const composit::Type& type);

}  // namespace flashlight::tracer
