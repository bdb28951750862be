// Loops with the same trips become one.
#include "composit/passes/share_loops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "composit/ad/chain_rule.h"
#include "composit/eval/evaluate.h"
#include "composit/ir/parse.h"
#include "composit/ir/print.h"
#include "composit/ir/transform.h"
#include "composit/ir/verify.h"
#include "composit/ops/control_flow.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"
#include "composit/passes/pass.h"

namespace composit {
namespace {

using testing::HasSubstr;
using Numbers = std::vector<double>;

size_t count(const Graph& graph, const std::string& op) {
  return static_cast<size_t>(
      std::count_if(graph.nodes().begin(), graph.nodes().end(),
                    [&](const NodePtr& node) { return node->op().str() == op; }));
}

// `graph` has inputs of float64; it is shared, read back from text (where no two regions have a
// node in common) and shared again, and gives what it gave.
Graph shared(const Graph& graph) {
  const Graph now = run_passes(graph, find_passes("share_loops"));
  EXPECT_EQ(share_loops(parse(print(graph))), now);
  std::vector<Array> inputs;
  for (const LazyTensor& input : graph.inputs()) {
    Numbers values(static_cast<size_t>(input.type().numel()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = 1.5 + 0.25 * static_cast<double>(i);
    inputs.push_back(array_of(input.type(), values));
  }
  EXPECT_EQ(evaluate(now, inputs), evaluate(graph, inputs));
  return now;
}

TEST(ShareLoops, the_value_of_a_loop_and_what_its_derivative_keeps) {
  const LazyTensor x = input("x", tensor_type(DType::float64, {}));
  const LazyTensor xs = input("xs", tensor_type(DType::float64, {4}));
  const ScanBody body = [](const LazyTensors& h, const LazyTensors& in) {
    const LazyTensor next = tanh(h[0] * in[0]);
    return ScanStep{{next}, {next * next}};
  };
  const ScanStep step = scan(body, {x}, {xs});
  const LazyTensor loss = step.carried[0] + sum(step.outputs[0]);
  const auto gradients = grad(loss, {x, xs});
  const Graph graph({.inputs = {x, xs}, .outputs = {loss, gradients[0], gradients[1]}});
  EXPECT_EQ(count(graph, "composit::scan"), 3);
  EXPECT_EQ(count(shared(graph), "composit::scan"), 2);
}

TEST(ShareLoops, that_end_by_a_condition) {
  const LazyTensor x = input("x", tensor_type(DType::float64, {}));
  const LazyTensor y = while_loop([](const LazyTensors& v) { return v[0] < 100; },
                                  [](const LazyTensors& v) { return LazyTensors{v[0] * v[0]}; },
                                  {x}, {.limit = 20})[0];
  const Graph graph({.inputs = {x}, .outputs = {y, grad(y, {x})[0]}});
  EXPECT_EQ(count(graph, "composit::while_loop"), 2);
  EXPECT_EQ(count(shared(graph), "composit::while_loop"), 1);
}

TEST(ShareLoops, leaves_out_what_nobody_uses) {
  const LazyTensor xs = input("xs", tensor_type(DType::float64, {4}));
  const LazyTensors both = map(
      [](const LazyTensors& x) {
        return LazyTensors{exp(x[0]), x[0] + 1};
      },
      {xs});
  const Graph now = shared(Graph({.inputs = {xs}, .outputs = {both[1]}}));
  const Node& loop = *now.outputs()[0].node;
  EXPECT_EQ(loop.outputs().size(), 1);
  EXPECT_EQ(loop.attribute("body").as<Region>()->size(), 3);  // x, 1, x + 1
}

TEST(ShareLoops, not_those_that_differ) {
  const LazyTensor xs = input("xs", tensor_type(DType::float64, {4}));
  const LazyTensor zero = input("zero", tensor_type(DType::float64, {}));
  const auto sums = [&](double factor, bool reverse) {
    return scan(
               [&](const LazyTensors& h, const LazyTensors& x) {
                 return ScanStep{{h[0] * factor + x[0]}, {h[0]}};
               },
               {zero}, {xs}, {.reverse = reverse})
        .outputs[0];
  };
  const Graph graph(
      {.inputs = {xs, zero}, .outputs = {sums(1, false), sums(2, false), sums(1, true)}});
  EXPECT_EQ(count(shared(graph), "composit::scan"), 3);
}

TEST(ShareLoops, within_loops) {
  const LazyTensor xs = input("xs", tensor_type(DType::float64, {3, 4}));
  const LazyTensor y = map(
      [](const LazyTensors& x) {
        const auto one = [](const LazyTensors& v) { return LazyTensors{exp(v[0])}; };
        const auto other = [](const LazyTensors& v) { return LazyTensors{log(v[0])}; };
        return LazyTensors{map(one, x)[0] + map(other, x)[0]};
      },
      {xs})[0];
  const Graph now = shared(Graph({.inputs = {xs}, .outputs = {y}}));
  EXPECT_EQ(count(*now.outputs()[0].node->attribute("body").as<Region>(), "composit::map"), 1);
}

TEST(ShareLoops, keeps_the_number_of_trips) {
  const LazyTensor x = input("x", tensor_type(DType::float64, {}));
  const LazyTensor y = while_loop([](const LazyTensors& v) { return v[0] < 100; },
                                  [](const LazyTensors& v) { return LazyTensors{v[0] * v[0]}; },
                                  {x}, {.limit = 20})[0];
  const Graph graph({.inputs = {x}, .outputs = {grad(y, {x})[0]}});
  const auto& nodes = graph.nodes();
  const auto loop = std::find_if(nodes.begin(), nodes.end(), [](const NodePtr& node) {
    return node->op().str() == "composit::while_loop";
  });
  ASSERT_EQ((*loop)->outputs().size(), 3);  // the value, those at the start of each trip, trips
  const Graph now = shared(Graph({.inputs = {x}, .outputs = {LazyTensor{*loop, 2}}}));
  EXPECT_EQ(now.outputs()[0].node->outputs().size(), 2);
}

// Each pass is checked for regions that no longer fit their node.
TEST(Passes, may_not_change_what_a_region_gives) {
  const LazyTensor xs = input("xs", tensor_type(DType::float64, {4}));
  const LazyTensor y = map([](const LazyTensors& x) { return LazyTensors{exp(x[0])}; }, {xs})[0];
  const Pass broken = {.name = "broken", .help = "for tests", .run = [](const Graph& graph) {
                         return rebuild_regions(graph, [](const Graph& region) {
                           Graph::Parts parts = region.parts();
                           parts.outputs[0] = to(parts.outputs[0], DType::float32);
                           return Graph(std::move(parts));
                         });
                       }};
  try {
    run_passes(Graph({.inputs = {xs}, .outputs = {y}}), {broken});
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("results of 'composit::map' are not what its regions give"));
  }
}

}  // namespace
}  // namespace composit
