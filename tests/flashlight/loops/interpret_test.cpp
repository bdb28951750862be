// The interpreter of loop programs, against the evaluator of graphs; and stages, which change no
// result.
#include "flashlight/loops/interpret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "composit/eval/evaluate.h"
#include "composit/ops/functions.h"
#include "flashlight/loops/fuse.h"
#include "flashlight/loops/lower.h"
#include "flashlight/loops/program_text.h"
#include "flashlight/loops/recompute.h"
#include "flashlight/loops/signed_zero.h"
#include "flashlight/loops/tile.h"
#include "flashlight/loops/verify.h"
#include "tests/agreement.h"
#include "tests/held_graph.h"
#include "tests/passes/computable_graph.h"

namespace flashlight::loops {
namespace {

using composit::UserError;
using testing::HasSubstr;

// A program leaves out dimensions of size 1.
std::string differences(std::vector<Array> ours, const std::vector<Array>& expected, double times) {
  for (size_t i = 0; i < std::min(ours.size(), expected.size()); ++i)
    ours[i] = Array(expected[i].type(), ours[i].owner(), ours[i].data());
  return composit::test::differences(ours, expected, times);
}

TEST(Interpret, GivesWhatTheGraphGives) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const composit::Graph graph = composit::test::ComputableGraph(seed).make();
    const std::vector<Array> inputs = composit::test::random_inputs(graph, seed);
    const std::vector<Array> expected = composit::evaluate(graph, inputs);
    Program program = lower(graph);
    EXPECT_EQ(differences(interpret(program, inputs), expected, 16), "") << seed;
    program = drop_zero_terms(fuse(std::move(program)));
    EXPECT_EQ(differences(interpret(program, inputs), expected, 16), "") << seed << print(program);
  }
}

// ---- long axes ----------------------------------------------------------------------------------

using composit::LazyTensor;

LazyTensor held(const std::string& name, const composit::Dims& sizes, double scale = 1) {
  const Type type = composit::tensor_type(composit::DType::float64, sizes);
  std::vector<double> numbers(static_cast<size_t>(type.numel()));
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = scale * std::sin(1.7 * static_cast<double>(i) + static_cast<double>(name[0]));
  return composit::held_input(name, Array::copy_of(type, numbers.data()));
}

// Points in groups, each of which moves every point: what a round makes of all points is more than
// a cache holds.
TEST(Interpret, BlocksOfALongAxisGiveWhatTheWholeGives) {
  for (const int64_t points : {4999, 5000}) {
    const LazyTensor factors = held("f", {5, 16, 16}, 0.2), means = held("m", {5, 16}),
                     x = transpose(held("x", {points, 16}), 0, 1);
    const LazyTensor moved = bmm(factors, unsqueeze(x, 0) - unsqueeze(means, 2)),
                     distances = sum(moved * moved, {1});
    const composit::test::HeldGraph one =
        composit::test::held_graph({sum(log(sum(exp(distances * -0.5), {0})))});
    const Program whole = recompute(drop_zero_terms(fuse(lower(one.graph))));
    const Program tiled = tile(whole);
    ASSERT_GT(tiled.functions.size(), whole.functions.size());
    EXPECT_EQ(fault_of(tiled), std::nullopt);
    // Sums over all blocks add up in another order.
    EXPECT_EQ(differences(interpret(tiled, one.values), interpret(whole, one.values), 64), "");
    EXPECT_EQ(
        differences(interpret(tiled, one.values), composit::evaluate(one.graph, one.values), 64),
        "");
  }
}

// ---- wrong use ----------------------------------------------------------------------------------

TEST(Interpret, RefusesCallsOfTheRuntime) {
  const Program program = parse_program(R"(function "f" {inputs=[0], results=[1, 2]}
  %0: float64[8] = argument "x" {}
  %1: float64[8] = result "sorted" {}
  %2: int64[8] = result "indices" {}
  runtime "order::sort" %0 to %1 %2 (lines=[1, 8, 1], descending=false) {operation="aten::sort"}
end
)");
  const std::vector<double> numbers(8);
  const Type type = composit::tensor_type(composit::DType::float64, {8});
  try {
    interpret(program, {Array::copy_of(type, numbers.data())});
    FAIL() << "no error";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("[interpret] expected loops, received a call of order::sort"));
  }
}

}  // namespace
}  // namespace flashlight::loops
