// Weights, and what they are multiplied with, as integers of few bits: a capture becomes another
// one, whose weights are packed data and rows that say what it means.
//
//   const Quantized small = quantize(capture, {.weights = {.bits = 4, .group = 32}});
//   save(small.capture, "small");
//   std::cout << str(small);
//
// A layer is a product with a weight: `aten::linear`, `mm`, `addmm`, `matmul`, and, with integers
// of 8 bits by channel, a convolution. In place of a weight `fc.weight` stand these inputs:
//
// ```text
//   fc.weight.int8     int8 [out, in]
//   fc.weight.int4     uint8 [out, in / 2]: two to a byte, low half first, two's complement
//   fc.weight.scales   [out], or [out, groups]: groups lie along the inputs of the layer; float32,
//                      or 16-bit floats, which the graph casts to float32
//   fc.weight.divisors float32 [in]: what inputs are divided by; with `awq` and `smooth`
//   fc.weight.zeros    as the scales, int32; of 4 bits, two to a byte, or int8 if a row has an odd
//                      number of them; where `symmetric` is not set
// ```
//
// and `quantized_decomposed::dequantize_per_channel`, or `…_per_channel_group` of
// `composit::unpack_int4`, makes the weight of them. All who read the weight read that. So
// evaluation, backends, pictures and exports need to know nothing else.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "composit/io/saved_capture.h"
#include "composit/op/backend.h"

namespace composit {

// How the numbers of a weight are stored.
struct WeightFormat {
  int bits = 8;           // 8 or 4
  int64_t group = 0;      // inputs that share a scale; 0: all, one scale per output ("by channel")
  bool symmetric = true;  // false: with zero points
  // What scales are stored as, and rounded to: float32, float16, bfloat16. In groups of 32, those
  // of 4 bits take 5 bits per weight with float32, 4.5 with the others.
  DType scales = DType::float32;
  bool operator==(const WeightFormat&) const = default;
};

// How the numbers are stored that a weight is multiplied with.
enum class Activations : uint8_t {
  unchanged,   // as they are
  by_token,    // int8 with a scale for each row of inputs, found when the layer runs
  calibrated,  // int8 with one scale and zero point for the layer, found from examples
};

// How the integers of a weight are found. Where others read the weight, too, as an embedding may,
// and for convolutions, all methods are `nearest`.
enum class QuantizeMethod : uint8_t {
  nearest,  // each number for itself
  gptq,     // the errors of a column are made up for by those to the right: Frantar et al., 2023
  awq,      // inputs that are large in examples get finer steps: Lin et al., 2024
  smooth,   // outliers of inputs move into the weight: SmoothQuant, Xiao et al., 2023
};
// "nearest", "gptq", "awq", "smooth"; UserError for other text.
std::string_view name(QuantizeMethod method);
QuantizeMethod quantize_method(std::string_view name);
// "unchanged", "by_token", "calibrated"; UserError for other text.
std::string_view name(Activations activations);
Activations activations_from_name(std::string_view name);

// float32, float16 or bfloat16, as scales are stored; UserError for other text.
DType scales_dtype(std::string_view name);

// What is quantized, and how.
struct QuantizeOptions {
  WeightFormat weights = {};                         // see above
  Activations activations = Activations::unchanged;  // of linear layers
  // Of calibrated inputs: all who read what a layer reads, as the sum of a residual does, read the
  // rounded numbers, so that memory need not hold others. Results get less exact by that.
  bool all_readers = false;
  QuantizeMethod method = QuantizeMethod::nearest;  // all but `nearest` need examples
  // Names of weights, where `*` stands for any text: those to quantize (all, if empty), less those
  // to leave.
  std::vector<std::string> layers = {}, except = {};
  // Runs of the program: each one array per user input. Empty: the example of the capture.
  std::vector<std::vector<Array>> examples = {};
  // The error that results may have: the root of the mean square of their differences, in units of
  // the spread (standard deviation) of the result; of results of floating point, and of what is
  // written. As many layers as that allows are quantized, those with the smallest errors first.
  std::optional<double> max_error = {};
  // Measures the error of each layer's output, and of the results, on the examples.
  bool measure = true;
  const Backend* backend = nullptr;  // who runs the examples; nullptr: the reference, which is slow
  // Who measures what each layer alone costs the results, by a program for each of them; nullptr:
  // that is not measured. One that need not run a compiler, like flashlight's `aten`, is fast.
  const Backend* alone = nullptr;
};

// A weight that was quantized, or that could have been.
struct QuantizedLayer {
  std::string weight;                         // its name
  std::string scope;                          // the module that uses it first
  Dims sizes;                                 // of the weight
  int64_t bytes_before = 0, bytes_after = 0;  // of the weight, with scales and zero points
  // |q - w| / |w|, root of sums of squares.
  double weight_error = 0;
  // The same of the layer's output on the examples, with the inputs that the program has there;
  // nothing where it was not measured.
  std::optional<double> output_error = {};
  // The error of the results if this layer alone is quantized, as `max_error` counts it; nothing
  // where it was not measured.
  std::optional<double> result_error = {};
  std::string left = {};  // why it stays as it was; empty: it was quantized
};

// A quantized capture, and what became of its weights.
struct Quantized {
  SavedCapture capture;                // with new results of the example, where it has one
  std::vector<QuantizedLayer> layers;  // in the order of the graph's inputs
  // The error of all results on the examples, as `max_error` counts it; nothing: not measured.
  std::optional<double> error = {};
};

// UserError for a graph without such layers, scales of another dtype or beyond its range, a pattern
// that no weight has, a weight that has NaN or infinite elements, groups that do not divide the
// inputs of a layer, a method without examples, an error that cannot be kept, or that nothing has
// since the program gives integers alone.
Quantized quantize(const SavedCapture& capture, const QuantizeOptions& options = {});
// The same for a graph whose weights are held by its inputs.
Graph quantize(const Graph& graph, const QuantizeOptions& options = {});

// The capture with other values for some of its weights, by name: values made of inputs that hold
// theirs, as `numbers_of` (composit/io/gguf.h) gives them. UserError for a name that no weight has,
// for a weight that the program writes, and for a value of other sizes, or of another dtype.
SavedCapture with_values(const SavedCapture& capture,
                         const std::map<std::string, LazyTensor>& values);

// A table for people: bytes and errors per layer, the largest errors, what they suggest. Where it
// was measured what each layer alone costs the results, the worst first.
std::string str(const Quantized& quantized);

}  // namespace composit
