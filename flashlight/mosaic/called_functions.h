// The functions that kernels of loops call: bodies of branches and loops of the model.
#pragma once

#include <string>
#include <vector>

#include "flashlight/mosaic/plan.h"
#include "flashlight/text/routine_writer.h"

namespace flashlight::mosaic {

// The name of a kernel among these functions.
inline constexpr const char* kKernelName = "kernel";

// In their order.
std::vector<text::Function> called_functions(const Plan& plan);

// The plan's functions, and `kernel` as the last one.
loops::Program program_of(const Plan& plan, loops::Routine kernel);

// Names of headers that runtime calls need.
std::vector<std::string> headers_of(const Plan& plan);
// True if a kernel of the plan draws random numbers.
bool draws(const Plan& plan);

}  // namespace flashlight::mosaic
