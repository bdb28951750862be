// Writes the function that fills a program's structs of weights from a file.
//
//   load_weights({{"encoder_layer[0].bias", "encoder.layer.0.bias", type}, ...});
//
//   Weights load_weights(const fl::Safetensors& file) {
//     Weights weights;
//     for (int i = 0; i < 12; ++i) {
//       auto& encoder_layer = weights.encoder_layer[i];
//       const std::string module = "encoder.layer." + std::to_string(i) + ".";
//       encoder_layer.bias = file.tensor<float>(module + "bias", {768});
//     }
//     return weights;
//   }
#pragma once

#include <string>
#include <vector>

#include "composit/ir/type.h"
#include "flashlight/text/code.h"

namespace flashlight::package {

using namespace text;

struct StoredWeight {
  std::string member;  // of the struct: "encoder_layer[0].bias"
  std::string tensor;  // in the file
  composit::Type type;
};

// The code of `load_weights`, after the functions that it calls for parts of a large model.
// `weights` are in the order of the struct; `more` runs after they are filled.
Code load_weights(const std::vector<StoredWeight>& weights, const Code& more = {});

}  // namespace flashlight::package
