// Products of 16-bit floats as tiles: their sums are of float32, and rounded once.
#include <gmock/gmock.h>

#include "composit/eval/evaluate.h"
#include "composit/ops/native.h"
#include "tests/agreement.h"
#include "tests/flashlight/mosaic/layers.h"

namespace flashlight::mosaic {
namespace {

using namespace composit;  // NOLINT
using composit::test::difference;
using test::Case;
using test::case_of;
using test::Conv;
using test::convolution;
using test::count;
using test::count_products;
using test::differences;
using test::given;
using test::weight;
using testing::HasSubstr;
using testing::Not;

constexpr DType kHalves[] = {DType::bfloat16, DType::float16};

std::vector<Case> cases_of(DType dtype) {
  std::vector<Case> cases;
  const auto add = [&](const std::string& text, const LazyTensor& y) {
    cases.push_back(case_of(text + " of " + std::string(name(dtype)), {y}));
  };
  const auto x = [&](const Dims& sizes) { return given("x", sizes, 1, dtype); };
  const auto w = [&](const Dims& sizes) { return weight("w", sizes, 0.3, dtype); };
  add("linear", test::linear(x({35, 67}), "w", 40));
  add("linear of a row", test::linear(x({1, 200}), "w", 70));
  add("linear of a few rows", test::linear(x({8, 67}), "w", 33));
  add("linear, relu", relu(test::linear(x({9, 67}), "w", 33)));
  add("linear of a batch", test::linear(x({2, 5, 64}), "w", 32));
  add("matmul", matmul(x({17, 33}), w({33, 50})));
  add("matmul of the caller's", matmul(x({17, 33}), given("y", {33, 50}, 1, dtype)));
  add("batch", matmul(x({3, 17, 33}), given("y", {3, 33, 20}, 1, dtype)));
  add("scores", matmul(x({2, 9, 40}), transpose(given("y", {2, 12, 40}, 1, dtype), 1, 2)));
  add("convolution", convolution(x({1, 17, 9, 9}), w({33, 17, 3, 3}), {.padding = {1, 1}},
                                 weight("b", {33}, 0.3, dtype)));
  add("strided", convolution(x({2, 3, 23, 21}), w({16, 3, 7, 7}), {.stride = {2, 2}}));
  add("depthwise", convolution(x({1, 40, 9, 8}), w({40, 1, 3, 3}), {.groups = 40}));
  const LazyTensor q = x({2, 9, 32}), scores = softmax(matmul(q, transpose(q, 1, 2)) * 0.2, -1);
  add("attention", matmul(scores, q));
  return cases;
}

TEST(MosaicHalfProducts, give_what_their_definitions_say) {
  for (const DType dtype : kHalves) EXPECT_EQ(differences(cases_of(dtype)), "");
}

// Against the same graph in float64, to one operation's tolerance of the dtype.
TEST(MosaicHalfProducts, are_near_float64) {
  for (const DType dtype : kHalves) {
    const LazyTensor x = given("x", {35, 300}, 1, dtype), w = weight("w", {40, 300}, 0.3, dtype),
                     b = weight("b", {40}, 0.3, dtype);
    const Case half = case_of("", {apply_one("aten::linear", {x, w, b})}),
               exact = case_of(
                   "", {to(apply_one("aten::linear", {to(x, DType::float64), to(w, DType::float64),
                                                      to(b, DType::float64)}),
                           dtype)});
    const Array expected = evaluate(exact.graph, exact.values)[0];
    for (const int threads : {1, 2})
      EXPECT_EQ(difference(test::compiled(half.graph, half.values, {}, threads)(half.values)[0],
                           expected),
                "");
  }
}

// Sums of whole numbers below 2^24 are exact in float32, so that what is stored is the sum itself,
// rounded once. Sums in 16 bits would stop to grow at 256 and 2048.
TEST(MosaicHalfProducts, round_sums_once) {
  constexpr int64_t kRows = 7, kColumns = 19, kTerms = 3001;
  const auto numbers = [](int64_t count, int64_t step) {
    std::vector<double> list;
    for (int64_t i = 0; i < count; ++i) list.push_back(static_cast<double>(i * step % 7 - 2));
    return list;
  };
  const auto a = numbers(kRows * kTerms, 3), b = numbers(kColumns * kTerms, 5);
  std::vector<double> sums;
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t j = 0; j < kColumns; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < kTerms; ++k)
        sum += a[static_cast<size_t>(i * kTerms + k)] * b[static_cast<size_t>(j * kTerms + k)];
      sums.push_back(sum);
    }
  for (const DType dtype : kHalves) {
    const LazyTensor x = given("x", {kRows, kTerms}, 1, dtype),
                     w = weight("w", {kColumns, kTerms}, 1, dtype);
    Case one = case_of("", {apply_one("aten::linear", {x, w})});
    for (size_t i = 0; i < one.values.size(); ++i) {
      const Type& type = one.graph.inputs()[i].type();
      one.values[i] = array_of(type, type.sizes[0] == kRows ? a : b);
    }
    const Array expected = array_of(tensor_type(dtype, {kRows, kColumns}), sums);
    const Array received = test::compiled(one.graph, one.values)(one.values)[0];
    EXPECT_EQ(elements<double>(received), elements<double>(expected)) << name(dtype);
  }
}

TEST(MosaicHalfProducts, are_recognised_with_their_dtypes) {
  const LazyTensor x = given("x", {35, 64}, 1, DType::bfloat16);
  const Plan plan = plan_of(case_of("", {test::linear(x, "w", 33)}).graph);
  ASSERT_EQ(count_products(plan), 1) << print(plan);
  const Product& product = product_data(plan.run.back())->product;
  EXPECT_EQ(product.element, DType::bfloat16);
  EXPECT_EQ(product.weight, DType::bfloat16);
  EXPECT_EQ(product.accumulator, DType::float32);
  EXPECT_THAT(print(plan), HasSubstr("35 rows x 33 columns x 64 terms of bfloat16 x bfloat16, "
                                     "summed in float32"));
  // Panels hold bfloat16: two of 32 columns, 64 terms each.
  EXPECT_EQ(plan.prepared_bytes, 2 * 32 * 64 * 2);
  const LazyTensor y = given("x", {35, 64});
  EXPECT_THAT(print(plan_of(case_of("", {test::linear(y, "w", 33)}).graph)),
              Not(HasSubstr("summed")));
  // Tiles of depthwise convolutions and of attention have one dtype.
  const LazyTensor image = given("x", {1, 40, 9, 8}, 1, DType::bfloat16),
                   k = weight("k", {40, 1, 3, 3}, 1, DType::bfloat16);
  EXPECT_EQ(count_products(plan_of(case_of("", {convolution(image, k, {.groups = 40})}).graph)), 0);
}

}  // namespace
}  // namespace flashlight::mosaic
