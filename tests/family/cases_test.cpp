// Programs that take other ways at some sizes: conditions are found, with the examples that it
// takes, and are right at sizes that nobody showed; or refused.
#include "composit/family/cases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "composit/family/bind.h"
#include "composit/ir/error.h"
#include "composit/ir/lexer.h"
#include "composit/ops/functions.h"
#include "tests/family/programs.h"
#include "tests/user_error.h"

namespace composit {
namespace {

using test::call;
using test::captured;
using test::ints;
using test::kExamples;
using test::of_values;
using test::Program;
using test::Sizes;
using testing::ElementsAre;
using testing::HasSubstr;

// With the examples that are asked for.
Cases cases_of(const Program& program, const std::vector<Sizes>& examples = kExamples) {
  constexpr size_t kMost = 40;
  std::vector<Graph> graphs;
  for (const Sizes& sizes : examples) graphs.push_back(captured(program, sizes));
  for (;;) {
    try {
      return unify_cases(graphs, {.names = {"batch", "tokens"}});
    } catch (const ExampleWanted& wanted) {
      if (graphs.size() == kMost) throw;
      graphs.push_back(captured(program, of_values(wanted.sizes)));
    }
  }
}

// All sizes within the hull are right, or refused. Returns the share that is right.
double expect_right_or_refused(const Program& program, const Cases& cases) {
  SCOPED_TRACE(testing::PrintToString(fork_lines(cases)) + " within " +
               testing::PrintToString(sizes_text(cases.cases[0])));
  double right = 0, all = 0;
  for (const SizeValues& sizes : grid_of(hull_of(cases))) {
    ++all;
    std::optional<Graph> bound;
    try {
      bound = graph_at(cases, sizes);
    } catch (const UserError&) {
      continue;
    }
    ++right;
    EXPECT_EQ(print(*bound), print(captured(program, of_values(sizes)))) << text_of(sizes);
  }
  return right / all;
}

LazyTensor padded_to(const LazyTensor& x, int64_t size, int64_t multiple) {
  const int64_t rest = size % multiple;
  if (rest == 0) return x;
  return call("aten::pad", {x, ints({0, 0, 0, multiple - rest}), "constant", ArgumentValue()});
}

TEST(Cases, PaddingToAMultiple) {
  const Program program = [](const LazyTensor& x, int64_t, int64_t tokens) {
    return call("aten::relu", {padded_to(x, tokens, 8)});
  };
  const Cases cases = cases_of(program, {{2, 16}, {3, 30}, {5, 12}});
  ASSERT_EQ(cases.cases.size(), 2U);
  EXPECT_THAT(fork_lines(cases),
              ElementsAre(HasSubstr("mod(size(%x, 1), 8) == 0: case 1, otherwise case 2, from ")));
  EXPECT_GT(expect_right_or_refused(program, cases), 0.5);
  EXPECT_THAT(print(cases), HasSubstr("case 2\ngraph("));
}

TEST(Cases, ANumberOfItsOwn) {
  const Program program = [](const LazyTensor& x, int64_t batch, int64_t) {
    return call(batch == 1 ? "aten::tanh" : "aten::relu", {x});
  };
  const Cases cases = cases_of(program, {{2, 16}, {3, 23}, {5, 12}, {1, 14}});
  EXPECT_THAT(fork_lines(cases),
              ElementsAre(HasSubstr("size(%x, 0) == 1: case 1, otherwise case 2")));
  EXPECT_GT(expect_right_or_refused(program, cases), 0.5);
}

TEST(Cases, LimitsAreFoundExactly) {
  for (const int64_t limit : {14, 15, 17, 20}) {
    const Program program = [limit](const LazyTensor& x, int64_t, int64_t tokens) {
      return call(tokens <= limit ? "aten::tanh" : "aten::relu", {x});
    };
    const Cases cases = cases_of(program);
    EXPECT_THAT(fork_lines(cases).at(0), HasSubstr("size(%x, 1) <= " + std::to_string(limit)));
    expect_right_or_refused(program, cases);
  }
}

TEST(Cases, TwoSizes) {
  const Program program = [](const LazyTensor& x, int64_t batch, int64_t tokens) {
    return call(batch <= tokens ? "aten::tanh" : "aten::relu", {x});
  };
  const Cases cases = cases_of(program, {{2, 16}, {7, 3}, {5, 12}, {9, 4}});
  EXPECT_THAT(fork_lines(cases).at(0), HasSubstr("size(%x, 0) <= size(%x, 1)"));
  EXPECT_GT(expect_right_or_refused(program, cases), 0.3);
}

TEST(Cases, AConditionOnAValueBeforeThePlace) {
  // A quarter of the tokens, rounded down: nothing simple over the input's sizes says it.
  const Program program = [](const LazyTensor& x, int64_t, int64_t tokens) {
    const LazyTensor rows = call("aten::transpose.int", {x, 1, 2});
    const LazyTensor pooled =
        call("aten::avg_pool1d", {rows, ints({4}), ints({4}), ints({0}), false, true});
    return padded_to(call("aten::transpose.int", {pooled, 1, 2}), tokens / 4, 3);
  };
  const Cases cases = cases_of(program, {{2, 16}, {3, 50}, {5, 24}});
  EXPECT_THAT(fork_lines(cases).at(0), HasSubstr("mod(size(%"));
  EXPECT_THAT(fork_lines(cases).at(0), HasSubstr(", 3) == 0"));
  EXPECT_GT(expect_right_or_refused(program, cases), 0.5);
}

TEST(Cases, CasesWithinCases) {
  const Program program = [](const LazyTensor& x, int64_t batch, int64_t tokens) {
    const LazyTensor y = call(tokens % 2 == 0 ? "aten::tanh" : "aten::relu", {x});
    return tokens % 2 == 0 && batch <= 3 ? call("aten::neg", {y}) : y;
  };
  const Cases cases = cases_of(program);
  EXPECT_EQ(cases.cases.size(), 3U);
  EXPECT_EQ(cases.forks.size(), 2U);
  EXPECT_GT(expect_right_or_refused(program, cases), 0.5);
}

// Random conditions: whatever is found is right wherever it is not refused.
TEST(Cases, RandomConditions) {
  std::mt19937 random(20261126);
  const auto number = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  size_t found = 0;
  for (int run = 0; run < 60; ++run) {
    const int64_t form = number(0, 4), k = number(2, 9), limit = number(3, 22);
    const auto is_first = [=](int64_t batch, int64_t tokens) {
      return form == 0   ? tokens % k == 0
             : form == 1 ? tokens <= limit
             : form == 2 ? batch == k
             : form == 3 ? batch * 4 <= tokens
                         : tokens % k == 1;
    };
    const Program program = [=](const LazyTensor& x, int64_t batch, int64_t tokens) {
      const LazyTensor y = call("aten::view", {x, ints({batch * tokens, 8})});
      return call(is_first(batch, tokens) ? "aten::tanh" : "aten::relu", {y});
    };
    SCOPED_TRACE("form " + std::to_string(form) + ", k " + std::to_string(k) + ", limit " +
                 std::to_string(limit));
    std::vector<Sizes> examples;
    size_t firsts = 0;  // of a way that no example goes nobody knows
    while (examples.size() < 6 || firsts == 0 || firsts == examples.size()) {
      examples.push_back({number(2, 9), number(3, 30)});
      firsts += is_first(examples.back().batch, examples.back().tokens) ? 1 : 0;
    }
    try {
      expect_right_or_refused(program, cases_of(program, examples));
      ++found;
    } catch (const UserError&) {  // refused
    }
  }
  EXPECT_GT(found, 50U);
}

TEST(Cases, ABranchOnSomethingElseIsRefused) {
  const Program program = [](const LazyTensor& x, int64_t batch, int64_t tokens) {
    return call((7 * batch + tokens * tokens) % 11 < 5 ? "aten::tanh" : "aten::relu", {x});
  };
  const std::vector<Sizes> examples = {{2, 16}, {3, 23}, {5, 12}, {4, 14}, {2, 23}, {3, 16}};
  const auto error = user_error([&] { cases_of(program, examples); });
  EXPECT_THAT(error.value_or(""), HasSubstr("part at %"));
}

TEST(Cases, AnotherStructureAtEachSizeIsRefusedByTheFirstNode) {
  const Program program = [](const LazyTensor& x, int64_t, int64_t tokens) {
    LazyTensor y = x;
    for (int64_t i = 0; i < tokens; ++i) y = tanh(y * (1.0 / static_cast<double>(i + 1)));
    return y;
  };
  const auto error = user_error([&] { cases_of(program); });
  EXPECT_THAT(error.value_or(""), HasSubstr("examples 1 and 2 differ in structure"));
}

TEST(Cases, ConditionsArePrintedAndRead) {
  const LazyTensor x = input("x", tensor_type(DType::float32, {2, 3}));
  const Graph graph({.inputs = {x}, .outputs = {x}});
  for (const char* text : {"mod(size(%x, 1), 8) == 0", "size(%x, 0) <= size(%x, 1)"}) {
    Lexer lexer(text, "condition", 1);
    const SizeCondition condition =
        read_condition(lexer, [&](std::string_view) { return LazyTensor(x); });
    EXPECT_EQ(print(condition, Names(graph)), text);
  }
}

}  // namespace
}  // namespace composit
