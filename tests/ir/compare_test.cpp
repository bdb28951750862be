#include "composit/ir/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "composit/ir/parse.h"
#include "composit/ir/print.h"
#include "composit/ir/transform.h"
#include "composit/ir/verify.h"
#include "tests/ir/random_graph.h"

namespace composit {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> differences(const Graph& before, const Graph& after) {
  std::vector<std::string> lines;
  for (const Difference& difference : compare(before, after)) lines.push_back(str(difference));
  return lines;
}

// `text` with the only occurrence of `from` replaced.
std::string replaced(std::string text, std::string_view from, std::string_view to) {
  EXPECT_EQ(text.find(from), text.rfind(from)) << from;
  return text.replace(text.find(from), from.size(), to);
}

// Three layers, a random draw in each, and a buffer that is updated.
const std::string kModel = R"(graph(
  %x: float32[2, 3],
  %w1: float32[3, 3] parameter "fc1.weight",
  %w2: float32[3, 3] parameter "fc2.weight",
  %w3: float32[3, 3] parameter "fc3.weight",
  %steps: int64[] buffer "steps"
) {
  %a: float32[2, 3] = aten::linear(%x, %w1, none)  # scope=fc1 source=main.cpp:1
  %b: float32[2, 3] = aten::dropout(%a, p=0.1, train=true) {effect=0}
  %c: float32[2, 3] = aten::linear(%b, %w2, none)  # scope=fc2 source=main.cpp:2
  %d: float32[2, 3] = aten::dropout(%c, p=0.2, train=true) {effect=1}
  %e: float32[2, 3] = aten::linear(%d, %w3, none)  # scope=fc3 source=main.cpp:3
  %one: int64[] = composit::constant(value=array(int64[], [1]))  # name=constant_0
  %n: int64[] = aten::add.Tensor(%steps, %one, alpha=scalar(1))
  %f: float32[2, 3] = aten::gelu(%e) {body=region(%0: float32[2, 3]) {
    %erf: float32[2, 3] = aten::erf(%0)
    %k: float32[2, 3] = aten::mul.Scalar(%erf, other=scalar(0.5))
    return %k
  }}  # scope=act
  mutate %steps = %n
  return %f, %b
}
)";

std::vector<std::string> after_edit(std::string_view from, std::string_view to) {
  return differences(parse(kModel), parse(replaced(kModel, from, to)));
}

TEST(Compare, EqualGraphsHaveNoDifference) {
  EXPECT_THAT(differences(parse(kModel), parse(kModel)), IsEmpty());
  EXPECT_THAT(after_edit("scope=act", "scope=other"), IsEmpty());
}

TEST(Compare, OneAttributeIsOneDifference) {
  EXPECT_THAT(after_edit("p=0.1", "p=0.3"),
              ElementsAre("~ %dropout = aten::dropout: attribute p: 0.1 -> 0.3"));
  EXPECT_THAT(after_edit("alpha=scalar(1)", "alpha=scalar(1, wrapped)"),
              ElementsAre("~ %add = aten::add.Tensor: attribute alpha: scalar(1) -> scalar(1, "
                          "wrapped)"));
  EXPECT_THAT(after_edit("(%e) {", "(%e, tanh=true) {"),
              ElementsAre("~ %gelu = aten::gelu: attribute tanh: (absent) -> true  # scope=act"));
  EXPECT_THAT(after_edit("(%e) {", "(%e) {grad=true, "),
              ElementsAre("~ %gelu = aten::gelu: execution attribute grad: (absent) -> true  # "
                          "scope=act"));
  EXPECT_THAT(after_edit("p=0.1, train=true", "train=true, p=0.1"),
              ElementsAre("~ %dropout = aten::dropout: attribute (order): p, train -> train, p"));
}

TEST(Compare, Constants) {
  EXPECT_THAT(after_edit("[1]))", "[2]))"),
              ElementsAre("~ %constant = composit::constant: attribute value: array(int64[], [1]) "
                          "-> array(int64[], [2])"));
}

TEST(Compare, LargeConstantsShowTheFirstElementThatDiffers) {
  std::vector<float> values(1000, 1.5);
  const Type type = tensor_type(DType::float32, {10, 100});
  const Graph before = constant(Array::copy_of(type, values.data())).graph();
  values[207] = -2;
  const Graph after = constant(Array::copy_of(type, values.data())).graph();
  EXPECT_THAT(differences(before, after),
              ElementsAre("~ %constant = composit::constant: attribute value: "
                          "array(float32[10, 100], ...) with [2, 7] = 1.5 -> "
                          "array(float32[10, 100], ...) with [2, 7] = -2"));
}

