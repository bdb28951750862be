// Sizes behind windows and strides as one rounding, beside the roundings one after the other.
#include "composit/family/step_fit.h"

#include <gtest/gtest.h>

#include "composit/ir/node.h"

namespace composit {
namespace {

struct Window {
  int64_t kernel, stride, padding = 0;
};

// What convolutions leave of a size, as they are defined.
int64_t behind(const std::vector<Window>& windows, int64_t size) {
  for (const Window& one : windows) size = (size + 2 * one.padding - one.kernel) / one.stride + 1;
  return size;
}

class StepFit : public testing::Test {
 protected:
  // By some sizes; others are asked for.
  std::optional<SizeFormula> fitted(const std::vector<Window>& windows, int64_t low, int64_t high,
                                    int64_t between, int64_t step = 1) {
    std::vector<int64_t> values, sizes, range;
    for (int64_t size = low; size <= high; size += step) range.push_back(size);
    for (size_t i = 0; i < range.size(); i += static_cast<size_t>(between)) {
      sizes.push_back(range[i]);
      values.push_back(behind(windows, range[i]));
    }
    const auto at = [&](int64_t size) { return std::optional(behind(windows, size)); };
    return step_fit(values, sizes, size_of(x, 0), range, at);
  }
  static int64_t at(const SizeFormula& formula, int64_t size) {
    return formula.evaluate([&](const LazyTensor&, size_t) { return size; });
  }

  const LazyTensor x = input("x", tensor_type(DType::float32, {7}));
};

TEST_F(StepFit, IsWhatWindowsLeave) {
  const std::vector<std::vector<Window>> all = {
      {{10, 5}, {8, 4}}, {{3, 2, 1}, {3, 2, 1}}, {{4, 4}, {3, 2}, {2, 2}}, {{7, 3, 3}}};
  for (const auto& windows : all)
    for (const int64_t between : {1, 7, 40})
      for (const int64_t step : {1, 3}) {
        const auto formula = fitted(windows, 60, 700, between, step);
        ASSERT_TRUE(formula);
        for (int64_t size = 60; size <= 700; size += step)
          ASSERT_EQ(at(*formula, size), behind(windows, size)) << size << " of each " << between;
      }
}

TEST_F(StepFit, AsksWhereSeveralFit) {
  const std::vector<int64_t> sizes = {40, 60, 80}, values = {4, 6, 8};
  std::vector<int64_t> range, asked;
  for (int64_t size = 40; size <= 80; ++size) range.push_back(size);
  const auto formula = step_fit(values, sizes, size_of(x, 0), range, [&](int64_t size) {
    asked.push_back(size);
    return std::optional((size + 3) / 10);
  });
  ASSERT_TRUE(formula);
  EXPECT_GT(asked.size(), 0U);
  for (const int64_t size : range) EXPECT_EQ(at(*formula, size), (size + 3) / 10);
}

TEST_F(StepFit, RefusesOthers) {
  const auto none = [](int64_t) { return std::optional<int64_t>(); };
  EXPECT_FALSE(step_fit({1, 4, 9, 16}, {1, 2, 3, 4}, size_of(x, 0), {1, 2, 3, 4}, none));
  EXPECT_FALSE(step_fit({9, 8, 7, 6}, {1, 2, 3, 4}, size_of(x, 0), {1, 2, 3, 4}, none));
  EXPECT_FALSE(step_fit({1, 2}, {10, 90}, size_of(x, 0), {10, 90}, none)) << "of one step";
  EXPECT_FALSE(step_fit({}, {}, size_of(x, 0), {}, none));
  // Fits at what is shown, and is another function in between.
  std::vector<int64_t> range = {10, 11, 12, 13, 14, 20, 30};
  const auto other = [](int64_t) { return std::optional<int64_t>(77); };
  EXPECT_FALSE(step_fit({1, 2, 3}, {10, 20, 30}, size_of(x, 0), range, other));
}

}  // namespace
}  // namespace composit
