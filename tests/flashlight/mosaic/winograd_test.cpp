// Rewrites of products with weights: factors folded into them, Winograd's and Strassen's
// algorithms.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "composit/ops/functions.h"
#include "flashlight/mosaic/emit.h"
#include "tests/flashlight/mosaic/layers.h"

namespace flashlight::mosaic {
namespace {

using namespace composit;  // NOLINT
using test::case_of;
using test::conv3x3;
using test::differences;
using test::given;
using test::weight;
using test::winograd_pixels;

LazyTensor normalized(const LazyTensor& x) {
  const Dims sizes = {x.size(1)};
  return apply("aten::batch_norm",
               {x, weight("bn.weight", sizes), weight("bn.bias", sizes), weight("bn.mean", sizes),
                abs(weight("bn.var", sizes)) + 0.5, false, 0.1, 1e-5, false})[0];
}

size_t folded(const Graph& graph) {
  const Plan plan = plan_of(graph);
  return static_cast<size_t>(
      std::count_if(plan.prepare.begin(), plan.prepare.end(), [](const Kernel& kernel) {
        return kernel.form == &kPack && data_of<PackData>(kernel).factor;
      }));
}

TEST(MosaicWinograd, batch_norms_are_folded) {
  const LazyTensor y = relu(normalized(conv3x3(given("x", {1, 5, 9, 7}), "conv", 6)));
  const auto one = case_of("batch norm", {y});
  EXPECT_EQ(folded(one.graph), 1U);
  EXPECT_EQ(differences({one}), "");
}

// 0.5 x (1 + erf(x / sqrt(2))) has a factor, and x a second time without it.
TEST(MosaicWinograd, factors_of_a_part_are_not_folded) {
  const LazyTensor y = apply(
      "aten::gelu", {apply("aten::linear",
                           {given("x", {8, 16}), weight("w", {12, 16}), weight("b", {12})})[0]})[0];
  const auto one = case_of("gelu", {y});
  EXPECT_EQ(folded(one.graph), 0U);
  EXPECT_EQ(differences({one}), "");
}

TEST(MosaicWinograd, winograd) {
  const std::pair<int64_t, int64_t> shapes[] = {{1, 9}, {1, 30}, {2, 7}, {3, 15}, {2, 29}};
  for (const auto& [images, size] : shapes) {
    const LazyTensor y = relu(conv3x3(given("x", {images, 33, size, size + 1}), "conv", 34));
    const auto one =
        case_of(std::to_string(images) + " images, " + std::to_string(size) + " lines", {y});
    const Plan plan = plan_of(one.graph);
    const auto product = std::find_if(plan.run.begin(), plan.run.end(), [](const Kernel& kernel) {
      return product_data(kernel) != nullptr;
    });
    ASSERT_NE(product, plan.run.end());
    EXPECT_EQ(winograd_pixels(*product), size < 28 ? 2 : 4);
    EXPECT_EQ(differences({one}, {.times = 16}), "");  // sums of larger numbers, which cancel
  }
}

// So many kernels that they are several units, which have their tiles in others.
TEST(MosaicWinograd, in_several_units) {
  LazyTensor y = given("x", {1, 32, 8, 8});
  for (int64_t channels = 33; channels < 53; ++channels) y = relu(conv3x3(y, "conv", channels));
  const auto one = case_of("convolutions", {y});
  EXPECT_GT(emit(plan_of(one.graph), "convolutions").units.size(), 1U);
  EXPECT_EQ(differences({one}, {.times = 64}), "");  // twenty layers of other sums
}

TEST(MosaicWinograd, winograd_can_be_refused) {
  const LazyTensor y = conv3x3(given("x", {1, 32, 9, 9}), "conv", 32);
  const Plan plan = plan_of(case_of("", {y}).graph, {.winograd = false});
  for (const Kernel& kernel : plan.run) EXPECT_EQ(winograd_pixels(kernel), 0);
}

// Linear layers, and convolutions that are products of matrices.
TEST(MosaicStrassen, large_products) {
  const LazyTensor linear = relu(test::linear(given("x", {2, 37, 256}), "w", 384)),
                   pixels = test::convolution(relu(given("x", {1, 260, 9, 11})),
                                              weight("w", {330, 260, 1, 1}, 0.1), {});
  for (const auto& one : {case_of("linear", {linear}), case_of("pixels", {pixels})}) {
    const auto is_strassen = [](const Kernel& kernel) { return kernel.form == &kStrassen; };
    for (const bool allowed : {true, false}) {
      const Plan plan = plan_of(one.graph, {.strassen = allowed});
      EXPECT_EQ(std::any_of(plan.run.begin(), plan.run.end(), is_strassen), allowed);
    }
    EXPECT_EQ(differences({one}), "");
  }
}

}  // namespace
}  // namespace flashlight::mosaic
