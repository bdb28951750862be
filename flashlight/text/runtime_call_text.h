// Writes calls of the runtime and of LibTorch as C++.
//
//   function_text(call);      // "fl::sort", "fl::each<special_functions::i0>", "at::bincount"
//   header_of(call);          // "flashlight_order.hpp"
//   link_header_of(call);     // "ATen/ops/bincount.h", for a function of LibTorch
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "flashlight/loops/program.h"
#include "flashlight/text/code.h"

namespace flashlight::text {

using namespace loops;

std::string function_text(const RuntimeCall& call);
// The shipped header that has the function, or that all calls of LibTorch need.
std::string header_of(const RuntimeCall& call);
// LibTorch's header that declares the function; empty for a function of the runtime.
std::string link_header_of(const RuntimeCall& call);

// One text per option of a function of the runtime. Scalars are written as `dtype`, since the
// function compares them with its arguments.
std::vector<std::string> option_texts(const RuntimeCall& call, composit::DType dtype);
// Writes the tensor of these sizes over the value at an index of `call.arguments`.
using TensorText = std::function<std::string(size_t index, const std::vector<int64_t>& sizes)>;
// One text per argument of a function of LibTorch; `device` is the text of a device.
std::vector<std::string> aten_arguments(const RuntimeCall& call, const TensorText& tensor,
                                        const std::string& device = "at::kCPU");
// "{3, 4}".
std::string braces(const std::vector<int64_t>& numbers);
// "fl::tensor(x, {3, 4})".
std::string tensor_text(const std::string& pointer, const std::vector<int64_t>& sizes);

// The body of a function that a loader calls: returns nullptr, or the message of what `run` throws.
Code reported(const Code& run);

}  // namespace flashlight::text
