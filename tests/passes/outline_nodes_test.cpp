// Equal operations become calls of one region.
#include "composit/passes/outline_nodes.h"

#include <gtest/gtest.h>

#include "composit/ir/parse.h"
#include "composit/ir/print.h"
#include "composit/ir/verify.h"
#include "composit/passes/inline_calls.h"
#include "composit/passes/outline_repeats.h"

namespace composit {
namespace {

bool is_norm(const Node& node) { return node.op().str().find("layer_norm") != std::string::npos; }

std::vector<NodePtr> calls_in(const Graph& graph) {
  std::vector<NodePtr> calls;
  for (const NodePtr& node : graph.nodes())
    if (node->op() == ops::kCall) calls.push_back(node);
  return calls;
}

const char* const kText = R"(graph(
  %x: float64[2, 4],
  %first: float64[4] parameter "first",
  %second: float64[4] parameter "second",
  %wide: float64[2, 8]
) {
  %a, %a_1, %a_2: float64[2, 4], float64[2, 1], float64[2, 1] = aten::native_layer_norm(%x, %first, %second, normalized_shape=[4], eps=1e-05)
  %b, %b_1, %b_2: float64[2, 4], float64[2, 1], float64[2, 1] = aten::native_layer_norm(%a, %second, %first, normalized_shape=[4], eps=1e-05)
  %c, %c_1, %c_2: float64[2, 4], float64[2, 1], float64[2, 1] = aten::native_layer_norm(%b, %first, %first, normalized_shape=[4], eps=1e-03)
  %d, %d_1, %d_2: float64[2, 4], float64[2, 1], float64[2, 1] = aten::native_layer_norm(%b, %first, %first, normalized_shape=[4], eps=1e-05)
  %exp: float64[2, 4] = aten::exp(%a)
  %exp_1: float64[2, 4] = aten::exp(%b)
  return %exp, %exp_1, %c, %d, %d_1
})";

TEST(OutlineNodes, EqualOnesCallOneRegion) {
  const Graph graph = parse(kText), outlined = outline_nodes(graph, is_norm);
  verify(outlined);
  EXPECT_EQ(inline_calls(outlined), graph);
  EXPECT_EQ(parse(print(outlined)), outlined);
  const std::vector<NodePtr> calls = calls_in(outlined);
  // Not %c, which has an attribute of its own, nor %d, of which more is used.
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0]->find_run("body")->as<Region>(), calls[1]->find_run("body")->as<Region>());
  EXPECT_EQ(calls[0]->attribute("name").as<std::string>(), "layer_norm");
  EXPECT_EQ(calls[0]->outputs().size(), 1u);
  const Graph& body = *calls[0]->find_run("body")->as<Region>();
  EXPECT_EQ(input_name(*body.inputs()[0].node), "0");
  EXPECT_EQ(input_name(*body.inputs()[1].node), "weight");
  EXPECT_EQ(input_name(*body.inputs()[2].node), "bias");
}

TEST(OutlineNodes, OnlyWhatIsWanted) {
  const Graph graph = parse(kText);
  EXPECT_EQ(outline_nodes(graph, [](const Node&) { return false; }), graph);
  std::vector<std::string> asked;
  outline_nodes(graph, [&](const Node& node) {
    asked.push_back(node.op().str());
    return false;
  });
  EXPECT_EQ(asked, (std::vector<std::string>{"aten::native_layer_norm", "aten::exp"}));
}

// Those of a region that is called twice, and of the graph around it.
TEST(OutlineNodes, WithinRegions) {
  std::string text = "graph(%x0: float64[2, 4], %w: float64[4] parameter \"w\") {\n";
  for (int i = 0; i < 3; ++i) {
    const std::string n = std::to_string(i);
    text += "  %a" + n + ": float64[2, 4] = aten::layer_norm(%x" + n +
            ", %w, %w, normalized_shape=[4], eps=1e-05, cudnn_enable=true)\n";
    for (const char* op : {"exp", "sin", "cos"})
      text += "  %" + std::string(op) + n + ": float64[2, 4] = aten::" + op + "(%a" + n + ")\n";
    text += "  %s" + n + ": float64[2, 4] = aten::mul.Tensor(%exp" + n + ", %sin" + n + ")\n";
    text += "  %x" + std::to_string(i + 1) + ": float64[2, 4] = aten::mul.Tensor(%s" + n +
            ", %cos" + n + ")\n";
  }
  text +=
      "  %last: float64[2, 4] = aten::layer_norm(%x3, %w, %w, normalized_shape=[4], eps=1e-05, "
      "cudnn_enable=true)\n  return %last\n}";
  const Graph graph = parse(text), repeats = outline_repeats(graph, {.min_saved = 1});
  ASSERT_EQ(calls_in(repeats).size(), 3u);
  const Graph outlined = outline_nodes(repeats, is_norm);
  verify(outlined);
  const std::vector<NodePtr> calls = calls_in(outlined);
  ASSERT_EQ(calls.size(), 4u);
  EXPECT_EQ(calls_in(*calls[0]->find_run("body")->as<Region>()).size(), 1u);
  EXPECT_EQ(inline_calls(outlined), graph);
}

}  // namespace
}  // namespace composit