TEST(Compare, Types) {
  EXPECT_THAT(after_edit("%c: float32[2, 3]", "%c: float32[2, 3] strides=[1, 2]"),
              ElementsAre("~ %linear_1 = aten::linear: type of output 0: float32[2, 3] -> "
                          "float32[2, 3] strides=[1, 2]  # scope=fc2 source=main.cpp:2"));
}

TEST(Compare, Wiring) {
  EXPECT_THAT(after_edit("(%d, %w3", "(%b, %w3"),
              ElementsAre("~ %linear_2 = aten::linear: operand 0: %dropout_1 -> %dropout  # "
                          "scope=fc3 source=main.cpp:3"));
  EXPECT_THAT(after_edit("return %f, %b", "return %f, %f"),
              ElementsAre("~ output 1: %dropout -> %gelu"));
  EXPECT_THAT(after_edit("return %f, %b", "return %f"), ElementsAre("~ number of outputs: 2 -> 1"));
  EXPECT_THAT(after_edit("mutate %steps = %n", "mutate %steps = %one"),
              ElementsAre("- %add: int64[] = aten::add.Tensor(%steps, %constant, alpha=scalar(1))",
                          "~ mutation of steps: %add -> %constant"));
}

TEST(Compare, AddedAndRemovedNodes) {
  const std::string node = "%r: float32[2, 3] = aten::relu(%c)  # scope=fc2\n  %d:";
  const std::string longer = replaced(replaced(kModel, "%d:", node), "dropout(%c", "dropout(%r");
  const Graph before = parse(kModel), after = parse(longer);
  EXPECT_THAT(differences(before, after),
              ElementsAre("+ %relu: float32[2, 3] = aten::relu(%linear_1)  # scope=fc2",
                          "~ %dropout_1 = aten::dropout: operand 0: %linear_1 -> %relu"));
  EXPECT_THAT(differences(after, before),
              ElementsAre("- %relu: float32[2, 3] = aten::relu(%linear_1)  # scope=fc2",
                          "~ %dropout_1 = aten::dropout: operand 0: %relu -> %linear_1"));
}

// A new draw moves the places of all draws behind it, which is no change of theirs.
TEST(Compare, AddedEffect) {
  std::string text = replaced(kModel, "effect=1", "effect=2");
  text = replaced(text, "%c:", "aten::manual_seed(seed=3) {effect=1}\n%c:");
  EXPECT_THAT(differences(parse(kModel), parse(text)),
              ElementsAre("+ aten::manual_seed(seed=3) {effect=1}"));
  EXPECT_THAT(after_edit("effect=1", "effect=7"), ElementsAre("~ places of effects"));
  EXPECT_THAT(after_edit(" {effect=1}", ""),
              ElementsAre("~ %dropout_1 = aten::dropout: effect: 1 -> (absent)"));
}

TEST(Compare, OrderOfEffects) {
  std::string text = replaced(kModel, "effect=0", "effect=5");
  EXPECT_THAT(differences(parse(kModel), parse(text)),
              ElementsAre("~ %dropout = aten::dropout: effect: 0 -> 5"));
}

TEST(Compare, Inputs) {
  EXPECT_THAT(after_edit("parameter \"fc2.weight\"", "buffer \"fc2.weight\""),
              ElementsAre("~ %fc2_weight = composit::input: attribute kind: \"parameter\" -> "
                          "\"buffer\""));
  EXPECT_THAT(after_edit("%x: float32[2, 3],", "%x: float32[4, 3],"),
              ElementsAre("~ %x = composit::input: type of output 0: float32[2, 3] -> float32[4, "
                          "3]"));
  EXPECT_THAT(after_edit("%x: float32[2, 3],", "%x: float32[2, 3], %y: none,"),
              ElementsAre("+ %y: none = composit::input(name=\"y\", kind=\"user_input\")"));
  EXPECT_THAT(differences(parse("graph(%x: none, %y: none) { return }"),
                          parse("graph(%y: none, %x: none) { return }")),
              ElementsAre("~ order of inputs: x, y -> y, x"));
  EXPECT_THAT(after_edit("fc2.weight", "fc2.kernel"),
              ElementsAre("- %fc2_weight: float32[3, 3] = composit::input(name=\"fc2.weight\", "
                          "kind=\"parameter\")",
                          "+ %fc2_kernel: float32[3, 3] = composit::input(name=\"fc2.kernel\", "
                          "kind=\"parameter\")",
                          "~ %linear_1 = aten::linear: operand 1: %fc2_weight -> %fc2_kernel  # "
                          "scope=fc2 source=main.cpp:2"));
}

TEST(Compare, Regions) {
  EXPECT_THAT(after_edit("scalar(0.5)", "scalar(0.25)"),
              ElementsAre("~ in %gelu.body: %mul = aten::mul.Scalar: attribute other: scalar(0.5) "
                          "-> scalar(0.25)"));
}

