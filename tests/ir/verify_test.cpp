#include "composit/ir/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "composit/ir/error.h"
#include "composit/ir/parse.h"

namespace composit {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

const Type kVector = tensor_type(DType::float32, {2});

LazyTensor vector_input() { return input("x", kVector); }

NodeSpec op(const LazyTensor& x) {
  NodeSpec spec("aten::op");
  spec.tensor(x).output(kVector);
  return spec;
}

void expect_fault(const Graph& graph, const std::string& reason) {
  EXPECT_THAT([&] { verify(graph); },
              ThrowsMessage<InternalError>(AllOf(HasSubstr("[verify] "), HasSubstr(reason))));
}

// A graph of one node, changed by `change` before it is made.
template <class Change>
void expect_node_fault(Change change, const std::string& reason) {
  const LazyTensor x = vector_input();
  NodeSpec spec = op(x);
  change(spec);
  const NodePtr node = std::move(spec).make_node();
  Graph::Parts parts{.inputs = {x}};
  if (!node->outputs().empty()) parts.outputs = {{node, 0}};
  expect_fault(Graph(std::move(parts)), reason);
}

TEST(Verify, AcceptsLegalGraphs) {
  EXPECT_NO_THROW(verify(Graph()));
  EXPECT_NO_THROW(verify(
      parse("graph(%x: float32[2], %w: float32[2] buffer) {\n"
            "  %y: float32[2] = aten::op(%x, [none, %w], none) {body=region(%0: float32[2], %1: "
            "float32[2]) { g() {effect=0} return %1 }, effect=4}\n"
            "  mutate %w = %y\n return %y, none }")));
}

TEST(Verify, Arguments) {
  expect_node_fault([](NodeSpec& s) { s.arguments[0].begin = 1; }, "do not cover the operands");
  expect_node_fault([](NodeSpec& s) { s.arguments[0].size = 7; }, "do not cover the operands");
  expect_node_fault([](NodeSpec& s) { s.arguments.clear(); }, "more operands than arguments");
  expect_node_fault([](NodeSpec& s) { s.arguments[0].kind = Argument::Kind::absent; },
                    "another number of operands than its kind");
  expect_node_fault([](NodeSpec& s) { s.operands[0] = {}; }, "a tensor argument has no tensor");
  expect_node_fault([](NodeSpec& s) { s.operands[0].index = 1; },
                    "operand 0 is output 1 of a node with 1");
}

TEST(Verify, Types) {
  const auto with_type = [](auto change, const std::string& reason) {
    expect_node_fault([&](NodeSpec& s) { change(s.outputs[0]); }, reason);
  };
  with_type([](Type& t) { t.sizes[0] = -2; }, "negative size");
  with_type([](Type& t) { t.strides[0] = -1; }, "negative size");
  with_type([](Type& t) { t.strides.clear(); }, "another number of strides");
  with_type([](Type& t) { t.layout = Layout::sparse; }, "another number of strides");
  with_type([](Type& t) { t.dtype = DType::count_; }, "an undefined type has properties");
  with_type([](Type& t) { t.dtype = static_cast<DType>(99); }, "out of range");
  with_type([](Type& t) { t.device.type = 99; }, "out of range");
  with_type([](Type& t) { t.layout = Layout::count_; }, "out of range");
  with_type([](Type& t) { t = tensor_type(DType::float32, Dims(300, 1)); }, "more than 255 axes");
  with_type([](Type& t) { t.sizes[0] = int64_t{1} << 62; }, "too many elements");
  with_type([](Type& t) { t.strides[0] = INT64_MAX; }, "too many elements");
}

TEST(Verify, Attributes) {
  const auto with_value = [](Attribute value, const std::string& reason) {
    expect_node_fault([&](NodeSpec& s) { s.attribute("a", value); }, reason);
    expect_node_fault([&](NodeSpec& s) { s.run("a", value); }, reason);
  };
  with_value(Array(), "an array has no value");
  with_value(Region(), "a region has no value");
  with_value(static_cast<DType>(99), "attribute 'a': an enumerator is out of range");
  with_value(MemoryFormat::count_, "an enumerator is out of range");
  with_value(Device{0, -2}, "an enumerator is out of range");
  with_value(List{AttributeKind::region, {std::make_shared<const Graph>()}}, "stands in a list");
  with_value(List{AttributeKind::layout, {Layout::count_}}, "an enumerator is out of range");
  Attribute nested = 1;
  for (size_t i = 0; i <= kMaxNesting; ++i) nested = List{AttributeKind::list, {nested}};
  with_value(nested, "nested too deeply");
  expect_node_fault([](NodeSpec& s) { s.attribute("a", 1).attribute("a", 2); },
                    "two attributes are called 'a'");
  expect_node_fault([](NodeSpec& s) { s.attribute("", 1); }, "an attribute has no name");
  expect_node_fault([](NodeSpec& s) { s.annotate("note", "x", 1); },
                    "an annotation is on operand 1");
  expect_node_fault([](NodeSpec& s) { s.op = Symbol(); }, "a node has no operation");
}

TEST(Verify, Inputs) {
  const LazyTensor x = vector_input();
  expect_fault(x.graph(), "an input is used that the graph does not list");
  expect_fault(Graph({.inputs = {{}}}), "an input is not an input node");
  expect_fault(Graph({.inputs = {op(x).make()}}), "an input is not an input node");
  expect_fault(Graph({.inputs = {x, input("x", kVector, InputKind::buffer)}}),
               "two inputs are called 'x'");
  const auto odd = [](auto change) {
    NodeSpec spec(ops::kInput);
    spec.attribute("name", "y").attribute("kind", "buffer").output(kVector);
    change(spec);
    return Graph({.inputs = {std::move(spec).make()}});
  };
  EXPECT_NO_THROW(verify(odd([](NodeSpec&) {})));
  expect_fault(odd([](NodeSpec& s) { s.attributes.clear(); }), "first attributes");
  expect_fault(odd([](NodeSpec& s) { s.attributes[0].value = 1; }), "first attributes");
  expect_fault(odd([](NodeSpec& s) { s.attributes[1].value = "odd"; }),
               "unknown kind of input 'odd'");
  expect_fault(odd([](NodeSpec& s) { s.run("grad", true); }), "neither operands nor execution");
  expect_fault(odd([](NodeSpec& s) { s.output(kVector); }), "an input has one output");
}

TEST(Verify, Constants) {
  const float value = 1;
  const Array array = Array::copy_of(tensor_type(DType::float32, {}), &value);
  EXPECT_NO_THROW(verify(constant(array).graph()));
  const auto odd = [&](auto change) {
    NodeSpec spec(ops::kConstant);
    spec.attribute("value", array).output(array.type());
    change(spec);
    return std::move(spec).make().graph();
  };
  expect_fault(odd([](NodeSpec& s) { s.attributes.clear(); }), "a constant has a value");
  expect_fault(odd([](NodeSpec& s) { s.attributes[0].value = 1; }), "not of its type");
  expect_fault(odd([](NodeSpec& s) { s.outputs[0].dtype = DType::int32; }), "not of its type");
  expect_fault(odd([](NodeSpec& s) { s.outputs[0] = kVector; }), "not of its type");
}

TEST(Verify, OutputsAndMutations) {
  const LazyTensor x = vector_input(), y = op(x).make();
  expect_fault(Graph({.inputs = {x}, .outputs = {{y.node, 3}}}), "output 0 is an output its node");
  expect_fault(Graph({.inputs = {x}, .mutations = {{y, x}}}), "is not an input");
  expect_fault(Graph({.inputs = {x}, .mutations = {{{}, x}}}), "is not an input");
  expect_fault(Graph({.inputs = {x}, .mutations = {{x, {}}}}), "a mutation has no value");
  expect_fault(Graph({.inputs = {x}, .mutations = {{x, y}, {x, x}}}), "input 'x' is mutated twice");
  const LazyTensor other = input("y", tensor_type(DType::float32, {3}));
  expect_fault(Graph({.inputs = {x, other}, .mutations = {{x, other}}}),
               "input 'x' is float32[2], its new value float32[3]");
  Type strided = kVector;
  strided.strides = {5};
  const LazyTensor spread = input("y", strided);
  EXPECT_NO_THROW(verify(Graph({.inputs = {x, spread}, .mutations = {{x, spread}}})));
}

NodePtr effect(Attribute place) {
  NodeSpec spec("aten::rand");
  spec.output(kVector).run("effect", std::move(place));
  return std::move(spec).make_node();
}

TEST(Verify, Effects) {
  const NodePtr first = effect(1), second = effect(2), same = effect(2);
  EXPECT_NO_THROW(verify(Graph({.effects = {first, second}})));
  expect_fault(Graph({.effects = {second, first}}), "not listed in their order");
  expect_fault(Graph({.effects = {second, same}}), "not listed in their order");
  expect_fault(Graph({.effects = {first, first}}), "not listed in their order");
  expect_fault(Graph({.effects = {nullptr}}), "not listed in their order");
  expect_fault(Graph({.effects = {op(vector_input()).make().node}}), "not listed in their order");
  expect_fault(Graph({.outputs = {{first, 0}}, .effects = {second}}), "is not listed as one");
  for (Attribute wrong : {Attribute(-1), Attribute(true)})
    expect_fault(Graph({.outputs = {{effect(wrong), 0}}}), "not a place in the effect order");
}

TEST(Verify, Regions) {
  const auto with_body = [](Graph::Parts body, const std::string& reason, bool has_effect = false) {
    expect_node_fault(
        [&](NodeSpec& s) {
          s.run("body", std::make_shared<const Graph>(body));
          if (has_effect) s.run("effect", 0);
        },
        reason);
  };
  const LazyTensor block = input("0", kVector, InputKind::block);
  const LazyTensor wide = input("0", tensor_type(DType::float32, {4}), InputKind::block);
  with_body({.inputs = {vector_input()}, .outputs = {block}},
            "an input of a region is not a block");
  with_body({.outputs = {block}}, "the body has 0 inputs for 1 operands");
  with_body({.inputs = {block}}, "the body has 0 outputs for 1 of the node");
  with_body({.inputs = {wide}, .outputs = {wide}}, "the body's input 0 is float32[4]");
  with_body({.inputs = {block}, .outputs = {{}}}, "the body's output 0 is none");
  with_body({.inputs = {block}, .outputs = {op(vector_input()).make()}}, "does not list");
  with_body({.inputs = {block}, .outputs = {block}, .effects = {effect(0)}}, "its node has not");
  expect_node_fault([](NodeSpec& s) { s.run("body", 3); }, "'body' is not a region");

  // A fault within a region is found, and shown with the nodes around it.
  NodeSpec wrong("aten::inner");
  wrong.tensor(block).attribute("", 1).output(kVector);
  with_body({.inputs = {block}, .outputs = {std::move(wrong).make()}},
            "> %inner: float32[2] = aten::inner(%0, \"\"=1)");
}

TEST(Verify, DeepRegions) {
  Graph::Parts parts;
  for (size_t depth = 0; depth <= kMaxNesting + 1; ++depth) {
    NodeSpec spec("composit::call");
    spec.attribute("callee", std::make_shared<const Graph>(std::move(parts))).run("effect", 0);
    parts = {.effects = {std::move(spec).make_node()}};
  }
  expect_fault(Graph(parts), "regions are nested too deeply");
}

TEST(Verify, ShowsTenNodesAroundTheFault) {
  const LazyTensor x = vector_input();
  LazyTensor last = x;
  for (int i = 0; i < 40; ++i) {
    NodeSpec spec = op(last);
    if (i == 20) spec.annotate("note", "x", 9);
    last = std::move(spec).make();
  }
  const Graph graph({.inputs = {x}, .outputs = {last}});
  EXPECT_THAT([&] { verify(graph); },
              ThrowsMessage<InternalError>(
                  AllOf(HasSubstr("\n> %op_20: float32[2] = aten::op(%op_19)"),
                        HasSubstr("\n  %op_15: "), HasSubstr("\n  %op_24: "),
                        Not(HasSubstr("\n  %op_14: ")), Not(HasSubstr("\n  %op_25: ")))));
}

}  // namespace
}  // namespace composit
