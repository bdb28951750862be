#include "flashlight/devices/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "composit/ops/functions.h"
#include "flashlight/backends/devices.h"
#include "tests/user_error.h"

namespace flashlight::devices {
namespace {

using composit::DType;
using composit::Graph;
using composit::InputKind;
using composit::LazyTensor;
using composit::tensor_type;
using composit::user_error;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Optional;

Plan plan(const Graph& graph, const std::string& choices, bool keeps_weights = true,
          bool lenient = false) {
  composit::CompileOptions options = {.may_prepare = keeps_weights};
  options.options = composit::complete(
      composit::BackendChoice(Devices{.choices = choices, .lenient = lenient}).options,
      Devices::fields().table(), composit::Option::Use::calls, "devices");
  return plan_of(graph, options);
}

const composit::Type kSquare = tensor_type(DType::float32, {8, 8});

LazyTensor in_module(const std::string& module, composit::NodeSpec spec) {
  spec.annotate("scope", module);
  return std::move(spec).make();
}
LazyTensor relu(const std::string& module, const LazyTensor& x) {
  composit::NodeSpec spec("aten::relu");
  spec.tensor(x).output(x.type());
  return in_module(module, std::move(spec));
}

// The device of each part, by stage.
std::vector<std::string> devices_of(const Plan& plan) {
  std::vector<std::string> names;
  for (const Part& part : plan.partition.parts)
    names.push_back(std::to_string(part.stage) + " " + plan.partition.devices[part.device].name +
                    " " + std::to_string(part.operations));
  return names;
}

TEST(Placement, TakesTheValueThenTheInnermostModule) {
  const LazyTensor x = composit::input("x", kSquare);
  const LazyTensor a = relu("encoder.layer.3", x), b = relu("encoder.layer.3.out", a),
                   c = relu("encoder.layer.31", b), d = relu("encoder.layer.3", c), e = relu("", d);
  const Graph graph({.inputs = {x}, .outputs = {e}});
  const NodeNames names(graph);
  const Choices choices =
      parse_choices("encoder.layer.3: on mosaic\nencoder.layer.3.out: on cpp\n" +
                    names.name(*d.node) + ": on reference\n*: on reference");
  const Placement placement = place(graph, names, choices);
  const auto device = [&](const LazyTensor& value) {
    return placement.devices[placement.device_of(*value.node)].name;
  };
  EXPECT_EQ(device(a), "mosaic");
  EXPECT_EQ(device(b), "cpp");
  EXPECT_EQ(device(c), "reference");
  EXPECT_EQ(device(d), "reference");
  EXPECT_EQ(device(e), "mosaic");  // of no module: goes with what it reads
}

// The value of 'a.b' would be called 'b', as is a module: the line 'b' is of the module.
TEST(Placement, TellsAValueFromAModuleOfItsName) {
  const LazyTensor x = composit::input("x", kSquare);
  const LazyTensor a = relu("a.b", x), b = relu("b.x", a), c = relu("b", b);
  const Graph graph({.inputs = {x}, .outputs = {c}});
  const NodeNames names(graph);
  EXPECT_THAT(names.name(*a.node), testing::AllOf(testing::Ne("b"), testing::Ne("a")));
  EXPECT_EQ(names.name(*c.node), "b");
  const Placement placement = place(graph, names, parse_choices("a: on mosaic\nb: on cpp"));
  const auto device = [&](const LazyTensor& value) {
    return placement.devices[placement.device_of(*value.node)].name;
  };
  EXPECT_EQ(device(a), "mosaic");
  EXPECT_EQ(device(b), "cpp");
  EXPECT_EQ(device(c), "cpp");
}

// Nodes of LibTorch's backward and of an optimizer are in no module by themselves.
TEST(Placement, GivesNodesWithoutAModuleThatOfWhatTheyRead) {
  const LazyTensor x = composit::input("x", kSquare),
                   w = composit::input("decoder.weight", kSquare, InputKind::parameter);
  const LazyTensor hidden = relu("encoder", x), slope = relu("", hidden), both = slope + hidden,
                   update = w + slope;
  const Graph graph({.inputs = {x, w}, .outputs = {both, update}});
  const NodeNames names(graph);
  EXPECT_EQ(names.module(*slope.node), "encoder");
  EXPECT_EQ(names.module(*both.node), "encoder");
  EXPECT_EQ(names.module(*update.node), "decoder");
}

TEST(Placement, IsRefusedWhereALineNamesNothing) {
  const LazyTensor x = composit::input("x", kSquare), y = relu("encoder.layer.3", x);
  const Graph graph({.inputs = {x}, .outputs = {y}});
  EXPECT_THAT(user_error([&] { plan(graph, "*: on cpp\nencoder.layer.4: on mosaic"); }),
              Optional(HasSubstr("choices, line 2: expected a value or a module of the program, as "
                                 "in encoder.layer.3, encoder.layer, encoder")));
  EXPECT_THAT(user_error([&] { plan(graph, "decoder: on mosaic"); }),
              Optional(HasSubstr("received 'decoder'")));
  EXPECT_THAT(user_error([&] { plan(graph, "encoder.layer.2: on mosaic", true, true); }),
              Optional(HasSubstr("no choice says where")));
  EXPECT_EQ(user_error([&] { plan(graph, "*: on cpp\nencoder.layer.4: on mosaic", true, true); }),
            std::nullopt);
  // A line that a more special one leaves nothing to names something nonetheless.
  EXPECT_THAT(print(plan(graph, "encoder: on cpp\nencoder.layer: on mosaic")),
              HasSubstr("choices, line 1: other lines place all of 'encoder'\n"));
}

TEST(Partition, IsAsLargeAsStagesAllow) {
  const LazyTensor x = composit::input("x", kSquare);
  const LazyTensor a = relu("a", x), b = relu("b", x), c = a + b, d = relu("a", c),
                   e = relu("a", b);
  const Graph graph({.inputs = {x}, .outputs = {d, e}});
  // e waits for b, and goes with d.
  EXPECT_THAT(devices_of(plan(graph, "a: on cpp\n*: on mosaic")),
              ElementsAre("0 cpp 1", "0 mosaic 1", "1 cpp 1", "1 mosaic 1", "2 cpp 1"));
}

TEST(Partition, MakesViewsOfWeightsWhereTheyAreRead) {
  const LazyTensor x = composit::input("x", kSquare),
                   w = composit::input("w", kSquare, InputKind::parameter);
  const LazyTensor turned = composit::apply("aten::t", {w})[0], y = composit::matmul(x, turned),
                   z = composit::matmul(y, turned);
  const Graph graph({.inputs = {x, w}, .outputs = {z}});
  const Plan both = plan(graph, "matmul: on cpp\n*: on mosaic");
  EXPECT_THAT(devices_of(both), ElementsAre("0 cpp 1", "1 mosaic 1"));
  EXPECT_EQ(both.partition.parts[1].reads.size(), 2U);  // the product and the weight
  // So a line for the view decides nothing.
  const NodeNames names(graph);
  const Plan placed = plan(graph, names.name(*turned.node) + ": on reference\n*: on mosaic");
  EXPECT_THAT(devices_of(placed), ElementsAre("0 mosaic 2"));
  EXPECT_THAT(print(placed),
              HasSubstr("choices, line 1: each part that reads '" + names.name(*turned.node) +
                        "' makes it, as a view of an "
                        "input costs nothing\n"));
}

TEST(Schedule, CopiesAValueOnceForEachMemory) {
  const LazyTensor x = composit::input("x", kSquare),
                   w = composit::input("w", kSquare, InputKind::parameter);
  const LazyTensor a = relu("a", x), b = relu("b", a) + w, c = relu("c", a) + w, d = b + c;
  const Graph graph({.inputs = {x, w}, .outputs = {d}});
  const char* const choices =
      "device far: cpp, memory far\ndevice near: mosaic, memory far\n"
      "b: on far\nc: on near\n*: on reference\nadd: on far\nadd_2: on near\nadd_3: on reference";
  const Plan once = plan(graph, choices);
  EXPECT_EQ(once.schedule.copies.size(), 3U);  // a to far, b and c back
  EXPECT_EQ(once.schedule.kept.size(), 1U);
  EXPECT_EQ(plan(graph, choices, false).schedule.copies.size(), 4U);  // and w at each call
  EXPECT_TRUE(once.schedule.overlaps);
  EXPECT_THAT(print(once), AllOf(HasSubstr("3 copies of 768 bytes at each call"),
                                 HasSubstr("a float32[8, 8]: cpu to far\n"),
                                 HasSubstr("far to cpu, while a device computes"),
                                 HasSubstr("1 copy of 256 bytes of weights, once")));
}

TEST(Schedule, OfAChainOverlapsNothing) {
  const LazyTensor x = composit::input("x", kSquare), y = relu("b", relu("a", x));
  const Plan chain = plan(Graph({.inputs = {x}, .outputs = {y}}), "a: on cpp\nb: on mosaic");
  EXPECT_FALSE(chain.schedule.overlaps);
  EXPECT_EQ(print(chain),
            "device cpp: cpp\n"
            "device mosaic: mosaic\n"
            "\n"
            "part 0 on cpp, stage 0: 1 operation\n"
            "  reads 1 input\n"
            "  makes 1 value: a float32[8, 8]\n"
            "\n"
            "part 1 on mosaic, stage 1: 1 operation\n"
            "  reads 0 inputs, 1 value: a float32[8, 8]\n"
            "  makes 1 value: b float32[8, 8]\n"
            "\n"
            "1 value of 256 bytes passes from part to part\n"
            "0 copies of 0 bytes at each call\n");
}

}  // namespace
}  // namespace flashlight::devices
