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
  const Proposal proposal = propose(graph, names, devices, {});
  EXPECT_THAT(proposal.text, HasSubstr("encoder.layer.0: on mosaic   # reference "));
  EXPECT_THAT(proposal.text, HasSubstr("encoder.layer.1: on mosaic   # reference "));
  EXPECT_THAT(proposal.text, HasSubstr("*: on mosaic   # reference "));
  // The printed text is a placement.
  const Placement placement = place(graph, names, parse_choices(proposal.text));
  EXPECT_EQ(placement.devices.size(), 1U);
  EXPECT_EQ(placement.devices[0].name, "mosaic");
}

}  // namespace
}  // namespace flashlight::devices
