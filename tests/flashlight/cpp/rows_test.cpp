// Every sample of every row as C++: what is emitted computes what the row defines.
#include <gtest/gtest.h>

#include <map>

#include "composit/eval/evaluate.h"
#include "composit/ir/error.h"
#include "composit/ir/print.h"
#include "composit/op/samples.h"
#include "composit/ops/operations.h"
#include "flashlight/cpp/backend.h"
#include "tests/agreement.h"

namespace flashlight::cpp {
namespace {

using namespace composit;  // NOLINT

// A call of an operation, to be compiled and compared.
struct Case {
  std::string text;
  Graph graph;
  std::vector<Array> values, expected;
};

std::optional<Case> case_of(const Operation& operation, const std::string& text, DType floats) {
  const SampleCall sample = parse_sample(operation.schema, text, floats);
  const NodePtr node = sample.call.node(infer(operation, sample.call));
  Case one = {operation.schema.name.str() + ": " + text, {}, {}, {}};
  Graph::Parts parts;
  for (size_t i = 0; i < sample.call.tensors().size(); ++i) {
    const Tensor& tensor = sample.call.tensors()[i];
    if (!tensor.defined() || !is_input(*tensor.lazy().node)) continue;
    parts.inputs.push_back(tensor);
    one.values.push_back(sample.values[i]);
  }
  for (uint32_t i = 0; i < node->outputs().size(); ++i)
    if (is_defined(node->outputs()[i])) parts.outputs.push_back(LazyTensor{node, i});
  one.graph = Graph(std::move(parts));
  one.expected = composit::evaluate(one.graph, one.values);
  return one;
}

// Differences of a batch of cases, which are one translation unit.
std::string differences(const std::vector<Case>& cases) {
  std::vector<Graph> graphs;
  std::vector<std::string> names;
  for (const Case& one : cases) {
    graphs.push_back(one.graph);
    names.push_back("case_" + std::to_string(names.size()));
  }
  std::string found;
  const CompileOptions options = {.flags = {"-O1", "-Werror", "-Wall", "-Wextra", "-Wconversion"}};
  // Each half until the one that does not compile is alone.
  if (cases.size() > 1) {
    try {
      compile(graphs, names, options);
    } catch (const UserError&) {
      const auto middle = cases.begin() + static_cast<std::ptrdiff_t>(cases.size() / 2);
      return differences({cases.begin(), middle}) + differences({middle, cases.end()});
    }
  }
  std::vector<Compiled> compiled;
  try {
    compiled = compile(graphs, names, options);
  } catch (const UserError& error) {
    return cases[0].text + ": " + error.what() + "\n";
  }
  for (size_t i = 0; i < cases.size(); ++i) {
    try {
      const std::vector<Array> results = compiled[i](cases[i].values);
      for (size_t k = 0; k < results.size(); ++k) {
        const std::string difference = test::difference(results[k], cases[i].expected[k], 4);
        if (!difference.empty())
          found += cases[i].text + ": " + difference + "\n" + compiled[i].source() + "\n";
      }
    } catch (const std::exception& error) {
      found += cases[i].text + ": " + error.what() + "\n";
    }
  }
  return found;
}

class EmittedRows : public testing::TestWithParam<DType> {};

TEST_P(EmittedRows, compute_what_their_rows_define) {
  constexpr size_t kBatch = 150;
  std::vector<Case> batch;
  std::map<std::string, int> refused;
  size_t count = 0;
  const auto flush = [&] {
    if (batch.empty()) return;
    std::string found;
    EXPECT_NO_THROW(found = differences(batch));
    EXPECT_EQ(found, "");
    count += batch.size();
    batch.clear();
  };
  for (const Operation* operation : all_operations()) {
    for (const std::string& text : split_samples(operation->row.samples)) {
      SCOPED_TRACE(operation->schema.name.str() + ": " + text);
      try {
        std::optional<Case> one = case_of(*operation, text, GetParam());
        source_of(one->graph, "probe");
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
  for (const auto& [what, times] : refused) std::cout << times << " x " << what << '\n';
  std::cout << count << " calls compiled\n";
  EXPECT_GT(count, 1000);
}

INSTANTIATE_TEST_SUITE_P(DTypes, EmittedRows, testing::Values(DType::float32, DType::float64),
                         [](const auto& dtype) { return std::string(name(dtype.param)); });

}  // namespace
}  // namespace flashlight::cpp
