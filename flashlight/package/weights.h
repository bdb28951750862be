// The values of a capture's parameters and buffers.
//
//   const std::vector<Array> weights = weights_of(capture);      // by input of the graph
#pragma once

#include <vector>

#include "composit/io/saved_capture.h"

namespace flashlight::package {

// The value of a parameter or buffer, by its input. UserError if it has none.
composit::Array weight_of(const composit::SavedCapture& capture, const composit::LazyTensor& input);
// The same for all, by input of the graph; undefined for inputs of the user.
std::vector<composit::Array> weights_of(const composit::SavedCapture& capture);

}  // namespace flashlight::package
