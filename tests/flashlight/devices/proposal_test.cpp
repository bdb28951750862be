#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "composit/ir/transform.h"
#include "composit/ops/functions.h"
#include "flashlight/devices/cost.h"
#include "tests/user_error.h"

namespace flashlight::devices {
namespace {

using composit::DType;
using composit::Graph;
using composit::LazyTensor;
using composit::tensor_type;
using testing::HasSubstr;
using testing::Optional;

LazyTensor scoped(const std::string& module, const LazyTensor& value) {
  composit::NodeSpec spec = composit::copy_of(*value.node, value.node->operands());
  spec.annotate("scope", module);
  return std::move(spec).make();
}

// The interpreter is slower by orders of magnitude, so no state of the machine changes this.
TEST(Proposal, TakesTheFasterDeviceAndSaysWhy) {
  const composit::Type square = tensor_type(DType::float32, {256, 256});
  const LazyTensor x = composit::input("x", square);
  const LazyTensor a = scoped("encoder.layer.0.dense", composit::matmul(x, x)),
                   b = scoped("encoder.layer.1.dense", composit::matmul(a, x)), c = -b;
  const Graph graph({.inputs = {x}, .outputs = {c}});
  const NodeNames names(graph);
  const Choices choices = parse_choices("");
  const std::vector<DeviceChoice> devices = {device_named("reference", choices, ""),
                                             device_named("mosaic", choices, "")};
  const Proposal proposal = propose(graph, names, devices, costs_of(devices, {}));
  EXPECT_THAT(proposal.text, HasSubstr("encoder.layer.0: on mosaic   # reference "));
  EXPECT_THAT(proposal.text, HasSubstr("encoder.layer.1: on mosaic   # reference "));
  EXPECT_THAT(proposal.text, HasSubstr("*: on mosaic   # no operation is outside"));
  // What the user's lines cover is theirs.
  const std::vector<Line> given = parse_choices("encoder.layer: on reference").lines;
  const Proposal others = propose(graph, names, devices, costs_of(devices, {}), {}, given);
  ASSERT_EQ(others.lines.size(), 1U);
  EXPECT_EQ(others.lines[0].what, "*");
  const std::vector<Line> all = parse_choices("*: on reference").lines;
  EXPECT_EQ(propose(graph, names, devices, costs_of(devices, {}), {}, all).text, "");
  // The printed text is a placement.
  const Placement placement = place(graph, names, parse_choices(proposal.text));
  EXPECT_EQ(placement.devices.size(), 1U);
  EXPECT_EQ(placement.devices[0].name, "mosaic");
}

// The reference draws from a generator of its own, which would leave the program's sequence.
TEST(Proposal, GivesDrawsToDevicesThatGoOnWithThem) {
  const LazyTensor x = composit::input("x", tensor_type(DType::float32, {256, 256}));
  composit::NodeSpec spec("aten::rand_like");
  spec.tensor(x).run("effect", int64_t{0}).output(x.type());
  const LazyTensor noise = scoped("noise", std::move(spec).make());
  const Graph graph({.inputs = {x}, .outputs = {x + noise}, .effects = {noise.node}});
  const Choices choices = parse_choices("");
  const std::vector<DeviceChoice> devices = {device_named("reference", choices, ""),
                                             device_named("cpp", choices, "")};
  const Costs costs = {.speeds = {{.bytes = 1e12}, {.bytes = 1e9, .call = 1}}};
  EXPECT_THAT(propose(graph, NodeNames(graph), devices, costs).text,
              HasSubstr("noise: on cpp   # reference has no code, cpp 1.311 ms"));
  EXPECT_THAT(user_error([&] { propose(graph, NodeNames(graph), {devices[0]}, {.speeds = {{}}}); }),
              Optional(HasSubstr("expected a device that has code for aten::rand_like")));
}

// ---- given times --------------------------------------------------------------------------------

// exp(x) of "first", and a product of "second". A product of 256 x 256 is 1.2 ms on the device
// "near"; on "far" 1 ms, and there is no exp.
struct Given {
  explicit Given(const std::string& memory) {
    const composit::Type square = tensor_type(DType::float32, {256, 256});
    const LazyTensor x = composit::input("x", square),
                     w = composit::input("w", square, composit::InputKind::parameter),
                     a = scoped("first", composit::exp(x)),
                     b = scoped("second", composit::matmul(a, w));
    graph = Graph({.inputs = {x, w}, .outputs = {b}});
    const Choices choices =
        parse_choices("device near: cpp\ndevice far: cpp, memory " + memory + "\n");
    for (const char* name : {"near", "far"}) devices.push_back(device_named(name, choices, ""));
    constexpr double kOperations = 2.0 * 256 * 256 * 256;
    costs.speeds = {{.products = kOperations / 1.2e-3, .bytes = 1e9},
                    {.products = kOperations / 1e-3, .bytes = 0}};
  }
  Proposal proposal() const { return propose(graph, NodeNames(graph), devices, costs); }

