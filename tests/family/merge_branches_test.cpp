// Captures that took other ways at answers about values become one graph. Programs are run on
// values here, as a tracer would; the merged graph is compared with such runs on values nobody
// showed.
#include "composit/family/merge_branches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "composit/ad/chain_rule.h"
#include "composit/eval/evaluate.h"
#include "composit/ir/error.h"
#include "composit/ir/print.h"
#include "composit/ir/verify.h"
#include "composit/ops/functions.h"
#include "tests/family/host_run.h"
#include "tests/user_error.h"

namespace composit {
namespace {

using test::array_of;
using test::Floats;
using test::HostProgram;
using test::HostRun;
using test::run;
using testing::HasSubstr;
using testing::Not;

template <class Action>
std::string error_of(Action action) {
  return user_error(action).value_or("no error");
}

// The graph, which is legal, computes what the program does on `x`.
void expect_as_program(const Graph& graph, const HostProgram& program, const Floats& x) {
  verify(graph);
  const auto expected = evaluate(run(program, x), {array_of(x)});
  std::vector<Array> received = evaluate(graph, {array_of(x)});
  // What only some ways write is written back unchanged by the others.
  if (received.size() == expected.size() + 1) {
    EXPECT_EQ(received.back(), array_of(x));
    received.pop_back();
  }
  EXPECT_EQ(received, expected) << print(graph);
}

const Floats kPositive = {1, 2, -0.5}, kNegative = {-1, -2, 0.5};

TEST(MergeBranches, TwoArms) {
  const HostProgram program = [](HostRun& run) {
    const LazyTensor y = exp(run.x);
    const LazyTensor z = run.is_positive(run.x) ? y * 2 : y + run.x;
    return run.returns({tanh(z)});
  };
  const Graph both = merge_branches({run(program, kPositive), run(program, kNegative)});
  for (const Floats& x : {kPositive, kNegative, Floats{3, -4, 0.5}, Floats{3, -4, 1.5}})
    expect_as_program(both, program, x);
  EXPECT_THAT(print(both), HasSubstr("composit::cond"));
  EXPECT_THAT(print(both), Not(HasSubstr("_local_scalar_dense")));
  // What is equal behind the branch is there once.
  const std::string text = print(both);
  EXPECT_EQ(text.find("aten::tanh"), text.rfind("aten::tanh"));
}

TEST(MergeBranches, ArmsOfAnyOrderAreOneGraph) {
  const HostProgram program = [](HostRun& run) {
    return run.returns({run.is_positive(run.x) ? run.x * 2 : run.x + 1});
  };
  const Graph a = run(program, kPositive), b = run(program, kNegative);
  EXPECT_EQ(merge_branches({a, b}), merge_branches({b, a}));
  EXPECT_EQ(merge_branches({a, a}), a);
}

TEST(MergeBranches, AnEarlyReturnAndAnArmThatDoesNothing) {
  const HostProgram program = [](HostRun& run) {
    if (run.is_positive(run.x)) return run.returns({run.x});
    LazyTensor y = run.x * run.x;
    if (run.is_positive(y - 6)) y = y * 0.5;
    return run.returns({y + 1});
  };
  const Graph all =
      merge_branches({run(program, kPositive), run(program, kNegative), run(program, {-1, -3, 1})});
  for (const Floats& x : {kPositive, kNegative, Floats{-1, -3, 1}, Floats{-2, -2, -2}})
    expect_as_program(all, program, x);
}

TEST(MergeBranches, WhatAnArmWritesIsWrittenBehind) {
  const HostProgram program = [](HostRun& run) {
    LazyTensor y = run.x * 3;
    if (run.is_positive(run.x)) run.write(y = y + 1);
    return run.returns({y});
  };
  const Graph both = merge_branches({run(program, kPositive), run(program, kNegative)});
  for (const Floats& x : {kPositive, kNegative}) expect_as_program(both, program, x);
}

TEST(MergeBranches, AnAnswerNobodyShowedKeepsItsGuard) {
  const HostProgram program = [](HostRun& run) {
    LazyTensor y = run.x;
    if (run.is_positive(run.x)) {
      y = y * 2;
      if (run.is_positive(y - 3)) y = y + 1;
      if (run.read<float>(sum(y)) == 8.0F) y = y + 2;
    }
    return run.returns({y});
  };
  const Graph both = merge_branches({run(program, kPositive), run(program, kNegative)});
  for (const Floats& x : {kPositive, kNegative, Floats{-3, -3, -3}})
    expect_as_program(both, program, x);
  EXPECT_THAT(error_of([&] { evaluate(both, {array_of({1, 1, 1})}); }), HasSubstr("guard"));
  EXPECT_THAT(error_of([&] { evaluate(both, {array_of({0.5, 0, 0})}); }), HasSubstr("guard"));
}

TEST(MergeBranches, Derivatives) {
  const HostProgram program = [](HostRun& run) {
    LazyTensor y = sin(run.x);
    y = run.is_positive(run.x) ? y * run.x : exp(y);
    return run.returns({sum(y)});
  };
  const Graph both = merge_branches({run(program, kPositive), run(program, kNegative)});
  for (const Floats& x : {kPositive, kNegative}) {
    const Graph one = run(program, x);
    const auto slope = [&](const Graph& graph) {
      const LazyTensors by_x = grad(graph.outputs()[0], {graph.inputs()[0]});
      return evaluate(Graph({.inputs = graph.inputs(), .outputs = by_x}), {array_of(x)});
    };
    EXPECT_EQ(slope(both), slope(one));
  }
}

TEST(MergeBranches, Refused) {
  const HostProgram by_number = [](HostRun& run) {
    const float total = run.read<float>(sum(run.x));
    return run.returns({total > 0 ? run.x * 2 : run.x});
  };
  EXPECT_THAT(error_of([&] {
                merge_branches({run(by_number, kPositive), run(by_number, kNegative)});
              }),
              HasSubstr("write a comparison of a number with operators"));
  const HostProgram other_sizes = [](HostRun& run) {
    return run.returns({run.is_positive(run.x) ? run.x : sum(run.x)});
  };
  EXPECT_THAT(error_of([&] {
                merge_branches({run(other_sizes, kPositive), run(other_sizes, kNegative)});
              }),
              HasSubstr("float32[3] in one of them and float32[] in the other"));
  int calls = 0;
  const HostProgram hidden = [&](HostRun& run) {
    run.is_positive(run.x);
    return run.returns({++calls % 2 == 0 ? run.x : run.x + 1});
  };
  EXPECT_THAT(error_of([&] {
                merge_branches({run(hidden, kPositive), run(hidden, kPositive)});
              }),
              HasSubstr("what decides is nothing that the program reads"));
}

// ---- random programs ----------------------------------------------------------------------------

// A program of assignments to three variables, and of branches.
class RandomProgram {
 public:
  explicit RandomProgram(uint64_t seed) : seed_(seed) {}

