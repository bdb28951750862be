// Which weights are quantized.
#pragma once

#include <string>
#include <vector>

#include "composit/quantize/layers.h"

namespace composit::quantization {

struct Selection {
  std::vector<Layer> chosen;
  std::vector<QuantizedLayer> left;  // with the reason
  std::vector<std::string> order;    // of all weights
};

// UserError for options that do not fit together, a pattern that no weight has, a weight that is
// named and cannot be quantized, groups that do not divide, and where nothing is chosen.
Selection select(const SavedCapture& capture, const QuantizeOptions& options);

// `*` stands for any text.
bool matches(std::string_view pattern, std::string_view text);

}  // namespace composit::quantization
