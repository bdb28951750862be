#include "composit/quantize/measure.h"

#include <algorithm>
#include <cmath>

#include "composit/ops/functions.h"
#include "composit/ops/native.h"

namespace composit::quantization {
namespace {

// In float32, whose sums of squares do not overflow as those of float16 do.
LazyTensor wide(const LazyTensor& x) { return to(x, DType::float32); }

// What `after` is more than `before`; 0 where both are the same infinity, or no number.
LazyTensor difference(const LazyTensor& after, const LazyTensor& before) {
  const LazyTensor by = where(eq(after, before), Number(0.0), after - before);
  return where(isnan(before), where(isnan(after), Number(0.0), by), by);
}

// The elements that are finite, and 0 for the others.
LazyTensor finite(const LazyTensor& x) { return where(isnan(x - x), Number(0.0), x); }

// The spread of the finite elements, as a mean square over all.
LazyTensor spread(const LazyTensor& x) {
  const LazyTensor is_finite = where(isnan(x - x), Number(0.0), ones_like(x)), all = sum(is_finite),
                   count = maximum(all, ones_like(all));
  return mean(square((finite(x) - sum(finite(x)) / count) * is_finite));
}

// The root of a quotient of sums of squares. Where numbers became infinite, or none, it is
// infinite.
double error_of(double wrong, double all) {
  if (wrong == 0) return 0;
  const double error = std::sqrt(wrong / all);
  return std::isnan(error) ? INFINITY : error;
}

LazyTensor changed_product(const LayerChange& change, const Product& product) {
  const LazyTensor x = changed_factor(change, *product.node, product.node->operands()[product.x]);
  return product_with(product, x, change.stored.value);
}

double number_of(const Array& array) { return elements<double>(array)[0]; }

// Results of floating point, and what is written.
LazyTensors numbers_given(const Graph& graph) {
  LazyTensors given;
  const auto add = [&](const LazyTensor& value) {
    if (value && is_floating_point(value.dtype()) && value.numel() > 0) given.push_back(value);
  };
  for (const LazyTensor& output : graph.outputs()) add(output);
  for (const Mutation& mutation : graph.mutations()) add(mutation.value);
  return given;
}

}  // namespace

std::vector<double> output_errors(const ExampleRuns& runs, const Changes& changes) {
  LazyTensors outputs;
  for (const auto& [layer, change] : changes)
    for (const Product& product : layer->products) {
      const LazyTensor y{product.node, 0};
      outputs.push_back(sum(square(difference(wide(changed_product(change, product)), wide(y)))));
      outputs.push_back(sum(square(finite(wide(y)))));
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
  for (size_t i = 0; i < changes.size(); ++i) errors.push_back(error_of(wrong[i], all[i]));
  return errors;
}

bool has_numbers(const SavedCapture& capture) { return !numbers_given(capture.graph).empty(); }

double result_error(const ExampleRuns& runs, const SavedCapture& capture,
                    const SavedCapture& changed) {
  const LazyTensors before = numbers_given(capture.graph), after = numbers_given(changed.graph);
  LazyTensors outputs;
  for (size_t i = 0; i < before.size(); ++i) {
    const LazyTensor y = wide(before[i]);
    outputs.push_back(mean(square(difference(wide(after.at(i)), y))));
    outputs.push_back(spread(y));
  }
  std::vector<double> sums(outputs.size());
  for (const std::vector<Array>& values : runs.values_of(outputs))
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += number_of(values[i]);
  double largest = 0;
  for (size_t i = 0; i + 1 < sums.size(); i += 2)
    largest = std::max(largest, error_of(sums[i], sums[i + 1]));
  return largest;
}

}  // namespace composit::quantization
