// A capture as an ONNX model.
//
//   save_onnx(load("resnet50"), "resnet50.onnx");      // and resnet50.onnx.data, the weights
//
// Initializers have the names of parameters and buffers, nodes know their module (`namespace`, as
// Netron shows it) and line. Nodes are ONNX's operators where ONNX has them, and else what
// composit's definitions make of an operation.
//
// ONNX has no assertions. What the capture takes for granted is a Boolean output per guard,
// "guard_0", …, which whoever runs the model has to look at; what they ask stands in the metadata
// "guards". What the program writes are outputs, too: "NAME.written".
#pragma once

#include <filesystem>

#include "composit/io/saved_capture.h"

namespace composit {

// How a model is written.
struct OnnxOptions {
  int opset = 20;  // of ai.onnx, from 20 to 24
  // Leaves guards out: the model then gives numbers also where the program would go another way.
  bool drop_guards = false;
};

// Replaces `file`, and the file of its weights, when all is written. UserError where a file cannot
// be written, or the capture cannot: all operators that neither ONNX nor composit defines, with
// module and line, a family, draws, numbers that follow the calls.
void save_onnx(const SavedCapture& capture, const std::filesystem::path& file,
               const OnnxOptions& options = {});

}  // namespace composit
