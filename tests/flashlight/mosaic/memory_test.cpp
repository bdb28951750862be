// The memory of a plan's values: apart while they live, and in place where that is allowed.
#include <gtest/gtest.h>

#include <set>

#include "composit/ops/functions.h"
#include "flashlight/mosaic/buffers.h"
#include "tests/flashlight/mosaic/layers.h"

namespace flashlight::mosaic {
namespace {

using namespace composit;  // NOLINT
using test::Case;
using test::case_of;
using test::differences;
using test::given;
using test::linear;
using test::weight;

// Layers with residuals and norms, in which nearly everything can be written in place.
LazyTensor chain() {
  LazyTensor x = linear(given("x", {64, 96}), "w", 96);
  for (int i = 0; i < 6; ++i) {
    const std::string name(1, static_cast<char>('a' + i));
    const LazyTensor y = linear(x, name, 96);
    x = i % 2 == 0 ? relu(y) : relu(y) + x;
    if (i == 3) x = softmax(x, 1);
  }
  return softmax(x, 0);
}
Plan plan_of_one(const LazyTensor& y) { return plan_of(case_of("", {y}).graph); }

TEST(MosaicMemory, is_used_again) {
  const Plan plan = plan_of_one(chain());
  EXPECT_LT(plan.arena_bytes, plan.sum_bytes / 2);
  EXPECT_GE(plan.arena_bytes, plan.least_bytes);
  EXPECT_LE(static_cast<double>(plan.arena_bytes), 1.02 * static_cast<double>(plan.least_bytes));
}

// As steps touch them: a value may take the place of one that its own kernel reads last.
TEST(MosaicMemory, values_that_live_at_the_same_time_do_not_overlap) {
  const Plan plan = plan_of_one(chain());
  const size_t values = plan.routine.values.size();
  Table<ValueId, size_t> first(values, plan.run.size()), last(values, 0);
  for (size_t kernel = 0; kernel < plan.run.size(); ++kernel)
    for (const StepId step : plan.run[kernel].steps)
      for (const auto& list :
           {loops::reads(plan.routine.steps[step]), loops::writes(plan.routine.steps[step])})
        for (const ValueId value : list) {
          first[value] = std::min(first[value], kernel);
          last[value] = std::max(last[value], kernel);
        }
  size_t met = 0;
  for (const ValueId a : plan.routine.values.ids())
    for (const ValueId b : plan.routine.values.ids()) {
      if (a == b || plan.homes[a] != Home::arena || plan.homes[b] != Home::arena) continue;
      if (first[a] > first[b] || last[a] < first[b]) continue;
      ++met;
      const bool in_place = plan.in_place.contains(b) && plan.in_place.at(b) == a;
      if (in_place) {
        EXPECT_EQ(last[a], first[b]);
        EXPECT_EQ(plan.offsets[a], plan.offsets[b]);
        continue;
      }
      const int64_t a_end = plan.offsets[a] + plan.routine.values[a].type.nbytes(),
                    b_end = plan.offsets[b] + plan.routine.values[b].type.nbytes();
      EXPECT_TRUE(a_end <= plan.offsets[b] || b_end <= plan.offsets[a]) << a << " and " << b;
    }
  EXPECT_GT(met, 3);
}

TEST(MosaicMemory, buffers_hold_all_values_of_the_arena) {
  const Plan plan = plan_of_one(chain());
  std::multiset<ValueId> held;
  int64_t end = 0;
  for (const Buffer& one : buffers_of(plan)) {
    held.insert(one.values.begin(), one.values.end());
    end = std::max(end, plan.offsets[one.values[0]] + one.life.bytes);
    for (size_t i = 1; i < one.values.size(); ++i)
      EXPECT_EQ(plan.in_place.at(one.values[i]), one.values[i - 1]);
  }
  EXPECT_EQ(held.size(), std::count(plan.homes.begin(), plan.homes.end(), Home::arena));
  EXPECT_LE(end, plan.arena_bytes);
  EXPECT_GT(end, plan.arena_bytes - loops::kArenaAlignment);
}

// ---- in place -----------------------------------------------------------------------------------

// Read by kernels before it and behind it, so that it has memory of its own.
LazyTensor value(const std::string& name, int64_t rows, int64_t columns) {
  return linear(given(name, {rows, 40}), name + "w", columns);
}
LazyTensor used(const LazyTensor& y) { return linear(y, "used", 33); }

// The number of values are written in place.
size_t in_place(const LazyTensor& y) { return plan_of_one(y).in_place.size(); }

std::vector<Case> cases_in_place() {
  const LazyTensor a = value("a", 37, 64), b = value("b", 37, 64);
  std::vector<Case> cases;
  const auto add = [&](const std::string& text, const LazyTensor& y) {
    cases.push_back(case_of(text, {y}));
  };
  add("softmax", used(softmax(a, 1)));
  add("softmax of a sum with a product", used(softmax(a + linear(exp(a), "v", 64), 1)));
  add("residual", used(linear(exp(a), "v", 64) + a));
  add("residual behind an activation", used(relu(linear(exp(a), "v", 64)) * a));
  add("one of two", used(linear(exp(a), "v", 64) + a * b));
  add("norm", used((a - mean(a, {1}, true)) / sqrt(mean(a * a, {1}, true))));
  return cases;
}

TEST(MosaicMemory, what_is_read_last_is_written_over) {
  for (const Case& one : cases_in_place())
    EXPECT_GE(plan_of(one.graph).in_place.size(), 1) << one.text;
  EXPECT_EQ(differences(cases_in_place()), "");
}

TEST(MosaicMemory, convolutions_add_in_place) {
  const auto convolution = [](const LazyTensor& x, const std::string& name, int64_t side) {
    return test::convolution(x, weight(name, {32, 32, side, side}, 0.1),
                             {.padding = {side / 2, side / 2}});
  };
  const LazyTensor x = convolution(given("x", {1, 32, 9, 10}), "w", 1);
  const LazyTensor y = convolution(relu(convolution(exp(x), "v", 3)), "u", 3) + x;  // by Winograd
  const Case one = case_of("residual of an image", {convolution(y, "t", 1)});
  EXPECT_GE(plan_of(one.graph).in_place.size(), 1);
  EXPECT_EQ(differences({one}), "");
}

TEST(MosaicMemory, what_is_read_elsewhere_is_not_written_over) {
  const LazyTensor a = value("a", 48, 48), b = value("b", 48, 48);
  std::vector<Case> cases;
  const auto none = [&](const std::string& text, const LazyTensor& y) {
    EXPECT_EQ(in_place(y), 0) << text;
    cases.push_back(case_of(text, {y}));
  };
  none("across", used(exp(a + transpose(a, 0, 1))));
  none("across and along", used(softmax(a + transpose(a, 0, 1), 1)));
  none("reversed", used(exp(flip(a, {1}))));
  none("other rows", used(softmax(a + flip(a, {0}), 1)));
  none("a product reads its rows", used(linear(a, "v", 48) + a));
  none("a product packs it", used(matmul(given("x", {48, 48}), a) + a));
  none("of another size", used(softmax(slice(a, 0, 0, 17), 1)));
  none("needed behind it", used(softmax(a, 1)) + slice(exp(a), 1, 0, 33));
  none("of another dtype", used(to(softmax(to(a, DType::float64), 1), DType::float32)));
  EXPECT_EQ(differences(cases), "");
}

// Rows of different rounds: the second nest writes row i when the first one has not read row i + 1.
TEST(MosaicMemory, rounds_that_read_what_others_write_are_not_in_place) {
  const LazyTensor a = value("a", 48, 64);
  const LazyTensor next = cat({slice(a, 0, 1, 48), slice(a, 0, 0, 1)}, 0);
  const Case one = case_of("next row", {used(softmax(next + a, 1))});
  EXPECT_EQ(differences({one}), "");
}

// The rows of a residual are set apart as those of the product that takes its place.
TEST(MosaicMemory, rows_are_equally_far_apart) {
  const LazyTensor x = linear(given("x", {16, 32}), "w", 256);
  const LazyTensor y = linear(linear(x, "v", 64), "u", 256) + x;
  const Case one = case_of("rows of 1024 bytes", {linear(y, "t", 32)});
  const Plan plan = plan_of(one.graph);
  EXPECT_EQ(plan.in_place.size(), 1);
  EXPECT_EQ(differences({one}), "");
}

}  // namespace
}  // namespace flashlight::mosaic
