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
  EXPECT_FALSE(step_fit({}, {}, size_of(x, 0), {}, none));
  // Fits at what is shown, and is another function in between.
  std::vector<int64_t> range = {10, 11, 12, 13, 14, 20, 30};
  const auto other = [](int64_t) { return std::optional<int64_t>(77); };
  EXPECT_FALSE(step_fit({1, 2, 3}, {10, 20, 30}, size_of(x, 0), range, other));
}

// At 97 there is one more: all sizes are asked.
TEST_F(StepFit, OfOneStep) {
  for (const int64_t where : {65, 80, 97}) {
    std::vector<int64_t> range;
    for (int64_t size = 64; size <= 97; ++size) range.push_back(size);
    const auto number = [&](int64_t size) { return std::optional<int64_t>(size < where ? 3 : 4); };
    const auto formula = step_fit({3, 4}, {64, 97}, size_of(x, 0), range, number);
    ASSERT_TRUE(formula);
    for (const int64_t size : range) EXPECT_EQ(at(*formula, size), *number(size)) << size;
    const auto back = [&](int64_t size) { return std::optional(size == 90 ? 3 : *number(size)); };
    EXPECT_EQ(step_fit({3, 4}, {64, 97}, size_of(x, 0), range, back).has_value(), where == 97);
  }
}

// Patches of a picture, and a batch that makes no difference.
TEST_F(StepFit, IsAProductOfTwo) {
  const std::vector<Window> rows = {{3, 4, 1}, {2, 2}}, columns = {{5, 3}, {2, 2}};
  const auto number = [&](const SizeValues& sizes) {
    return std::optional(behind(rows, sizes.at("h")) * behind(columns, sizes.at("w")));
  };
  const LazyTensor picture = input("picture", tensor_type(DType::float32, {2, 40, 40}));
  std::vector<StepAxis> axes;
  for (const std::string name : {"n", "h", "w"}) {
    StepAxis axis{
        .name = name, .size = size_of(picture, axes.size()), .range = {}, .shown = {}, .at = {}};
    for (int64_t size = name == "n" ? 1 : 30; size <= (name == "n" ? 4 : 90); ++size)
      axis.range.push_back(size);
    axis.at = [=](const SizeValues& point, int64_t size) {
      SizeValues sizes = point;
      sizes[name] = size;
      return number(sizes);
    };
    axes.push_back(std::move(axis));
  }
  std::vector<int64_t> values;
  for (int64_t i = 0; i < 50; ++i) {
    const SizeValues point = {{"n", 1 + i % 4}, {"h", 30 + 7 * i % 61}, {"w", 30 + 11 * i % 61}};
    for (StepAxis& axis : axes) axis.shown.push_back(point.at(axis.name));
    values.push_back(*number(point));
  }
  const std::vector<SizeValues> points = {{{"n", 1}, {"h", 30}, {"w", 30}},
                                          {{"n", 4}, {"h", 90}, {"w", 90}}};
  const auto formula = step_fit(values, axes, points);
  ASSERT_TRUE(formula);
  for (int64_t h = 30; h <= 90; ++h)
    for (int64_t w = 30; w <= 90; ++w)
      ASSERT_EQ(
          formula->evaluate([&](const LazyTensor&, size_t axis) { return axis == 1 ? h : w; }),
          *number({{"h", h}, {"w", w}}));
  values[7] += 1;
  EXPECT_FALSE(step_fit(values, axes, points));
}

}  // namespace
}  // namespace composit
