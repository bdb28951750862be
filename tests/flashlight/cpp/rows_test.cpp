// Every sample of every row as C++, and its derivative: what is emitted computes what the row
// defines.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <map>

#include "composit/ad/chain_rule.h"
#include "composit/ir/error.h"
#include "composit/op/samples.h"
#include "composit/ops/functions.h"
#include "tests/flashlight/cpp/compare.h"

namespace flashlight::cpp {
namespace {

using namespace composit;  // NOLINT
using test::Case;

struct Applied {
  Case call;
  NodePtr node;
};

Applied applied(const Operation& operation, const std::string& text, DType floats) {
  const SampleCall sample = parse_sample(operation.schema, text, floats);
  Applied result = {{operation.schema.name.str() + ": " + text, {}, {}},
                    sample.call.node(infer(operation, sample.call))};
  Graph::Parts parts;
  for (size_t i = 0; i < sample.call.tensors().size(); ++i) {
    const LazyTensor& tensor = sample.call.tensors()[i];
    if (!tensor.defined() || !is_input(*tensor.node)) continue;
    parts.inputs.push_back(tensor);
    result.call.values.push_back(sample.values[i]);
  }
  for (uint32_t i = 0; i < result.node->outputs().size(); ++i)
    if (is_defined(result.node->outputs()[i])) parts.outputs.push_back(LazyTensor{result.node, i});
  result.call.graph = Graph(std::move(parts));
  return result;
}

// The gradients of a weighted sum of all float results by all float inputs.
std::optional<Case> derivative(const Applied& applied) {
  LazyTensor loss;
  for (const LazyTensor& output : applied.call.graph.outputs()) {
    if (output.dtype() != DType::float64) continue;
    const LazyTensor y = output;
    const LazyTensor part =
        sum(y * reshape(sin(arange(y.numel(), y.dtype()) * 0.7 + 1.0), y.sizes()));
    loss = loss.defined() ? loss + part : part;
  }
  const std::string_view fixed = find_operation(applied.node->op())->row.nondifferentiable;
  LazyTensors inputs;
  for (const LazyTensor& input : applied.call.graph.inputs())
    if (input.dtype() == DType::float64 && fixed.find(input_name(*input.node)) == fixed.npos)
      inputs.push_back(input);
  if (!loss.defined() || inputs.empty()) return std::nullopt;
  Case one = applied.call;
  one.text += ", gradient";
  one.graph = Graph({.inputs = applied.call.graph.inputs(), .outputs = grad(loss, inputs)});
  return one;
}

// All cases that `make` gives for samples, in batches. There is code for every row.
void expect_agreement(DType floats, const std::function<std::optional<Case>(const Applied&)>& make,
                      const std::vector<std::string>& flags = {"-O1"}) {
  constexpr size_t kBatch = 150;
  std::vector<Case> batch;
  std::map<std::string, int> refused;
  size_t count = 0;
  const auto flush = [&] {
    EXPECT_EQ(test::differences(batch, 4, flags), "");
    count += batch.size();
    batch.clear();
  };
  for (const Operation* operation : all_operations()) {
    for (const std::string& text : split_samples(operation->row.samples)) {
      SCOPED_TRACE(operation->schema.name.str() + ": " + text);
      try {
        std::optional<Case> one = make(applied(*operation, text, floats));
        if (!one) continue;
        source_of(one->graph, {.name = "probe"});
        batch.push_back(std::move(*one));
      } catch (const UserError& error) {
        ++refused[error.what()];
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
      if (batch.size() == kBatch) flush();
    }
  }
  flush();
  for (const auto& [what, times] : refused) ADD_FAILURE() << times << " x " << what;
  std::cout << count << " cases\n";
  EXPECT_GT(count, 1000);
}

TEST(EmittedRows, float32) {
  expect_agreement(DType::float32, [](const Applied& one) { return std::optional(one.call); });
}
TEST(EmittedRows, float64) {
  expect_agreement(DType::float64, [](const Applied& one) { return std::optional(one.call); });
}
// The flags that users get: -O3 for this processor.
TEST(EmittedRows, float32_with_default_flags) {
  if (std::getenv("FLASHLIGHT_FUZZ_PROGRAMS") == nullptr)
    GTEST_SKIP() << "the nightly preset runs this";
  expect_agreement(DType::float32, [](const Applied& one) { return std::optional(one.call); }, {});
}
TEST(EmittedRows, gradients) { expect_agreement(DType::float64, derivative); }

}  // namespace
}  // namespace flashlight::cpp
