#include "composit/ir/transform.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "composit/ir/error.h"
#include "composit/ir/parse.h"
#include "composit/ir/print.h"
#include "composit/ir/verify.h"

namespace composit {
namespace {

using Operands = LazyTensors;

constexpr std::string_view kText = R"(graph(%x: float32[2], %w: float32[2] buffer) {
  %a: float32[2] = aten::a(%x)
  %b: float32[2] = aten::b(%w)
  %c: float32[2] = aten::c(%a)
  %d: float32[2] = aten::d(%b) {effect=0}
  %e: float32[2] = aten::e(%c, [none, %d]) {body=region(%0: float32[2], %1: float32[2]) {
    %f: float32[2] = aten::f(%0)
    return %f
  }}
  aten::check(%a) {effect=1}
  mutate %w = %d
  return %e, none
}
)";

NodePtr find_node(const Graph& graph, std::string_view op) {
  for (const NodePtr& node : graph.nodes())
    if (node->op() == Symbol(op)) return node;
  return nullptr;
}

// Renames one operation.
Rewrite rename(std::string_view from, std::string_view to) {
  return [=](const Node& node, const Operands& operands) {
    std::optional<Replacement> replacement;
    if (node.op() == Symbol(from)) {
      NodeSpec spec = copy_of(node, operands);
      spec.op = Symbol(to);
      replacement = replace_by(std::move(spec).make_node());
    }
    return replacement;
  };
}

TEST(Rebuild, WithoutChangeSharesEverything) {
  const Graph graph = parse(kText);
  const Graph same =
      rebuild(graph, [](const Node&, const Operands&) { return std::optional<Replacement>(); });
  EXPECT_EQ(same.nodes(), graph.nodes());
  EXPECT_EQ(same, graph);
}

TEST(Rebuild, CopiesOnlyWhatDependsOnTheChange) {
  const Graph graph = parse(kText);
  const Graph changed = rebuild(graph, rename("aten::c", "aten::cc"));
  std::string expected(kText);
  expected.replace(expected.find("aten::c("), 8, "aten::cc(");
  EXPECT_EQ(changed, parse(expected));
  EXPECT_EQ(print(changed), print(parse(expected)));  // the order is kept as well
  for (const char* shared : {"aten::a", "aten::b", "aten::d", "aten::check"})
    EXPECT_EQ(find_node(changed, shared), find_node(graph, shared)) << shared;
  EXPECT_NO_THROW(verify(changed));
  EXPECT_EQ(graph, parse(kText));
}

TEST(Rebuild, ReplacesEffectsMutationsAndInputs) {
  const Graph graph = parse(kText);
  const Graph changed = rebuild(graph, rename("aten::d", "aten::dd"));
  EXPECT_EQ(changed.effects().at(0)->op().str(), "aten::dd");
  EXPECT_EQ(changed.mutations().at(0).value.node, changed.effects()[0]);
  EXPECT_NO_THROW(verify(changed));
  const float ones[] = {1, 1};
  const Graph folded = rebuild(graph, [&](const Node& node, const Operands&) {
    std::optional<Replacement> replacement;
    if (is_input(node) && input_name(node) == "x")
      replacement = {{constant(Array::copy_of(tensor_type(DType::float32, {2}), ones))}};
    return replacement;
  });
  EXPECT_EQ(folded.inputs().size(), 2U);
  EXPECT_EQ(find_node(folded, "aten::a")->operands()[0].node->op(), ops::kConstant);
  EXPECT_NO_THROW(verify(folded));
}

// c(a(x)) becomes one node; a has another user, which is a removed check.
TEST(Rebuild, FusesNodesAndRemovesEffects) {
  const Graph graph = parse(kText);
  const Graph fused = rebuild(graph, [](const Node& node, const Operands& operands) {
    std::optional<Replacement> replacement;
    if (node.op() == Symbol("aten::a")) replacement = Replacement{{operands[0]}};
    if (node.op() == Symbol("aten::check")) replacement = Replacement{};
    if (node.op() == Symbol("aten::c")) {
      NodeSpec spec("fused::ca");
      spec.tensor(operands[0]).output(node.outputs()[0]).place = node.place();
      replacement = replace_by(std::move(spec).make_node());
    }
    return replacement;
  });
  EXPECT_EQ(fused, parse(R"(graph(%x: float32[2], %w: float32[2] buffer) {
    %b: float32[2] = aten::b(%w)
    %c: float32[2] = fused::ca(%x)
    %d: float32[2] = aten::d(%b) {effect=0}
    %e: float32[2] = aten::e(%c, [none, %d]) {body=region(%0: float32[2], %1: float32[2]) {
      %f: float32[2] = aten::f(%0)
      return %f
    }}
    mutate %w = %d
    return %e, none
  })"));
}

TEST(Rebuild, LeavingOutWhatIsUsedIsAnInternalError) {
  const Graph graph = parse(kText);
  const auto without = [](std::string_view op) {
    return [op](const Node& node, const Operands&) {
      return node.op() == Symbol(op) ? std::optional(Replacement{}) : std::nullopt;
    };
  };
  for (const char* used : {"aten::a", "aten::d", "aten::e"})
    EXPECT_THROW(rebuild(graph, without(used)), InternalError) << used;
  EXPECT_NO_THROW(rebuild(graph, without("aten::check")));
}

TEST(Annotate, NodesEdgesAndRegions) {
  const Graph graph = parse(kText);
  const NodePtr e = find_node(graph, "aten::e");
  const NodePtr f = find_node(*e->find_run("body")->as<Region>(), "aten::f");
  const Graph annotated =
      annotate(graph, {{e.get(), {Symbol("note"), "node"}},
                       {e.get(), {Symbol("note"), "edge", 2}},
                       {f.get(), {Symbol("note"), "inside"}},
                       {graph.inputs()[0].node.get(), {Symbol("note"), "input"}}});
  EXPECT_EQ(annotated, graph);
  const NodePtr now = find_node(annotated, "aten::e");
  EXPECT_EQ(now->annotations(),
            (std::vector<Annotation>{{Symbol("note"), "node"}, {Symbol("note"), "edge", 2}}));
  EXPECT_EQ(find_node(*now->find_run("body")->as<Region>(), "aten::f")->annotation("note"),
            "inside");
  EXPECT_EQ(annotated.inputs()[0].node->annotation("note"), "input");
  EXPECT_EQ(find_node(annotated, "aten::b"), find_node(graph, "aten::b"));
  EXPECT_EQ(e->annotation("note"), "");
  EXPECT_EQ(print(annotated, {.annotations = false}), print(graph));

  const Graph again = annotate(annotated, {{now.get(), {Symbol("note"), "new"}}});
  EXPECT_EQ(find_node(again, "aten::e")->annotation("note"), "new");
  EXPECT_EQ(find_node(again, "aten::e")->annotations().size(), 2U);
}

TEST(Annotate, WhatIsNotThereIsAUserError) {
  const Graph graph = parse(kText), other = parse(kText);
  const Annotation note{Symbol("note"), "x"};
  EXPECT_THROW(annotate(graph, {{find_node(other, "aten::a").get(), note}}), UserError);
  EXPECT_THROW(annotate(graph, {{find_node(graph, "aten::a").get(), {Symbol("note"), "x", 1}}}),
               UserError);
}

}  // namespace
}  // namespace composit
