#include "composit/quantize/quantize.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "composit/eval/evaluate.h"
#include "composit/ir/error.h"
#include "composit/quantize/measure.h"
#include "composit/quantize/methods.h"
#include "composit/quantize/select.h"

namespace composit {
namespace {

using quantization::Changes;
using quantization::ExampleRuns;
using quantization::InputStatistics;
using quantization::Integers;
using quantization::Layer;
using quantization::LayerChange;
using quantization::Matrix;

double norm_of_difference(const Matrix& a, const Matrix* b) {
  double sum = 0;
  for (size_t i = 0; i < a.values.size(); ++i) {
    const double d = double{a.values[i]} - (b == nullptr ? 0.0 : double{b->values[i]});
    sum += d * d;
  }
  return std::sqrt(sum);
}

class Quantizer {
 public:
  Quantizer(const SavedCapture& capture, const QuantizeOptions& options)
      : capture_(capture),
        options_(options),
        selection_(quantization::select(capture, options)),
        runs_(capture, options) {
    if (needs_examples() && runs_.empty())
      throw UserError("[quantize] " + std::string(name(options.method)) +
                      ", calibrated inputs and an error to keep need examples, and the capture "
                      "has none");
  }

  Quantized run() {
    if (options_.all_readers && options_.activations != Activations::calibrated)
      throw UserError("[quantize] all readers: expected calibrated activations, received " +
                      std::string(name(options_.activations)));
    has_numbers_ = quantization::has_numbers(capture_);
    if (options_.max_error && !has_numbers_)
      throw UserError(
          "[quantize] an error to keep: expected a program that gives or writes numbers of "
          "floating point, received one that gives integers or bools alone: capture it without "
          "its last steps");
    collect();
    for (size_t i = 0; i < selection_.chosen.size(); ++i) add(i);
    measure_layers();
    measure_alone();
    keep_budget();
    Quantized result{.capture = rewritten(capture_, changes_), .layers = {}, .error = error_};
    if (!runs_.empty() && !result.error && options_.measure && has_numbers_)
      result.error = result_error(runs_, capture_, result.capture);
    add_results(result.capture);
    for (const QuantizedLayer& layer : selection_.left) report_.push_back(layer);
    result.layers = in_order(std::move(report_));
    return result;
  }

 private:
  bool needs_gram() const {
    return options_.method == QuantizeMethod::gptq || options_.method == QuantizeMethod::awq;
  }
  bool needs_statistics() const {
    return options_.method != QuantizeMethod::nearest ||
           options_.activations == Activations::calibrated;
  }
  bool needs_examples() const { return needs_statistics() || options_.max_error.has_value(); }

  void collect() {
    if (needs_statistics())
      statistics_ = input_statistics(runs_, selection_.chosen, needs_gram());
    else
      statistics_.resize(selection_.chosen.size());
  }

  void add(size_t index) {
    const Layer& layer = selection_.chosen[index];
    const Matrix matrix = matrix_of(layer);
    LayerChange change = change_of(layer, matrix, statistics_[index]);
    const Matrix weight = dequantized_now();
    const double size = norm_of_difference(matrix, nullptr);
    report_.push_back({.weight = layer.name(),
                       .scope = std::string(layer.products[0].node->annotation("scope")),
                       .sizes = layer.weight.sizes(),
                       .bytes_before = layer.weight.type().nbytes(),
                       .bytes_after = change.stored.bytes,
                       .weight_error = size == 0 ? 0 : norm_of_difference(weight, &matrix) / size});
    changes_.emplace_back(&layer, std::move(change));
  }

  LayerChange change_of(const Layer& layer, const Matrix& matrix, const InputStatistics& inputs) {
    LayerChange change;
    const WeightFormat& format = options_.weights;
    std::vector<float>& divisors = divisors_;
    divisors.clear();
    if (layer.is_convolution || layer.has_other_readers ||
        options_.method == QuantizeMethod::nearest) {
      integers_ = nearest(matrix, format);
    } else if (options_.method == QuantizeMethod::gptq) {
      try {
        integers_ = gptq(matrix, format, inputs);
      } catch (const UserError& error) {
        throw UserError("[quantize] gptq of weight '" + layer.name() + "': " + error.what());
      }
    } else {
      divisors = options_.method == QuantizeMethod::awq ? awq_factors(matrix, format, inputs)
                                                        : smooth_factors(matrix, inputs);
      integers_ = nearest(multiplied(matrix, divisors), format);
    }
    change.stored = stored_weight(layer, integers_, divisors);
    if (!layer.is_convolution || options_.activations == Activations::calibrated)
      change.activations = options_.activations;
    if (options_.activations == Activations::calibrated) add_steps(layer, inputs, change);
    change.all_readers = options_.all_readers;
    return change;
  }
  // One for each product, from the range of what it multiplies in the examples.
  void add_steps(const Layer& layer, const InputStatistics& inputs, LayerChange& change) const {
    for (const quantization::Product& product : layer.products) {
      auto [low, high] = inputs.range.at(product.node.get());
      if (!divisors_.empty()) {
        low = high = 0;
        for (size_t k = 0; k < divisors_.size(); ++k)
          high = std::max(high, inputs.largest[k] / divisors_[k]);
        low = -high;
      }
      const float ends[] = {low, high};
      change.steps[product.node.get()] =
          quantization::step_for(ends, 2, {.bits = 8, .symmetric = false});
    }
  }
  // The weight that the change amounts to.
  Matrix dequantized_now() const { return divided(dequantized(integers_), divisors_); }

