// A capture as an ONNX model, and a model as a capture.
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
//
//   SavedCapture model = load_onnx("resnet50.onnx");               // of any exporter
//   SavedCapture of_two = load_onnx("bert.onnx", {.sizes = {{"batch", 2}, {"tokens", 128}}});
//   SavedCapture of_any = load_onnx("bert.onnx", {.ranges = {{"tokens", 8, 512}}});
//
// Operators become ATen's; what models compute of sizes becomes numbers. Weights keep their names.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "composit/io/saved_capture.h"
#include "composit/op/size_range.h"

namespace composit {

// How a model is written.
struct OnnxOptions {
  int opset = 20;  // of ai.onnx, from 20 to 24
  // Leaves guards out: the model then gives numbers also where the program would go another way.
  bool drop_guards = false;
  // Products with weights of 4 bits in groups become onnxruntime's com.microsoft::MatMulNBits,
  // which other tools may not know. Not of families.
  bool matmul_nbits = false;
  // A folder of a saved capture, or a file of safetensors, that has the weights: the model refers
  // to them there, and needs no second copy. It has to lie in or below the model's folder.
  std::filesystem::path weights_in = {};
};

// Replaces `file`, and the file of its weights, when all is written. UserError where a file cannot
// be written, or the capture cannot: all operators that neither ONNX nor composit defines, with
// module and line, draws, numbers that follow the calls; of a family all that follows from sizes in
// a way that is not known, and cases whose results have another structure, dtype or number of axes,
// or that a value chooses between and that were shown at no sizes in common; weights that are not
// in `weights_in`.
void save_onnx(const SavedCapture& capture, const std::filesystem::path& file,
               const OnnxOptions& options = {});

// How a model is read.
struct OnnxReadOptions {
  // Sizes that the model leaves open, by the names it gives them ("batch"), or by input and axis
  // ("input_ids.0"); and values of inputs that are one integer, by their names ("sr"), which then
  // are no inputs any more.
  std::map<std::string, int64_t> sizes = {};
  // Sizes that the model leaves open and that stay so, by the same names: the capture is that of a
  // family (composit/family/saved_family.h) for these ranges.
  std::vector<SizeRange> ranges = {};
};

// The model in `file`, of ai.onnx 6 to 28. Nothing of it is run, but what follows from constants.
// Weights lie in the mapped files; they hold their values (`held_input`), so that the graph can be
// evaluated without them. There are no example inputs and outputs.
//
// UserError where the file is no model, or cannot be read: all operators that are not known at
// once, sizes that are open and not given, values that are needed and depend on inputs; for ranges
// what has another structure at some sizes, and no condition on sizes tells which.
SavedCapture load_onnx(const std::filesystem::path& file, const OnnxReadOptions& options = {});

// True if all bytes of a file may be a model, rather than something else.
bool is_onnx(std::string_view bytes);

}  // namespace composit
