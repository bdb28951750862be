// Runs of the program with more results than its own: what layers are multiplied with, errors.
//
//   const ExampleRuns runs(capture, options);
//   for (const std::vector<Array>& values : runs.values_of({sum(square(x))})) ...
#pragma once

#include <map>
#include <vector>

#include "composit/quantize/layers.h"

namespace composit::quantization {

class ExampleRuns {
 public:
  // UserError where an example has another number of arrays than the program has user inputs.
  ExampleRuns(const SavedCapture& capture, const QuantizeOptions& options);

  bool empty() const { return examples_.empty(); }
  // Per example, the values of tensors that depend on the inputs of the graph and on inputs that
  // hold values.
  std::vector<std::vector<Array>> values_of(const LazyTensors& outputs) const;

 private:
  const SavedCapture& capture_;
  const Backend& backend_;
  std::vector<std::vector<Array>> examples_;
};

// What is known of the numbers that a layer is multiplied with: of all products and examples.
struct InputStatistics {
  int64_t inputs = 0;
  std::vector<double> gram = {};                              // [inputs, inputs]: sums of x_i x_j
  std::vector<double> sums = {};                              // of |x_i|
  std::vector<float> largest = {};                            // of |x_i|
  std::map<const Node*, std::pair<float, float>> range = {};  // smallest and largest, by product
};
// One per layer; empty ones for convolutions, but for `range`.
std::vector<InputStatistics> input_statistics(const ExampleRuns& runs,
                                              const std::vector<Layer>& layers, bool with_gram);

}  // namespace composit::quantization
