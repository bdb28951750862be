// Loops that programs repeat until a bool says otherwise become one loop; what comes out computes
// what the program does for numbers of trips that nobody showed, within those that were.
#include "composit/family/roll_loops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "composit/ad/chain_rule.h"
#include "composit/family/cases.h"
#include "composit/ir/print.h"
#include "composit/ir/verify.h"
#include "tests/family/host_run.h"
#include "tests/user_error.h"

namespace composit {
namespace {

using test::array_of;
using test::Floats;
using test::HostProgram;
using test::HostRun;
using test::run;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Graph family_of(const HostProgram& program, const std::vector<Floats>& examples) {
  std::vector<Graph> graphs;
  for (const Floats& x : examples) graphs.push_back(run(program, x));
  return graph_at(unify_cases(graphs), {});
}

void expect_right(const Graph& graph, const HostProgram& program, const Floats& x) {
  verify(graph);
  EXPECT_EQ(evaluate(graph, {array_of(x)}), evaluate(run(program, x), {array_of(x)}))
      << print(graph);
}

bool is_refused(const Graph& graph, const Floats& x) {
  return user_error([&] { evaluate(graph, {array_of(x)}); }).has_value();
}

// Halves until the sum is small.
const HostProgram kHalving = [](HostRun& run) {
  LazyTensor y = exp(run.x), last = y;
  while (run.is_positive(y - 1, "halving.cpp:3")) {
    last = y;
    y = y * 0.5;
  }
  return run.returns({y + 1, last * run.x});
};

TEST(RollLoops, TripsBetweenThoseThatWereShown) {
  const Graph graph = family_of(kHalving, {{1, 1, 1}, {3, 3, 3}});
  EXPECT_THAT(print(graph), HasSubstr("composit::while_loop"));
  size_t right = 0;
  for (float level = 0.8F; level < 3; level += 0.25F, ++right)
    expect_right(graph, kHalving, {level, level, level});
  EXPECT_GT(right, 5U);
}

TEST(RollLoops, FewerAndMoreAreRefused) {
  const Graph graph = family_of(kHalving, {{1.6F, 1.6F, 1.6F}, {3, 3, 3}});
  expect_right(graph, kHalving, {2, 2, 2});
  EXPECT_TRUE(is_refused(graph, {1, 1, 1}));
  EXPECT_TRUE(is_refused(graph, {-1, -1, -1}));
  EXPECT_TRUE(is_refused(graph, {5, 5, 5}));
}

TEST(RollLoops, NoTripIsABranch) {
  const Graph graph = family_of(kHalving, {{-1, -1, -1}, {1, 1, 1}, {3, 3, 3}});
  for (const float level : {-2.0F, -0.5F, 0.8F, 2.0F, 3.0F})
    expect_right(graph, kHalving, {level, level, level});
}

TEST(RollLoops, TheAnswerThatEndsTheLoopMayBeTrue) {
  const HostProgram until = [](HostRun& run) {
    LazyTensor y = run.x;
    do y = y * y + 0.1;
    while (!run.is_positive(y - 2, "until.cpp:3"));
    return run.returns({y});
  };
  const Graph graph = family_of(until, {{1.2F}, {1.0F}, {1.3F}});
  EXPECT_THAT(print(graph), HasSubstr("logical_not"));
  for (const float x : {1.0F, 1.1F, 1.15F, 1.25F}) expect_right(graph, until, {x});
}

// Newton's method, and a momentum that the last trip computes for nothing.
const HostProgram kDescent = [](HostRun& run) {
  LazyTensor y = run.x, speed = run.x * 0.1;
  while (run.is_positive(y - 0.5, "descent.cpp:3")) {
    y = y - speed;
    speed = speed * 1.25;
  }
  return run.returns({y});
};

TEST(RollLoops, ValuesThatTheLastTripNeedsNot) {
  const Graph graph = family_of(kDescent, {{1.0F}, {2.0F}, {8.0F}});
  for (const float x : {1.0F, 1.5F, 3.0F, 5.0F, 8.0F}) expect_right(graph, kDescent, {x});
}

TEST(RollLoops, DerivativesAreThoseOfTheTrips) {
  const HostProgram loss = [](HostRun& run) {
    LazyTensor y = run.x * 3;
    while (run.is_positive(y - 1, "loss.cpp:3")) y = y * 0.8 + sin(y) * 0.01;
    return run.returns({sum(y * run.x)});
  };
  const std::vector<Floats> shown = {{0.5F, 0.6F}, {0.9F, 1.2F}};
  std::vector<Graph> graphs;
  for (const Floats& x : shown) graphs.push_back(run(loss, x));
  ASSERT_EQ(loops_of(graphs).size(), 1U);
  const Graph graph = graph_at(unify_cases(graphs), {});
  for (const Floats& x : {Floats{0.5F, 0.6F}, Floats{0.7F, 0.7F}, Floats{0.9F, 1.0F}}) {
    const auto slope = [&](const Graph& of) {
      return evaluate(
                 Graph({.inputs = of.inputs(), .outputs = grad(of.outputs()[0], {of.inputs()[0]})}),
                 {array_of(x)})
          .at(0);
    };
    const Array received = slope(graph), expected = slope(run(loss, x));
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR(test::floats_of(received)[i], test::floats_of(expected)[i], 1e-5);
  }
}

// One number of trips says nothing of others; trips that differ are none of one loop.
TEST(RollLoops, WhatIsNoLoopStaysWhatItIs) {
  const std::vector<Graph> equal = {run(kHalving, {1, 1, 1}), run(kHalving, {1, 1.01F, 1})};
  EXPECT_TRUE(loops_of(equal).empty());
  const HostProgram counted = [](HostRun& run) {
    LazyTensor y = run.x;
    for (int i = 1; run.is_positive(y - 1, "counted.cpp:3"); ++i) y = y * (1.0 / (1 + i));
    return run.returns({y});
  };
  EXPECT_TRUE(loops_of({run(counted, {4}), run(counted, {100})}).empty());
}

TEST(RollLoops, AreNamed) {
  EXPECT_THAT(print(loops_of({run(kHalving, {1, 1, 1}), run(kHalving, {3, 3, 3})}).at(0)),
              "while at halving.cpp:3: shown from 2 to 5 trips");
}

// A loop behind a branch, two loops, and a branch in the loop's neighbourhood.
TEST(RollLoops, BesideBranches) {
  const HostProgram program = [](HostRun& run) {
    LazyTensor y = run.x;
    if (run.is_positive(y - 30, "beside.cpp:3")) y = y * 0.3;
    while (run.is_positive(y - 4, "beside.cpp:4")) y = y * 0.7;
    while (run.is_positive(y - 1, "beside.cpp:5")) y = y - 0.4;
    return run.returns({y});
  };
  std::vector<Floats> shown;
  for (const float x : {0.5F, 1.3F, 3.7F, 5.0F, 20.0F, 29.0F, 31.0F, 33.0F, 90.0F, 95.0F})
    shown.push_back({x});
  const Graph graph = family_of(program, shown);
  size_t right = 0;
  for (float x = 0.2F; x < 95; x *= 1.13F) {
    if (is_refused(graph, {x})) continue;
    ++right;
    expect_right(graph, program, {x});
  }
  EXPECT_GT(right, 20U);
}

}  // namespace
}  // namespace composit
