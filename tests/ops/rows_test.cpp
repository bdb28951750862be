// Walks all rows of the table: what a row promises must hold for each of its samples. A new row is
// tested from its first line on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "composit/ad/chain_rule.h"
#include "composit/ad/expr_derivative.h"
#include "composit/ad/vjp.h"
#include "composit/ir/graph.h"
#include "composit/ir/parse.h"
#include "composit/ir/print.h"
#include "composit/op/samples.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"
#include "tests/ops/differences.h"
#include "tests/test_name.h"

namespace composit {
namespace {

using Row = const Operation*;

// A sample as a node with its inputs and their values.
struct Applied {
  SampleCall sample;
  NodePtr node;
  LazyTensors inputs;
  std::vector<Array> values;
};

Applied applied(const Operation& operation, const std::string& text, DType floats) {
  Applied result{parse_sample(operation.schema, text, floats), {}, {}, {}};
  const Call& call = result.sample.call;
  result.node = call.node(infer(operation, call));
  for (size_t i = 0; i < call.tensors().size(); ++i) {
    if (!call.tensors()[i].defined() || !is_input(*call.tensors()[i].node)) continue;
    result.inputs.push_back(call.tensors()[i]);
    result.values.push_back(result.sample.values[i]);
  }
  return result;
}

class Rows : public testing::TestWithParam<Row> {
 protected:
  void for_each_sample(DType floats, const std::function<void(const Applied&)>& check) {
    const Operation& operation = *GetParam();
    for (const std::string& text : split_samples(operation.row.samples)) {
      SCOPED_TRACE(operation.schema.name.str() + ": " + text);
      try {
        check(applied(operation, text, floats));
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    }
  }
};

TEST_P(Rows, results_have_the_inferred_types) {
  for_each_sample(DType::float32, [](const Applied& call) {
    const auto results = evaluate(*GetParam(), call.sample.call, call.sample.values);
    ASSERT_EQ(results.size(), call.node->outputs().size());
    for (size_t i = 0; i < results.size(); ++i) {
      const Type& type = call.node->outputs()[i];
      if (!is_defined(type)) {
        EXPECT_FALSE(results[i].defined());
        continue;
      }
      ASSERT_TRUE(results[i].defined());
      EXPECT_EQ(print(results[i].type()), print(type));
    }
  });
}

TEST_P(Rows, loop_forms_are_valid_and_read_back) {
  for_each_sample(DType::float32, [](const Applied& call) {
    const auto loops = loops_of(*GetParam(), call.sample.call);
    if (!loops) return;
    verify(*loops);
    const std::string text = print(*loops);
    EXPECT_EQ(print(parse_loops(text)), text);
    EXPECT_TRUE(parse_loops(text) == *loops) << text;
  });
}

TEST_P(Rows, nodes_read_back) {
  for_each_sample(DType::float32, [](const Applied& call) {
    Graph::Parts parts;
    parts.inputs = call.inputs;
    for (uint32_t i = 0; i < call.node->outputs().size(); ++i)
      if (is_defined(call.node->outputs()[i])) parts.outputs.push_back(LazyTensor{call.node, i});
    const Graph graph(std::move(parts));
    EXPECT_TRUE(parse(print(graph)) == graph) << print(graph);
  });
}

TEST_P(Rows, bad_calls_are_refused_with_their_message) {
  const Operation& operation = *GetParam();
  for (const std::string& bad : split_samples(operation.row.bad)) {
    const auto [text, message] = split_message(bad);
    SCOPED_TRACE(operation.schema.name.str() + ": " + text);
    try {
      const SampleCall sample = parse_sample(operation.schema, text);
      infer(operation, sample.call);
      ADD_FAILURE() << "expected an error with '" << message << "'";
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(message));
      EXPECT_THAT(error.what(), testing::StartsWith("[" + operation.schema.name.str() + "]"));
    }
  }
}

// A weighted sum of all float results, so that every cotangent differs.
LazyTensor weighted_sum(const NodePtr& node) {
  LazyTensor total;
  for (uint32_t i = 0; i < node->outputs().size(); ++i) {
    if (!is_defined(node->outputs()[i]) || !is_differentiable(node->outputs()[i].dtype)) continue;
    const LazyTensor y = LazyTensor{node, i};
    const LazyTensor weights =
        reshape(sin(arange(y.numel(), y.dtype()) * 0.7 + 1.0 + double(i)), y.sizes());
    const LazyTensor part = sum(y * weights);
    total = total.defined() ? total + part : part;
  }
  return total;
}

LazyTensors differentiable(const Applied& call) {
  const std::string_view fixed = find_operation(call.node->op())->row.nondifferentiable;
  LazyTensors inputs;
  for (const LazyTensor& input : call.inputs)
    if (input.dtype() == DType::float64 &&
        fixed.find(input_name(*input.node)) == std::string_view::npos)
      inputs.push_back(input);
  return inputs;
}

Values all_values(const Applied& call) {
  Values values;
  for (size_t i = 0; i < call.inputs.size(); ++i) values.set(call.inputs[i], call.values[i]);
  return values;
}

bool has_kinks(const Applied& call) {  // extreme or repeated values: no finite differences there
  return call.sample.text.find("nan") != std::string::npos ||
         call.sample.text.find("=[") != std::string::npos ||
         call.sample.text.find("00") != std::string::npos ||
         call.sample.text.find("20") != std::string::npos;
}

TEST_P(Rows, derivatives_are_finite_differences) {
  for_each_sample(DType::float64, [](const Applied& call) {
    const LazyTensor loss = weighted_sum(call.node);
    const auto inputs = differentiable(call);
    if (!loss || inputs.empty() || has_kinks(call)) return;
    const auto gradients = grad(loss, inputs);
    EXPECT_EQ(compare_with_differences(loss, inputs, call.inputs, call.values, gradients), "");
    if (!is_differentiable(loss.dtype())) return;
    LazyTensor second;  // of a sum over the gradients, weighted
    for (const LazyTensor& gradient : gradients) {
      const LazyTensor g = gradient;
      const LazyTensor weights = reshape(cos(arange(g.numel(), g.dtype()) * 0.9), g.sizes());
      const LazyTensor part = sum(g * weights);
      second = second.defined() ? second + part : part;
    }
    EXPECT_EQ(compare_with_differences(second, inputs, call.inputs, call.values,
                                       grad(second, inputs), 1e-5),
              "")
        << "second derivative";
  });
}

TEST_P(Rows, explicit_rules_agree_with_transposition) {
  const composit::Row& row = GetParam()->row;
  if (row.vjp ? !row.loops : !row.scalar && !row.loops) return;
  for_each_sample(DType::float64, [](const Applied& call) {
    LazyTensors cotangents;
    std::vector<bool> wanted;
    for (uint32_t i = 0; i < call.node->outputs().size(); ++i) {
      const Type& type = call.node->outputs()[i];
      const bool floats = is_defined(type) && is_differentiable(type.dtype);
      cotangents.push_back(floats ? ones_like(LazyTensor{call.node, i}) : LazyTensor());
    }
    for (const LazyTensor& operand : call.node->operands())
      wanted.push_back(operand && is_differentiable(operand.dtype()));
    std::optional<LazyTensors> transposed;
    try {
      transposed = vjp_by_transposition(call.node, cotangents, wanted);
    } catch (const UserError&) {
      return;  // not linear, or not affine: what the explicit rule is for
    }
    const LazyTensors rule = vjp_of(call.node, cotangents, wanted);
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (!wanted[i] || !(*transposed)[i].defined() || !rule[i].defined()) continue;
      const auto values = evaluate({rule[i], (*transposed)[i]}, all_values(call));
      if (is_complex(values[0].type().dtype)) continue;
      const auto a = elements<double>(values[0]), b = elements<double>(values[1]);
      ASSERT_EQ(a.size(), b.size());
      for (size_t k = 0; k < a.size(); ++k) {
        if (a[k] == b[k] || (std::isnan(a[k]) && std::isnan(b[k]))) continue;
        EXPECT_NEAR(a[k], b[k], 1e-9 * (1 + std::abs(b[k]))) << "operand " << i << " elem " << k;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, Rows, testing::ValuesIn(all_operations()), [](const auto& one) {
  return test::test_name(one.param->schema.name.str());
});

}  // namespace
}  // namespace composit
