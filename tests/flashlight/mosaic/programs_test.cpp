// Whole programs as kernels: random graphs with branches and loops, and their gradients.
#include <gtest/gtest.h>

#include "composit/ad/chain_rule.h"
#include "composit/ir/transform.h"
#include "composit/ops/functions.h"
#include "tests/flashlight/mosaic/compare.h"
#include "tests/passes/computable_graph.h"

namespace flashlight::mosaic {
namespace {

using namespace composit;  // NOLINT
using test::Case;
using test::differences;

constexpr uint64_t kGraphs = 40, kGradients = 20;

// Every other input as a parameter.
Graph with_parameters(const Graph& graph) {
  Graph::Parts parts;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const LazyTensor& was = graph.inputs()[i];
    parts.inputs.push_back(input(input_name(*was.node), was.type(),
                                 i % 2 == 0 ? InputKind::parameter : InputKind::user_input));
  }
  parts.outputs = inlined(graph, parts.inputs);
  return Graph(std::move(parts));
}

TEST(MosaicPrograms, random_graphs) {
  std::vector<Case> cases;
  for (uint64_t seed = 0; seed < kGraphs; ++seed) {
    const Graph graph = composit::test::ComputableGraph(seed).make();
    cases.push_back(
        {"seed " + std::to_string(seed), graph, composit::test::random_inputs(graph, seed)});
  }
  EXPECT_EQ(differences(cases), "");
}

// Some of the graph is computed beforehand.
TEST(MosaicPrograms, random_graphs_with_weights) {
  std::vector<Case> cases;
  for (uint64_t seed = 0; seed < kGradients; ++seed) {
    const Graph graph = composit::test::ComputableGraph(kGraphs + seed).make();
    cases.push_back({"seed " + std::to_string(kGraphs + seed), with_parameters(graph),
                     composit::test::random_inputs(graph, seed)});
  }
  EXPECT_EQ(differences(cases), "");
}

TEST(MosaicPrograms, gradients_of_random_graphs) {
  std::vector<Case> cases;
  for (uint64_t seed = 0; seed < kGradients; ++seed) {
    const Graph graph = composit::test::ComputableGraph(seed).make();
    const LazyTensor loss = sum(graph.outputs()[0]);
    cases.push_back({"seed " + std::to_string(seed),
                     Graph({.inputs = graph.inputs(), .outputs = grad(loss, graph.inputs())}),
                     composit::test::random_inputs(graph, seed)});
  }
  EXPECT_EQ(differences(cases, {.times = 16}), "");  // sums of sums in another order
}

}  // namespace
}  // namespace flashlight::mosaic
