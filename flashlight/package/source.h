// The parts of a program's C++ that are the same for all backends. A backend adds its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "composit/ir/array.h"
#include "flashlight/text/code.h"

namespace flashlight::package {

struct Source {
  std::string name;                        // namespace, and name of the last function
  std::string text;                        // one translation unit
  std::vector<size_t> arguments;           // inputs of the program that are passed, in this order
  std::vector<size_t> weights;             // the same for weights
  std::vector<composit::Array> constants;  // per weight: its elements, if it is no input
  std::vector<std::string> members;        // per weight: its member, "encoder_layer[3].bias"
  std::vector<std::string> headers;        // of its runtime calls, besides the backend's own
  std::vector<std::string> links;          // LibTorch's headers that it includes
  int64_t arena_bytes = 0;
  bool draws = false;  // takes a fl::Generator
};

// `#include` of LibTorch's headers, of kRuntimeName, and of those that runtime calls need.
text::Code includes(const Source& source);

}  // namespace flashlight::package
