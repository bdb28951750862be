#include "composit/quantize/measure.h"

#include <algorithm>
#include <cmath>

#include "composit/ops/functions.h"
#include "composit/ops/native.h"

namespace composit::quantization {
namespace {

// Of float32, whose sums of squares do not overflow as those of float16 do.
LazyTensor sum_of_squares(const LazyTensor& x) { return sum(square(to(x, DType::float32))); }

LazyTensor changed_product(const LayerChange& change, const Product& product) {
  const LazyTensor x = changed_factor(change, *product.node, product.node->operands()[product.x]);
  return product_with(product, x, change.stored.value);
}

double number_of(const Array& array) { return elements<double>(array)[0]; }

}  // namespace

std::vector<double> output_errors(const ExampleRuns& runs, const Changes& changes) {
  LazyTensors outputs;
  for (const auto& [layer, change] : changes)
    for (const Product& product : layer->products) {
      const LazyTensor y{product.node, 0};
      outputs.push_back(sum_of_squares(changed_product(change, product) - y));
      outputs.push_back(sum_of_squares(y));
    }
  std::vector<double> wrong(changes.size()), all(changes.size());
  for (const std::vector<Array>& values : runs.values_of(outputs)) {
    size_t next = 0;
    for (size_t i = 0; i < changes.size(); ++i)
      for (size_t k = 0; k < changes[i].first->products.size(); ++k) {
        wrong[i] += number_of(values[next++]);
        all[i] += number_of(values[next++]);
      }
  }
  std::vector<double> errors;
  for (size_t i = 0; i < changes.size(); ++i)
    errors.push_back(wrong[i] == 0 ? 0 : std::sqrt(wrong[i] / all[i]));
  return errors;
}

double result_error(const ExampleRuns& runs, const SavedCapture& capture,
                    const SavedCapture& changed) {
  LazyTensors outputs;
  for (size_t i = 0; i < capture.graph.outputs().size(); ++i) {
    const LazyTensor &before = capture.graph.outputs()[i], &after = changed.graph.outputs()[i];
    if (!before || !is_floating_point(before.dtype()) || before.numel() == 0) continue;
    const LazyTensor y = to(before, DType::float32);
    outputs.push_back(mean(square(to(after, DType::float32) - y)));
    outputs.push_back(mean(square(y - mean(y))));
  }
  std::vector<double> sums(outputs.size());
  for (const std::vector<Array>& values : runs.values_of(outputs))
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += number_of(values[i]);
  double largest = 0;
  for (size_t i = 0; i + 1 < sums.size(); i += 2)
    if (sums[i] > 0) largest = std::max(largest, std::sqrt(sums[i] / sums[i + 1]));
  return largest;
}

}  // namespace composit::quantization
