// Every pass on random graphs: legal, the same bits, no more to do the second time, the same
// derivatives.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <iostream>

#include "composit/ad/chain_rule.h"
#include "composit/eval/evaluate.h"
#include "composit/ir/parse.h"
#include "composit/ir/print.h"
#include "composit/ops/functions.h"
#include "composit/passes/inline_calls.h"
#include "composit/passes/outline_repeats.h"
#include "composit/passes/pass.h"
#include "tests/agreement.h"
#include "tests/ir/random_graph.h"
#include "tests/passes/computable_graph.h"

namespace composit {
namespace {

using test::ComputableGraph;
using test::random_inputs;

constexpr uint64_t kGraphs = 150;

// But for the last bits, of whatever is summed in another order.
void expect_near(const std::vector<Array>& found, const std::vector<Array>& expected,
                 uint64_t seed) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_EQ(test::difference(found[i], expected[i]), "") << "seed " << seed << " array " << i;
}

class EveryPass : public ::testing::TestWithParam<std::string> {
 protected:
  // Random, with something to do for the pass.
  Graph graph_of(uint64_t seed) const {
    const Graph graph = ComputableGraph(seed).make();
    if (GetParam() == "join_slices") return with_slices(graph);
    if (GetParam() == "straight_through") return with_rounding(graph);
    return GetParam() == "inline_calls" ? outline_repeats(graph) : graph;
  }
  // Its first output, put together of two overlapping parts of it.
  static Graph with_slices(const Graph& graph) {
    const LazyTensor x = graph.outputs()[0];
    const LazyTensor flat = reshape(x, {x.numel()});
    const auto part = [&](int64_t begin, int64_t end) {
      return apply_one("aten::slice_backward",
                       {slice(flat, 0, begin, end), flat.sizes(), 0, begin, end, 1});
    };
    return Graph({.inputs = graph.inputs(),
                  .outputs = {part(0, x.numel() / 2 + 1) + part(x.numel() / 2, x.numel())}});
  }
  // And its first output as int8 and back, which is not differentiated.
  static Graph with_rounding(const Graph& graph) {
    const LazyTensor x = to(reshape(graph.outputs()[0], {1, -1}), DType::float32);
    const LazyTensors chosen =
        apply("quantized_decomposed::choose_qparams_per_token", {x, DType::int8});
    const LazyTensor integers = apply_one("quantized_decomposed::quantize_per_token",
                                          {x, chosen[0], chosen[1], -128, 127, DType::int8});
    Graph::Parts parts = graph.parts();
    parts.outputs.push_back(
        apply_one("quantized_decomposed::dequantize_per_token",
                  {integers, chosen[0], chosen[1], -128, 127, DType::int8, DType::float32}));
    return Graph(parts);
  }
  bool is_exact() const {
    const Passes passes = find_passes(GetParam());
    return std::all_of(passes.begin(), passes.end(),
                       [](const Pass& pass) { return pass.assumes == Assumes::exact; });
  }
  Graph run(const Graph& graph) const { return run_passes(graph, find_passes(GetParam()), {}); }
};

TEST_P(EveryPass, keeps_values) {
  size_t changed = 0;
  for (uint64_t seed = 0; seed < kGraphs; ++seed) {
    const Graph graph = graph_of(seed);
    const Graph after = run(graph);
    const auto inputs = random_inputs(graph, seed);
    const auto expected = evaluate(graph, inputs), found = evaluate(after, inputs);
    if (is_exact()) {
      ASSERT_EQ(found, expected) << "seed " << seed << '\n' << print(graph) << print(after);
    } else {
      expect_near(found, expected, seed);
    }
    changed += after.size() != graph.size() || !(after == graph);
  }
  EXPECT_GT(changed, kGraphs / 4);  // there was something to do
}

TEST_P(EveryPass, finds_nothing_more_the_second_time) {
  for (uint64_t seed = 0; seed < kGraphs; ++seed) {
    const Graph once = run(graph_of(seed)), twice = run(once);
    ASSERT_EQ(print(twice), print(once)) << "seed " << seed;
  }
}

TEST_P(EveryPass, leaves_text_that_reads_back) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const Graph after = run(graph_of(seed));
    ASSERT_EQ(parse(print(after)), after) << "seed " << seed;
  }
}