  Graph graph;
  std::vector<DeviceChoice> devices;
  Costs costs;
};

constexpr double kSquareBytes = 4 * 256 * 256;

// exp reads and writes 256 KiB each. The product's operand and its result would be copied.
TEST(Proposal, StaysOnASlowerDeviceForACopy) {
  Given given("elsewhere");
  given.costs.copied_bytes = kSquareBytes / .55e-3;
  const Proposal stays = given.proposal();
  ASSERT_EQ(stays.lines.size(), 3U);
  EXPECT_EQ(stays.lines[1].device, "near");
  EXPECT_THAT(stays.text, HasSubstr("first: on near   # near 0.524 ms, far has no code\n"));
  EXPECT_THAT(stays.text, HasSubstr("second: on near   # near 1.200 ms, far 1.000 ms; 0.200 ms "
                                    "slower, but far has 1.100 ms more of copies\n"));
  // Twice .09 ms is less than the difference.
  given.costs.copied_bytes = kSquareBytes / .09e-3;
  EXPECT_THAT(given.proposal().text, HasSubstr("second: on far   # near 1.200 ms, far 1.000 ms\n"));
  given.costs.copied_bytes = kSquareBytes / .11e-3;
  EXPECT_THAT(given.proposal().text, HasSubstr("but far has 0.220 ms more of copies\n"));
}

TEST(Proposal, StaysOnASlowerDeviceForACall) {
  Given given(kCallersMemory);
  EXPECT_THAT(given.proposal().text, HasSubstr("second: on far   # near 1.200 ms, far 1.000 ms\n"));
  given.costs.speeds[1].call = .3e-3;
  EXPECT_THAT(given.proposal().text, HasSubstr("second: on near   # near 1.200 ms, far 1.000 ms; "
                                               "0.200 ms slower, but far has 0.300 ms more of "
                                               "calls\n"));
  given.costs.speeds[1].call = .1e-3;
  EXPECT_THAT(given.proposal().text, HasSubstr("second: on far"));
}

// A value that is read several times is copied once, and weights never are.
TEST(Proposal, CountsACopyOnce) {
  Given given("elsewhere");
  const LazyTensor a = given.graph.outputs()[0].node->operands()[0], w = given.graph.inputs()[1],
                   b = scoped("second", composit::matmul(a, w)),
                   c = scoped("second", composit::matmul(b, a));
  given.graph = Graph({.inputs = given.graph.inputs(), .outputs = {c}});
  given.costs.copied_bytes = kSquareBytes / .3e-3;
  EXPECT_THAT(given.proposal().text,
              HasSubstr("second: on near   # near 2.400 ms, far 2.000 ms; 0.400 ms slower, but far "
                        "has 0.600 ms more of copies\n"));
}

TEST(Proposal, MeasuresCopiesOnce) {
  const double rate = copied_bytes();
  EXPECT_GT(rate, 1e7);
  EXPECT_LT(rate, 1e13);
  EXPECT_EQ(copied_bytes(), rate);
}

}  // namespace
}  // namespace flashlight::devices