  Graph operator()(HostRun& run) const {
    std::mt19937_64 random(seed_);
    LazyTensors variables = {run.x, run.x * 0.5, sin(run.x)};
    block(run, variables, random, 3, 5);
    return run.returns({variables[0], variables[1]});
  }

 private:
  using Random = std::mt19937_64;
  static void block(HostRun& run, LazyTensors& variables, Random& random, int depth,
                    int statements) {
    for (int i = 0; i < statements; ++i) {
      const auto kind = random() % 4;
      if (kind == 0 && depth > 0) {
        const LazyTensor asked = variables[random() % 3];
        Random then_random(random()), else_random(random());  // the same, whatever the answer is
        const int length = static_cast<int>(random() % 3);
        if (run.is_positive(asked))
          block(run, variables, then_random, depth - 1, length);
        else
          block(run, variables, else_random, depth - 1, length);
      } else {
        const LazyTensor a = variables[random() % 3], b = variables[random() % 3];
        const auto which = random() % 3;
        variables[random() % 3] = which == 0 ? a - b * 0.25 : which == 1 ? tanh(a) : a * b;
        if (random() % 16 == 0) run.write(variables[random() % 3]);
      }
    }
  }
  uint64_t seed_;
};

TEST(MergeBranches, RandomPrograms) {
  size_t right = 0, refused = 0, branches = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE("RandomProgram(" + std::to_string(seed) + ")");
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal;
    const auto any = [&] { return Floats{normal(random), normal(random), normal(random)}; };
    const HostProgram program = RandomProgram(seed);
    std::vector<Graph> ways;
    for (int i = 0; i < 6; ++i) ways.push_back(run(program, any()));
    const Graph merged = merge_branches(ways);
    branches += print(merged).find("composit::cond") != std::string::npos ? 1 : 0;
    for (int i = 0; i < 8; ++i) {
      const Floats x = any();
      try {
        expect_as_program(merged, program, x);
        ++right;
      } catch (const UserError& error) {
        EXPECT_THAT(error.what(), HasSubstr("guard"));
        ++refused;
      }
      if (testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GT(branches, 60U);
  EXPECT_GT(right, 3 * refused);
}

}  // namespace
}  // namespace composit
