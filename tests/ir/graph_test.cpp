#include "composit/ir/graph.h"

#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "composit/ir/error.h"
#include "composit/ir/flat_map.h"

namespace composit {
namespace {

const Type kMatrix = tensor_type(DType::float32, {2, 3});

LazyTensor unary(std::string_view op, const LazyTensor& x) {
  NodeSpec spec(op);
  spec.tensor(x).output(x.type());
  return std::move(spec).make();
}

LazyTensor with_attribute(std::string_view op, std::string_view name, Attribute value) {
  NodeSpec spec(op);
  spec.tensor(input("x", kMatrix)).attribute(name, std::move(value)).output(kMatrix);
  return std::move(spec).make();
}

// The original composit left attribute values out of identity and merged these.
TEST(Identity, AttributesBelongToIt) {
  EXPECT_FALSE(with_attribute("aten::sum.dim_IntList", "dim", int_list({0})) ==
               with_attribute("aten::sum.dim_IntList", "dim", int_list({1})));
  EXPECT_FALSE(with_attribute("aten::permute", "dims", int_list({0, 1})) ==
               with_attribute("aten::permute", "dims", int_list({1, 0})));
  EXPECT_EQ(with_attribute("aten::permute", "dims", int_list({1, 0})),
            with_attribute("aten::permute", "dims", int_list({1, 0})));
}

TEST(Identity, ExecutionAndTypesBelongToIt) {
  const LazyTensor x = input("x", kMatrix);
  const auto make = [&](int64_t effect, const Type& type) {
    NodeSpec spec("aten::rand");
    spec.run("effect", effect).output(type);
    return std::move(spec).make();
  };
  Type transposed = kMatrix;
  transposed.strides = {1, 2};
  EXPECT_EQ(make(0, kMatrix), make(0, kMatrix));
  EXPECT_FALSE(make(0, kMatrix) == make(1, kMatrix));
  EXPECT_FALSE(make(0, kMatrix) == make(0, transposed));
  for (auto change :
       {+[](Type& t) { t.conj = true; }, +[](Type& t) { t.neg = true; },
        +[](Type& t) { t.device.index = 0; }, +[](Type& t) { t.dtype = DType::int32; },
        +[](Type& t) {
          t.sizes = {3, 2};
        }}) {
    Type other = kMatrix;
    change(other);
    EXPECT_FALSE(make(0, kMatrix) == make(0, other));
  }
}

TEST(Identity, InputsAreTheirNameKindAndType) {
  EXPECT_EQ(input("x", kMatrix), input("x", kMatrix));
  EXPECT_FALSE(input("x", kMatrix) == input("y", kMatrix));
  EXPECT_FALSE(input("x", kMatrix) == input("x", kMatrix, InputKind::buffer));
  EXPECT_FALSE(input("x", kMatrix) == input("x", tensor_type(DType::float32, {3, 2})));
}

TEST(Identity, ArgumentsAndOutputs) {
  const LazyTensor x = input("x", kMatrix);
  const auto make = [&](auto add) {
    NodeSpec spec("aten::op");
    add(spec);
    spec.output(kMatrix).output(kMatrix);
    return std::move(spec).make();
  };
  const LazyTensors different = {
      make([&](NodeSpec& s) { s.tensor(x).tensor(x); }),
      make([&](NodeSpec& s) { s.tensor(x).tensor({}); }),
      make([&](NodeSpec& s) { s.tensor({}).tensor(x); }),
      make([&](NodeSpec& s) {
        s.list({x, x});
      }),
      make([&](NodeSpec& s) { s.list({x}).list({x}); }),
      make([&](NodeSpec& s) {
        s.list({x, {}});
      }),
      make([&](NodeSpec& s) {
        s.list({}).list({x, x});
      }),
  };
  for (size_t i = 0; i < different.size(); ++i)
    for (size_t j = 0; j < i; ++j) EXPECT_FALSE(different[i] == different[j]) << i << " " << j;
  EXPECT_FALSE((LazyTensor{different[0].node, 0} == LazyTensor{different[0].node, 1}));
  EXPECT_EQ(LazyTensor(), LazyTensor());
  EXPECT_FALSE(LazyTensor() == x);
}

TEST(Identity, AnnotationsDoNotBelongToIt) {
  const LazyTensor x = input("x", kMatrix);
  NodeSpec plain("aten::relu"), annotated("aten::relu");
  plain.tensor(x).output(kMatrix);
  annotated.tensor(x).output(kMatrix).annotate("scope", "fc1").annotate("note", "edge", 0);
  const LazyTensor a = std::move(plain).make(), b = std::move(annotated).make();
  EXPECT_EQ(a, b);
  EXPECT_EQ(unary("aten::tanh", a), unary("aten::tanh", b));
  EXPECT_EQ(b.node->annotation("scope"), "fc1");
  EXPECT_EQ(b.node->annotation("note"), "");  // stands on the edge
}

TEST(Identity, ReachesThroughRegions) {
  const auto node = [](std::string_view inner_op) {
    const LazyTensor block = input("0", kMatrix, InputKind::block);
    const auto body = std::make_shared<const Graph>(
        Graph::Parts{.inputs = {block}, .outputs = {unary(inner_op, block)}});
    NodeSpec spec("aten::gelu");
    spec.tensor(input("x", kMatrix)).run("body", body).output(kMatrix);
    return std::move(spec).make();
  };
  EXPECT_EQ(node("aten::erf"), node("aten::erf"));
  EXPECT_FALSE(node("aten::erf") == node("aten::tanh"));
}

TEST(Identity, OfGraphs) {
  const LazyTensor x = input("x", kMatrix), y = input("y", kMatrix), z = unary("aten::relu", x);
  const std::vector<Graph> different = {
      Graph(),
      Graph({.inputs = {x, y}, .outputs = {z}}),
      Graph({.inputs = {y, x}, .outputs = {z}}),
      Graph({.inputs = {x}, .outputs = {z}}),
      Graph({.inputs = {x, y}, .outputs = {z, z}}),
      Graph({.inputs = {x, y}, .outputs = {z, {}}}),
      Graph({.inputs = {x, y}, .outputs = {z}, .mutations = {{y, z}}}),
      Graph({.inputs = {x, y}, .outputs = {z}, .mutations = {{x, z}}}),
      Graph({.inputs = {x, y}, .outputs = {z}, .effects = {z.node}}),
  };
  for (size_t i = 0; i < different.size(); ++i)
    for (size_t j = 0; j < i; ++j) EXPECT_FALSE(different[i] == different[j]) << i << " " << j;
}

TEST(Identity, HashedByManyThreads) {
  LazyTensor last = input("x", kMatrix), same = input("x", kMatrix);
  for (int i = 0; i < 20000; ++i) {
    last = unary("aten::relu", last);
    same = unary("aten::relu", same);
  }
  const Hash expected = same.hash();
  std::vector<Hash> hashes(4);
  std::vector<std::thread> threads;
  for (Hash& hash : hashes) threads.emplace_back([&] { hash = last.hash(); });
  for (std::thread& thread : threads) thread.join();
  for (const Hash& hash : hashes) EXPECT_EQ(hash, expected);
}

// ---- structure ----------------------------------------------------------------------------------

TEST(Graph, SharesNodesAndKnowsOnlyWhatLeadsToIt) {
  const LazyTensor x = input("x", kMatrix);
  const LazyTensor a = unary("aten::relu", x), b = unary("aten::tanh", a),
                   c = unary("aten::exp", a);
  EXPECT_EQ(b.graph().size(), 3U);
  EXPECT_EQ(c.graph().nodes()[1], a.node);
  EXPECT_EQ(Graph({.inputs = {x}, .outputs = {b, c}}).size(), 4U);
}

TEST(Graph, NodesStandInTheOrderOfCreation) {
  const LazyTensor x = input("x", kMatrix);
  const LazyTensor a = unary("aten::a", x), b = unary("aten::b", x);
  NodeSpec spec("aten::cat");
  spec.list({b, a}).output(kMatrix);
  const Graph graph = std::move(spec).make().graph();
  ASSERT_EQ(graph.size(), 4U);
  EXPECT_EQ(graph.nodes()[1], a.node);
  EXPECT_EQ(graph.nodes()[2], b.node);
}

TEST(Graph, ANodeThatReplacesAnotherTakesItsPlace) {
  const LazyTensor x = input("x", kMatrix);
  const LazyTensor a = unary("aten::a", x), b = unary("aten::b", x);
  NodeSpec replacing("aten::c");
  replacing.tensor(x).output(kMatrix).place = a.node->place();
  const LazyTensor c = std::move(replacing).make();
  NodeSpec later("aten::d");  // its place is before its operand's: the operand wins
  later.tensor(b).output(kMatrix).place = x.node->place();
  const LazyTensor d = std::move(later).make();
  const Graph graph({.inputs = {x}, .outputs = {d, c, b}});
  const std::vector<NodePtr> expected{x.node, c.node, b.node, d.node};
  EXPECT_EQ(graph.nodes(), expected);
}

TEST(Graph, Successors) {
  const LazyTensor x = input("x", kMatrix);
  NodeSpec spec("aten::max.dim");
  spec.tensor(x).output(kMatrix).output(kMatrix);
  const LazyTensor values = std::move(spec).make(), indices{values.node, 1};
  NodeSpec add("aten::add.Tensor");
  add.tensor(indices).tensor(x).output(kMatrix);
  const LazyTensor sum = std::move(add).make();
  const Graph graph = sum.graph();
  ASSERT_EQ(graph.successors(*x.node).size(), 2U);
  EXPECT_EQ(graph.successors(*x.node)[0].node, values.node.get());
  EXPECT_EQ(graph.successors(*x.node)[1].operand, 1U);
  ASSERT_EQ(graph.successors(*values.node).size(), 1U);
  EXPECT_EQ(graph.successors(*values.node)[0].output, 1U);
  EXPECT_TRUE(graph.successors(*sum.node).empty());
}

TEST(Node, MissingAttributeIsAUserError) {
  const LazyTensor x = input("x", kMatrix);
  EXPECT_THROW(x.node->attribute("dim"), UserError);
  EXPECT_EQ(x.node->find_attribute("dim"), nullptr);
  EXPECT_THROW(LazyTensor().type(), InternalError);
  EXPECT_THROW((LazyTensor{x.node, 1}.type()), InternalError);
}

TEST(Node, Inputs) {
  const LazyTensor x = input("fc.weight", kMatrix, InputKind::parameter);
  EXPECT_TRUE(is_input(*x.node));
  EXPECT_EQ(input_kind(*x.node), InputKind::parameter);
  EXPECT_EQ(input_name(*x.node), "fc.weight");
  EXPECT_FALSE(is_input(*unary("aten::relu", x).node));
}

TEST(Symbol, Parts) {
  const Symbol op("aten::add.Tensor");
  EXPECT_EQ(op, Symbol("aten::add.Tensor"));
  EXPECT_FALSE(op == Symbol("aten::add"));
  EXPECT_EQ(op.domain(), "aten");
  EXPECT_EQ(op.base_name(), "add");
  EXPECT_EQ(Symbol("relu").domain(), "");
  EXPECT_EQ(Symbol("relu").base_name(), "relu");
  EXPECT_TRUE(Symbol().empty());
}

// ---- the map all of this uses -------------------------------------------------------------------

TEST(FlatMap, AgreesWithStdMap) {
  FlatMap<std::string, int> map;
  std::map<std::string, int> expected;
  uint32_t random = 1;
  EXPECT_EQ(map.find("x"), nullptr);
  for (int i = 0; i < 20000; ++i) {
    random = random * 1664525 + 1013904223;
    const std::string key = std::to_string(random >> 18);
    ASSERT_EQ(map.insert(key, i), expected.emplace(key, i).second);
    ASSERT_EQ(map.size(), expected.size());
  }
  for (const auto& [key, value] : expected) ASSERT_EQ(*map.find(key), value);
  EXPECT_EQ(map.find("x"), nullptr);
  map["x"] = 7;
  EXPECT_EQ(map["x"], 7);
  EXPECT_EQ(map["y"], 0);
}

// Keys that hash to themselves and differ in few bits, as pointers do.
TEST(FlatMap, RegularKeys) {
  FlatMap<uint64_t, uint64_t> map;
  map.reserve(1000);
  for (uint64_t i = 0; i < 1000000; ++i) map.insert(i << 9, i);
  for (uint64_t i = 0; i < 1000000; ++i) ASSERT_EQ(*map.find(i << 9), i);
  EXPECT_FALSE(map.contains(1));
}

}  // namespace
}  // namespace composit