TEST(Compare, KeepsNodesForTheCaller) {
  const auto found =
      compare(parse(kModel), parse(replaced(kModel, "%c: float32[2, 3]", "%c: float64[2, 3]")));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].kind, DifferenceKind::type);
  EXPECT_EQ(found[0].key, "output 0");
  EXPECT_EQ(found[0].scope(), "fc2");
  EXPECT_EQ(found[0].source(), "main.cpp:2");
  EXPECT_EQ(found[0].after->outputs()[0].dtype, DType::float64);
}

// ---- how nodes are aligned ----------------------------------------------------------------------

// add(x, alpha=i) after add(x, alpha=i - 1), ..., without those of `skipped`.
Graph chain(int length, const std::vector<int>& skipped = {}) {
  const Type type = tensor_type(DType::float32, {2});
  const LazyTensor x = input("x", type);
  LazyTensor last = x;
  for (int i = 0; i < length; ++i) {
    if (std::find(skipped.begin(), skipped.end(), i) != skipped.end()) continue;
    NodeSpec spec("aten::add.Tensor");
    spec.tensor(last).tensor(x).attribute("alpha", i).output(type);
    last = std::move(spec).make();
  }
  return Graph({.inputs = {x}, .outputs = {last}});
}

// All operations are equal: attributes must tell which node was left out.
TEST(Compare, AlignsByAttributes) {
  EXPECT_THAT(differences(chain(5), chain(5, {1})),
              ElementsAre("- %add_1: float32[2] = aten::add.Tensor(%add, %x, alpha=1)",
                          "~ %add_1 = aten::add.Tensor: operand 0: %add_1 -> %add"));
}

TEST(Compare, LargeGraphs) {
  EXPECT_EQ(compare(chain(100000), chain(100000, {10, 50000, 99999})).size(), 3U + 2U + 1U);
}

// `graph` with one more attribute on one of its nodes, perhaps one in a region.
Graph with_attribute_somewhere(const Graph& graph, std::mt19937_64& random) {
  std::vector<NodePtr> nodes;
  for (const NodePtr& node : graph.nodes())
    if (!is_input(*node)) nodes.push_back(node);
  if (nodes.empty()) return graph;
  const NodePtr chosen = nodes[random() % nodes.size()];
  return rebuild(graph, [&](const Node& node, const LazyTensors& operands) {
    std::optional<Replacement> replacement;
    if (&node != chosen.get()) return replacement;
    NodeSpec spec = copy_of(node, operands);
    bool inside = false;
    for (NamedAttribute& attribute : spec.execution)
      if (const auto* region = attribute.value.get_if<Region>()) {
        const Graph changed = with_attribute_somewhere(**region, random);
        inside = inside || !(changed == **region);
        attribute.value = std::make_shared<const Graph>(changed);
      }
    if (!inside) spec.attribute("added", true);
    replacement = replace_by(std::move(spec).make_node());
    return replacement;
  });
}

TEST(Compare, OneChangeInRandomGraphsIsOneDifference) {
  std::mt19937_64 random(1);
  size_t changed = 0, inside = 0;
  for (uint64_t seed = 0; seed < test::fuzz_runs(2000); ++seed) {
    const Graph before = test::RandomGraph(seed).make();
    const Graph after = with_attribute_somewhere(before, random);
    ASSERT_NO_THROW(verify(after)) << "seed " << seed;
    const auto found = compare(before, after);
    if (before == after) continue;
    ++changed;
    ASSERT_EQ(found.size(), 1U) << "seed " << seed << "\n"
                                << str(found.at(0)) << "\n"
                                << print(before);
    ASSERT_EQ(found[0].key, "added");
    ASSERT_EQ(found[0].kind, DifferenceKind::attribute);
    inside += found[0].region.empty() ? 0 : 1;
  }
  EXPECT_GT(changed, 0U);
  EXPECT_GT(inside, 0U);
}

// No difference stands for equality, whatever the graphs.
TEST(Compare, RandomGraphs) {
  size_t differ = 0;
  for (uint64_t seed = 0; seed < test::fuzz_runs(1000); ++seed) {
    const Graph a = test::RandomGraph(seed).make(), b = test::RandomGraph(seed + 1).make();
    ASSERT_EQ(compare(a, b).empty(), a == b) << "seed " << seed;
    ASSERT_EQ(compare(b, a).empty(), a == b) << "seed " << seed;
    ASSERT_TRUE(compare(a, test::RandomGraph(seed).make()).empty()) << "seed " << seed;
    differ += a == b ? 0 : 1;
  }
  EXPECT_GT(differ, 0U);
}

}  // namespace
}  // namespace composit
