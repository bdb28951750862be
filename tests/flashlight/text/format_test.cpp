// Lines broken as clang-format-14 breaks them; what is expected here is its output.
#include "flashlight/text/format.h"

#include <gtest/gtest.h>

namespace flashlight::text {
namespace {

void expect_formatted(const std::string& text, const std::string& expected) {
  EXPECT_EQ(formatted(text), expected);
  EXPECT_EQ(formatted(expected), expected);
}

TEST(Format, short_bodies_join_their_loops) {
  expect_formatted("for (int i = 0; i < 3; ++i)\n  y[i] = 0.0f;\n",
                   "for (int i = 0; i < 3; ++i) y[i] = 0.0f;\n");
}

TEST(Format, long_values_stand_below) {
  const std::string sum(90, 'x');
  expect_formatted("const float sum = " + sum + ";\n", "const float sum =\n    " + sum + ";\n");
}

TEST(Format, subscripts_stand_below_each_other) {
  const std::string index = "[fl::floor_divide<int64_t>(index_for_the_first_dimension, 2)]";
  expect_formatted("  return x[k]" + index + index + ";\n",
                   "  return x[k]" + index + "\n          " + index + ";\n");
  const std::string sum = "  return x[k]" + index + index + " + y;\n";
  EXPECT_EQ(formatted(sum), sum);
}

TEST(Format, lambdas_stand_below_the_other_arguments) {
  const std::string first = "fl::sum<double>(std::max(0, i), 64,",
                    second = "[&](int j) { return sum[j] * cat[constant[i + j * 64]]; });";
  const auto broken = [&](const std::string& target) {
    return "    " + target + " = " + first + " " + second + "\n";
  };
  expect_formatted(broken("d_means[i]"),
                   "    d_means[i] = " + first + "\n" + std::string(33, ' ') + second + "\n");
  expect_formatted(
      broken("d_means_of_the_mixture[i]"),
      "    d_means_of_the_mixture[i] = fl::sum<double>(\n        std::max(0, i), 64, " + second +
          "\n");
}

// Sizes and a lambda that do not fit one line: one with a return type takes the last size along,
// where both fit.
TEST(Format, sizes_go_with_lambdas) {
  const auto lambda = [](const std::string& index) {
    return "[&](int i, int k) -> auto& { return weights.conv1_weight[i][k / 9]" + index + "; },";
  };
  const std::string untyped =
      "[&](int i, int k) { return query[i][j * 64 + k] * 0.35355338f * 0.35355338f; },";
  expect_formatted("      320, 1024, 2880, " + untyped + "\n",
                   "      320, 1024, 2880,\n      " + untyped + "\n");
  const std::string both = lambda("[k / 3 % 3][k % 3]"), one = lambda("[k / 3 % 300000][k % 3]");
  expect_formatted("      320, 1024, 2880, " + both + "\n",
                   "      320, 1024,\n      2880, " + both + "\n");
  expect_formatted("      320, 1024, 2880, " + one + "\n",
                   "      320, 1024, 2880,\n      " + one + "\n");
  const std::string head = "[&](int i, int k) -> auto& {",
                    value =
                        "return weights.downsamplers_0_conv_weight[i][k / 9][k / 3 % 3][k % 3];";
  expect_formatted("      320, 1024, 2880, " + head + " " + value + " },\n",
                   "      320, 1024, 2880,\n      " + head + "\n        " + value + "\n      },\n");
  expect_formatted("      320, 1024, f(2, 3), " + one + "\n",
                   "      320, 1024, f(2, 3),\n      " + one + "\n");
}

}  // namespace
}  // namespace flashlight::text
