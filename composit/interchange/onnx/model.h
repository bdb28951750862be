// A graph of ONNX's operators as the bytes of a model (onnx.proto of ONNX 1.16 and later).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "composit/interchange/onnx.h"
#include "composit/interchange/onnx/lower.h"
#include "composit/ir/array.h"

namespace composit::onnx {

// An array outside of the model, in its file of weights.
struct External {
  Array array;  // row-major
  uint64_t offset = 0;
};

struct Model {
  std::string bytes;
  std::vector<External> data;  // by growing offset
};

// `data_file`: the name of the file of weights, beside the model.
Model model_of(const Lowered& lowered, const SavedCapture& capture, const std::string& name,
               const std::string& data_file, const OnnxOptions& options);

}  // namespace composit::onnx
