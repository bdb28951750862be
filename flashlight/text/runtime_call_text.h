// Calls of the runtime and of LibTorch as C++ writes them.
//
//   function_text(call);      // "fl::sort", "fl::each<special_functions::i0>", "at::bincount"
//   header_of(call);          // "flashlight_order.hpp"
//   link_header_of(call);     // "ATen/ops/bincount.h", of a function of LibTorch
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "flashlight/loops/program.h"
#include "flashlight/text/code.h"

namespace flashlight::text {

using namespace loops;

std::string function_text(const RuntimeCall& call);
// The shipped header that has the function, or what a call of LibTorch needs.
std::string header_of(const RuntimeCall& call);
// Empty for a function of the runtime.
std::string link_header_of(const RuntimeCall& call);

// One text per option, of a function of the runtime. `dtype` is that of numbers compared with
// arguments.
std::vector<std::string> option_texts(const RuntimeCall& call, composit::DType dtype);
// One text per argument of a function of LibTorch; `name_of` writes the pointer to the value at a
// position of `call.arguments`.
std::vector<std::string> aten_arguments(const RuntimeCall& call,
                                        const std::function<std::string(size_t)>& name_of);

// The end of a function that a loader calls: it returns nullptr, or what `run` throws as a message.
Code reported(const Code& run);

}  // namespace flashlight::text