  void measure_layers() {
    if (runs_.empty() || (!options_.measure && !options_.max_error)) return;
    const std::vector<double> errors = output_errors(runs_, changes_);
    for (size_t i = 0; i < errors.size(); ++i) report_[i].output_error = errors[i];
  }

  void measure_alone() {
    if (options_.alone == nullptr || runs_.empty() || !has_numbers_) return;
    QuantizeOptions options = options_;
    options.backend = options_.alone;
    const ExampleRuns runs(capture_, options);
    for (size_t i = 0; i < changes_.size(); ++i)
      report_[i].result_error =
          result_error(runs, capture_, rewritten(capture_, Changes{changes_[i]}));
  }

  // Bisects for the longest list of layers, those with the smallest errors first.
  void keep_budget() {
    if (!options_.max_error) return;
    std::vector<size_t> order(changes_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [this](size_t a, size_t b) {
      return report_[a].output_error.value() < report_[b].output_error.value();
    });
    size_t most = 0, too_many = changes_.size() + 1;
    double least = INFINITY;
    while (most + 1 < too_many) {
      const size_t count =
          most == 0 && too_many > changes_.size() ? changes_.size() : (most + too_many) / 2;
      const double error = error_of_first(order, count);
      least = std::min(least, error);
      if (error <= *options_.max_error) {
        most = count;
        error_ = error;
      } else {
        too_many = count;
      }
    }
    if (most == 0)
      throw UserError("[quantize] no layer can be quantized with an error of at most " +
                      std::to_string(*options_.max_error) + ": the least found is " +
                      std::to_string(least) +
                      ", of the spread of the results; take more bits, "
                      "smaller groups, or another method");
    leave_out(order, most);
  }
  double error_of_first(const std::vector<size_t>& order, size_t count) const {
    Changes some;
    for (size_t i = 0; i < count; ++i) some.push_back(changes_[order[i]]);
    return result_error(runs_, capture_, rewritten(capture_, some));
  }
  void leave_out(const std::vector<size_t>& order, size_t count) {
    std::vector<bool> kept(changes_.size());
    for (size_t i = 0; i < count; ++i) kept[order[i]] = true;
    Changes changes;
    for (size_t i = 0; i < changes_.size(); ++i) {
      if (kept[i]) {
        changes.push_back(std::move(changes_[i]));
      } else {
        report_[i].left = "the error to keep";
        report_[i].bytes_after = report_[i].bytes_before;
      }
    }
    changes_ = std::move(changes);
  }

  void add_results(SavedCapture& result) const {
    if (capture_.example_outputs.empty() || runs_.empty()) return;
    SavedCapture own = capture_;
    own.weights = result.weights;
    QuantizeOptions options = options_;
    options.examples.clear();
    result.example_outputs = ExampleRuns(own, options).values_of(result.graph.outputs())[0];
  }

  std::vector<QuantizedLayer> in_order(std::vector<QuantizedLayer> layers) const {
    std::vector<QuantizedLayer> ordered;
    for (const std::string& weight : selection_.order)
      for (QuantizedLayer& layer : layers)
        if (layer.weight == weight) ordered.push_back(std::move(layer));
    return ordered;
  }

  const SavedCapture& capture_;
  const QuantizeOptions& options_;
  const quantization::Selection selection_;
  const ExampleRuns runs_;
  bool has_numbers_ = false;  // of which an error is measured
  std::vector<InputStatistics> statistics_;
  Integers integers_;            // of the layer that is being changed
  std::vector<float> divisors_;  // its
  Changes changes_;
  std::vector<QuantizedLayer> report_;
  std::optional<double> error_;
};

}  // namespace

Quantized quantize(const SavedCapture& capture, const QuantizeOptions& options) {
  return Quantizer(capture, options).run();
}

Graph quantize(const Graph& graph, const QuantizeOptions& options) {
  SavedCapture capture{.graph = graph};
  for (const LazyTensor& input : graph.inputs())
    if (input.node->held().defined()) capture.weights[input_name(*input.node)] = input.node->held();
  return quantize(capture, options).capture.graph;
}

}  // namespace composit