std::vector<Array> gradients_of(const Graph& graph, const std::vector<Array>& inputs, DType dtype) {
  Graph::Parts parts{.inputs = graph.inputs()};
  for (const LazyTensor& gradient : grad(sum(graph.outputs()[0]), graph.inputs()))
    parts.outputs.push_back(to(gradient, dtype));
  return evaluate(Graph(parts), inputs);
}

TEST_P(EveryPass, keeps_derivatives) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const Graph graph = graph_of(seed);
    const auto inputs = random_inputs(graph, seed);
    // If gradients flow through float32, a last bit may decide how a tie is rounded.
    const bool single = print(graph).find("float32") != std::string::npos;
    const DType dtype = single ? DType::float32 : DType::float64;
    expect_near(gradients_of(run(graph), inputs, dtype), gradients_of(graph, inputs, dtype), seed);
  }
}

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const Pass& pass : all_passes()) names.push_back(pass.name);
  names.emplace_back(
      "canonicalize_exact,drop_no_ops,fold_constants,common_subexpressions,share_loops");
  return names;
}
std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  return info.param.find(',') == std::string::npos ? info.param : "default_passes";
}
INSTANTIATE_TEST_SUITE_P(Passes, EveryPass, ::testing::ValuesIn(names()), test_name);

TEST(Passes, gradients_of_gradients_are_outlined_and_inlined) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const Graph graph = ComputableGraph(seed).make();
    Graph::Parts parts{.inputs = graph.inputs()};
    parts.outputs = grad(sum(graph.outputs()[0]), graph.inputs());
    const Graph backward(parts), outlined = outline_repeats(backward);
    ASSERT_EQ(inline_calls(outlined), backward) << "seed " << seed;
    const auto inputs = random_inputs(graph, seed);
    ASSERT_EQ(evaluate(outlined, inputs), evaluate(backward, inputs)) << "seed " << seed;
  }
}

// Layers of a perceptron, spelled as in C++, and their gradient.
Graph large_graph(int64_t layers) {
  const Type type = tensor_type(DType::float64, {4, 4});
  Graph::Parts parts{.inputs = {input("x", type)}};
  LazyTensor x = parts.inputs[0];
  for (int64_t i = 0; i < layers; ++i) {
    parts.inputs.push_back(input("w" + std::to_string(i), type, InputKind::parameter));
    x = tanh(matmul(x, apply_one("aten::t", {parts.inputs.back()}))) * 2 + x;
  }
  parts.outputs = grad(sum(x), parts.inputs);
  return Graph(parts);
}

// Legal graphs whose nodes are not what their rows expect.
TEST(Passes, leave_graphs_that_make_no_sense_legal) {
  for (uint64_t seed = 0; seed < test::fuzz_runs(300); ++seed) {
    const Graph graph = test::RandomGraph(seed).make();
    for (const Pass& pass : all_passes()) run_passes(graph, {pass}, {});
    ASSERT_EQ(inline_calls(outline_repeats(graph, {1, 0})), inline_calls(graph)) << "seed " << seed;
  }
}

TEST(Passes, say_how_long_a_large_graph_takes) {
  Graph now = large_graph(350);
  for (const Pass& pass : all_passes()) {
    const auto start = std::chrono::steady_clock::now();
    const size_t before = now.size();
    now = run_passes(now, {pass}, {});
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    std::cout << pass.name << ": " << before << " -> " << now.size() << " nodes, " << time.count()
              << " s\n";
  }
  EXPECT_GT(now.size(), 1000U);
}

}  // namespace
}  // namespace composit
