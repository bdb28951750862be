#include "composit/quantize/examples.h"

#include <algorithm>
#include <cmath>

#include "composit/eval/evaluate.h"
#include "composit/ir/error.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"

namespace composit::quantization {
namespace {

bool is_user_input(const LazyTensor& input) {
  return input_kind(*input.node) == InputKind::user_input;
}

void expect_example(const SavedCapture& capture, const std::vector<Array>& example) {
  const auto count = static_cast<size_t>(
      std::count_if(capture.graph.inputs().begin(), capture.graph.inputs().end(), is_user_input));
  if (example.size() != count)
    throw UserError("[quantize] expected examples of " + std::to_string(count) +
                    " arrays, one per input of the program, received " +
                    std::to_string(example.size()));
}

// The numbers that a product multiplies, as a matrix of float32 with a column per input.
LazyTensor rows_of(const LazyTensor& x) { return to(reshape(x, {-1, x.size(-1)}), DType::float32); }

class Collector {
 public:
  Collector(const std::vector<Layer>& layers, bool with_gram)
      : layers_(layers), with_gram_(with_gram), statistics_(layers.size()) {}

  LazyTensors outputs() {
    LazyTensors outputs;
    for (const Layer& layer : layers_)
      for (const Product& product : layer.products) {
        const LazyTensor x = product.node->operands()[product.x];
        if (x.numel() == 0)
          throw UserError("[quantize] weight '" + layer.name() +
                          "' multiplies nothing in the captured sizes, " + str(x.sizes()) +
                          ": capture the program with an example that has elements");
        outputs.push_back(to(apply_one("aten::amin", {x}), DType::float32));
        outputs.push_back(to(amax(x), DType::float32));
        if (layer.is_convolution) continue;
        const LazyTensor rows = rows_of(x), size = abs(rows);
        outputs.push_back(sum(size, {0}));
        outputs.push_back(amax(size, {0}));
        if (with_gram_) outputs.push_back(mm(transpose(rows, 0, 1), rows));
      }
    return outputs;
  }

  void add(const std::vector<Array>& values) {
    size_t next = 0;
    for (size_t i = 0; i < layers_.size(); ++i)
      for (const Product& product : layers_[i].products) {
        InputStatistics& all = statistics_[i];
        const double low = elements<double>(values[next++])[0];
        const double high = elements<double>(values[next++])[0];
        auto& range = all.range.try_emplace(product.node.get(), 0.F, 0.F).first->second;
        range.first = std::min(range.first, static_cast<float>(low));
        range.second = std::max(range.second, static_cast<float>(high));
        if (!std::isfinite(low) || !std::isfinite(high))
          throw UserError("[quantize] the examples multiply weight '" + layers_[i].name() +
                          "' with NaN or an infinity");
        if (layers_[i].is_convolution) continue;
        add_to(all.sums, elements<double>(values[next++]));
        const std::vector<double> largest = elements<double>(values[next++]);
        all.inputs = static_cast<int64_t>(largest.size());
        all.largest.resize(largest.size());
        for (size_t k = 0; k < largest.size(); ++k)
          all.largest[k] = std::max(all.largest[k], static_cast<float>(largest[k]));
        if (with_gram_) add_to(all.gram, elements<double>(values[next++]));
      }
  }

  std::vector<InputStatistics> result() { return std::move(statistics_); }

 private:
  static void add_to(std::vector<double>& sums, const std::vector<double>& values) {
    sums.resize(values.size());
    for (size_t i = 0; i < values.size(); ++i) sums[i] += values[i];
  }

  const std::vector<Layer>& layers_;
  bool with_gram_;
  std::vector<InputStatistics> statistics_;
};

}  // namespace

ExampleRuns::ExampleRuns(const SavedCapture& capture, const QuantizeOptions& options)
    : capture_(capture),
      backend_(options.backend != nullptr ? *options.backend : reference()),
      examples_(options.examples) {
  const bool has_own =
      !capture.example_inputs.empty() ||
      std::none_of(capture.graph.inputs().begin(), capture.graph.inputs().end(), is_user_input);
  if (examples_.empty() && has_own) examples_.push_back(capture.example_inputs);
  for (const std::vector<Array>& example : examples_) expect_example(capture, example);
}

std::vector<std::vector<Array>> ExampleRuns::values_of(const LazyTensors& outputs) const {
  LazyTensors inputs;
  std::vector<const Array*> weights;  // nullptr: an input of the user's
  const Graph needed({.outputs = outputs});
  for (const NodePtr& node : needed.nodes()) {
    if (!is_input(*node)) continue;
    const LazyTensor tensor{node, 0};
    const auto found = capture_.weights.find(input_name(*node));
    inputs.push_back(tensor);
    weights.push_back(found != capture_.weights.end() ? &found->second
                      : node->held().defined()        ? &node->held()
                                                      : nullptr);
  }
  const Compiled code =
      backend_.compile(Graph({.inputs = inputs, .outputs = outputs}), {.name = "quantize"});
  LazyTensors users;
  for (const LazyTensor& input : capture_.graph.inputs())
    if (is_user_input(input)) users.push_back(input);
  std::vector<std::vector<Array>> results;
  for (const std::vector<Array>& example : examples_) {
    std::vector<Array> arrays;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto user = std::find(users.begin(), users.end(), inputs[i]);
      arrays.push_back(user != users.end() ? example[static_cast<size_t>(user - users.begin())]
                                           : *weights[i]);
    }
    results.push_back(code(arrays));
  }
  return results;
}

std::vector<InputStatistics> input_statistics(const ExampleRuns& runs,
                                              const std::vector<Layer>& layers, bool with_gram) {
  Collector collector(layers, with_gram);
  for (const std::vector<Array>& values : runs.values_of(collector.outputs()))
    collector.add(values);
  return collector.result();
}

}  // namespace composit::quantization
