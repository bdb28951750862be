// A model's graph as a graph of ATen's operators.
//
//   const Imported imported = import_model(model, tensors, {{"batch", 2}});
//   imported.graph.inputs();       // the model's inputs, then weights that are used
#pragma once

#include <map>
#include <string>
#include <vector>

#include "composit/interchange/onnx.h"
#include "composit/interchange/onnx_read/arrays.h"
#include "composit/interchange/onnx_read/proto.h"
#include "composit/ir/graph.h"

namespace composit::onnx_read {

struct Imported {
  Graph graph;
  std::map<std::string, Array> weights;
  std::vector<std::string> outputs;  // their names
};

// `sizes`: as OnnxReadOptions. `folds`: what follows from constants is a constant; else the graph
// computes it, unless it is one number, and a family sees how it follows from sizes. UserError as
// load_onnx says.
Imported import_model(const ModelProto& model, TensorReader& tensors,
                      const std::map<std::string, int64_t>& sizes, bool folds = true);

}  // namespace composit::onnx_read
