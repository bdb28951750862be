// A graph of ONNX's operators as the bytes of a model (onnx.proto of ONNX 1.16 and later).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "composit/interchange/onnx.h"
#include "composit/interchange/onnx/lower.h"
#include "composit/interchange/onnx/stored_weights.h"
#include "composit/interchange/onnx/unify.h"
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

// What a model is made of besides operators.
struct ModelParts {
  std::string name;                       // of the model
  std::string data_file;                  // the name of its file of weights, beside it
  const StoredWeights* stored = nullptr;  // weights that lie somewhere already
  const Unified* family = nullptr;        // of which the operators are: then sizes have names
};

Model model_of(const Lowered& lowered, const SavedCapture& capture, const ModelParts& parts,
               const OnnxOptions& options);

}  // namespace composit::onnx
