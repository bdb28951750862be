// Loop forms of all rows, as operators on whole tensors: the same values as by their definitions.
#include "composit/interchange/tensorize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "composit/eval/evaluate.h"
#include "composit/interchange/definition.h"
#include "composit/op/samples.h"
#include "composit/ops/operations.h"
#include "tests/agreement.h"

namespace composit::interchange::test {
namespace {

using composit::test::differences;

// The results of a sample by the definition of its row, and as operators.
struct Both {
  std::vector<Array> values, tensors;
};

// Those that were asked for.
std::vector<Array> defined(const std::vector<Array>& arrays) {
  std::vector<Array> some;
  for (const Array& array : arrays)
    if (array.defined()) some.push_back(array);
  return some;
}

std::optional<Both> computed(const Operation& operation, const SampleCall& sample) {
  const std::optional<Loops> loops = loops_of(operation, sample.call);
  if (!loops) return std::nullopt;
  const NodePtr node = sample.call.node(infer(operation, sample.call));
  LazyTensors inputs, outputs;
  std::vector<Array> values;
  for (size_t i = 0; i < sample.call.tensors().size(); ++i) {
    if (!sample.call.tensors()[i]) continue;
    if (is_input(*sample.call.tensors()[i].node)) {
      inputs.push_back(sample.call.tensors()[i]);
      values.push_back(sample.values[i]);
    }
  }
  for (uint32_t i = 0; i < node->outputs().size(); ++i)
    outputs.push_back(is_defined(node->outputs()[i]) ? LazyTensor{node, i} : LazyTensor());
  const Graph graph({.inputs = inputs, .outputs = outputs});
  const LazyTensors results = tensorize(*loops, node->operands());
  return Both{defined(evaluate(graph, values)),
              defined(evaluate(Graph({.inputs = inputs, .outputs = results}), values))};
}

TEST(tensorize, gives_what_loops_give) {
  std::set<std::string> refused;
  for (const Operation* operation : all_operations()) {
    if (!operation->row.scalar && !operation->row.loops) continue;
    for (const std::string& text : split_samples(operation->row.samples)) {
      SCOPED_TRACE(operation->schema.name.str() + ": " + text);
      try {
        const auto both = computed(*operation, parse_sample(operation->schema, text));
        if (both) {
          EXPECT_EQ(differences(both->tensors, both->values, 4), "");
        }
      } catch (const UserError&) {
        refused.insert(operation->schema.name.str());
      }
    }
  }
  // Reductions that keep a place, and loops whose steps follow each other: each has a name in every
  // target.
  const std::set<std::string> known = {"aten::adaptive_max_pool2d",
                                       "aten::adaptive_max_pool3d",
                                       "aten::argmax",
                                       "aten::argmin",
                                       "aten::cummax",
                                       "aten::cummin",
                                       "aten::cumprod",
                                       "aten::cumsum",
                                       "aten::logcumsumexp",
                                       "aten::max.dim",
                                       "aten::max_pool2d_with_indices",
                                       "aten::max_pool3d_with_indices",
                                       "aten::min.dim",
                                       "composit::recurrence"};
  EXPECT_EQ(refused, known);
}

}  // namespace
}  // namespace composit::interchange::test
