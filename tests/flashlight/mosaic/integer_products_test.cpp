// Products of quantized numbers as products of bytes: programs as torch's quantized_decomposed has
// them, and what is left as it is.
#include <gmock/gmock.h>

#include "composit/eval/evaluate.h"
#include "composit/ops/native.h"
#include "flashlight/mosaic/sized.h"
#include "tests/agreement.h"
#include "tests/flashlight/mosaic/layers.h"
#include "tests/flashlight/mosaic/sized_models.h"

namespace flashlight::mosaic {
namespace {

using namespace composit;  // NOLINT
using test::Case;
using test::case_of;
using test::Conv;
using test::convolution;
using test::differences;
using test::given;
using test::weight;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kOfBytes = "of uint8 x int8, summed in int32";

// x through integers with one scale and zero point.
LazyTensor through_bytes(const LazyTensor& x, double scale, int64_t zero,
                         DType dtype = DType::int8) {
  const int64_t low = dtype == DType::int8 ? -128 : 0, high = low + 255;
  const LazyTensor q =
      apply_one("quantized_decomposed::quantize_per_tensor", {x, scale, zero, low, high, dtype});
  return apply_one("quantized_decomposed::dequantize_per_tensor",
                   {q, scale, zero, low, high, dtype, DType::float32});
}
// The same with a scale for each row.
LazyTensor through_tokens(const LazyTensor& x) {
  const LazyTensors chosen =
      apply("quantized_decomposed::choose_qparams_per_token", {x, DType::int8});
  const LazyTensor q = apply_one("quantized_decomposed::quantize_per_token",
                                 {x, chosen[0], chosen[1], -128, 127, DType::int8});
  return apply_one("quantized_decomposed::dequantize_per_token",
                   {q, chosen[0], chosen[1], -128, 127, DType::int8, DType::float32});
}
// Scale and zero point for each row.
LazyTensor through_asymmetric_tokens(const LazyTensor& x) {
  const LazyTensors chosen =
      apply("quantized_decomposed::choose_qparams_per_token_asymmetric", {x, DType::int8});
  const LazyTensor q = apply_one("quantized_decomposed::quantize_per_token",
                                 {x, chosen[0], chosen[1], -128, 127, DType::int8});
  return apply_one("quantized_decomposed::dequantize_per_token",
                   {q, chosen[0], chosen[1], -128, 127, DType::int8, DType::float32});
}
// One of each, which the call knows.
LazyTensor through_given(const LazyTensor& x, DType dtype) {
  const int64_t low = dtype == DType::int8 ? -128 : 0, high = low + 255;
  const LazyTensor scale = to(given("scale", {1}, 0.003), DType::float64) + 0.012,
                   zero = given("zero", {1}, 30, DType::int64) + 40;
  const LazyTensor q = apply_one("quantized_decomposed::quantize_per_tensor.tensor",
                                 {x, scale, zero, low, high, dtype});
  return apply_one("quantized_decomposed::dequantize_per_tensor.tensor",
                   {q, scale, zero, low, high, dtype, DType::float32});
}
// A weight of int8 with a scale for each index of its first axis.
LazyTensor weight_of_bytes(const std::string& name, const Dims& sizes) {
  const LazyTensor scales = weight(name + ".scales", {sizes[0]}, 0.002) + 0.003;
  return apply_one("quantized_decomposed::dequantize_per_channel",
                   {weight(name, sizes, 120, DType::int8), scales, ArgumentValue(), 0, -128, 127,
                    DType::int8, DType::float32});
}
LazyTensor byte_linear(const LazyTensor& x, const std::string& name, int64_t out) {
  return apply_one("aten::linear", {x, weight_of_bytes(name, {out, x.type().sizes.back()}),
                                    weight(name + "b", {out}, 0.3)});
}
LazyTensor byte_conv(const LazyTensor& x, const std::string& name, const Dims& sizes,
                     const Conv& how) {
  return convolution(x, weight_of_bytes(name, sizes), how, weight(name + "b", {sizes[0]}, 0.3));
}

struct Example {
  std::string text;
  LazyTensor y;
};

std::vector<Example> examples() {
  const LazyTensor x = given("x", {35, 67}), image = given("image", {2, 10, 11, 9});
  const LazyTensor wide = through_bytes(image, 0.011, -5), narrow = through_bytes(x, 0.01, 0);
  return {{"linear", byte_linear(narrow, "w", 40)},
          {"with a zero point", byte_linear(through_bytes(x, 0.009, 17), "w", 33)},
          {"of uint8", byte_linear(through_bytes(x, 0.009, 130, DType::uint8), "w", 33)},
          {"of the lowest zero point", byte_linear(through_bytes(relu(x), 0.004, -128), "w", 33)},
          {"by token", byte_linear(through_tokens(x), "w", 40)},
          {"of a batch by token", byte_linear(through_tokens(given("t", {2, 5, 64})), "w", 32)},
          {"of one row", byte_linear(through_tokens(given("t", {1, 200})), "w", 70)},
          {"by token, asymmetric", byte_linear(through_asymmetric_tokens(x), "w", 40)},
          {"of a batch by token, asymmetric",
           byte_linear(through_asymmetric_tokens(given("t", {2, 5, 64})), "w", 32)},
          {"with a zero point of the call", byte_linear(through_given(x, DType::int8), "w", 33)},
          {"of uint8 with a zero point of the call",
           byte_linear(through_given(x, DType::uint8), "w", 33)},
          {"convolution with a zero point of the call",
           byte_conv(through_given(image, DType::int8), "k", {33, 10, 3, 3}, {})},
          {"of a transposed weight",
           matmul(narrow, apply_one("aten::contiguous",
                                    {transpose(weight_of_bytes("w", {40, 67}), 0, 1)}))},
          {"with an activation", relu(byte_linear(narrow, "w", 40)) * 0.5},
          {"two layers",
           byte_linear(through_bytes(relu(byte_linear(narrow, "w", 40)), 0.02, -128), "v", 24)},
          {"a residual of what is quantized", byte_linear(narrow, "w", 67) + narrow},
          {"convolution", byte_conv(wide, "k", {33, 10, 3, 3}, {})},
          {"padded", byte_conv(wide, "k", {33, 10, 3, 3}, {.padding = {1, 1}})},
          {"padded with uint8", byte_conv(through_bytes(image, 0.011, 77, DType::uint8), "k",
                                          {16, 10, 5, 5}, {.padding = {2, 2}})},
          {"strided", byte_conv(wide, "k", {33, 10, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}})},
          {"of pixels", byte_conv(through_bytes(image, 0.011, 3), "k", {40, 10, 1, 1}, {})},
          {"dilated", byte_conv(wide, "k", {8, 10, 3, 3}, {.padding = {2, 2}, .dilation = {2, 2}})},
          {"in groups", byte_conv(wide, "k", {32, 5, 3, 3}, {.padding = {1, 1}, .groups = 2})},
          {"two convolutions",
           byte_conv(through_bytes(relu(byte_conv(wide, "k", {16, 10, 3, 3}, {.padding = {1, 1}})),
                                   0.03, -128),
                     "l", {24, 16, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}})}};
}

TEST(MosaicIntegerProducts, give_what_their_definitions_say) {
  std::vector<Case> cases;
  for (const Example& one : examples()) cases.push_back(case_of(one.text, {one.y}));
  EXPECT_EQ(differences(cases), "");
}

TEST(MosaicIntegerProducts, are_products_of_bytes) {
  for (const Example& one : examples())
    EXPECT_THAT(print(plan_of(case_of("", {one.y}).graph)), HasSubstr(kOfBytes)) << one.text;
}

// What lies around an image is its zero point, 128 more than the program's.
TEST(MosaicIntegerProducts, padding_is_the_zero_point) {
  const LazyTensor image = given("image", {2, 10, 11, 9}), x = through_bytes(image, 0.011, -5),
                   y = byte_conv(x, "k", {33, 10, 3, 3}, {.padding = {1, 1}});
  EXPECT_THAT(print(plan_of(case_of("", {y}).graph)), HasSubstr("123s around"));
}

// Whole numbers times powers of two: sums are exact, so what is stored is the sum itself.
TEST(MosaicIntegerProducts, sums_are_exact) {
  constexpr int64_t kTerms = 1001;  // sums of less than 2^24
  const LazyTensor x = given("x", {9, kTerms}, 100);
  const LazyTensor q = weight("w", {20, kTerms}, 120, DType::int8);
  const LazyTensor w = apply_one("quantized_decomposed::dequantize_per_tensor",
                                 {q, 0.5, 0, -128, 127, DType::int8, DType::float32});
  Case one = case_of("", {apply_one("aten::linear", {through_bytes(x, 0.25, 9), w}),
                          apply_one("quantized_decomposed::quantize_per_tensor",
                                    {x, 0.25, 9, -128, 127, DType::int8}),
                          apply_one("aten::clone", {q})});
  EXPECT_THAT(print(plan_of(one.graph)), HasSubstr(kOfBytes));
  const std::vector<Array> received = test::compiled(one.graph, one.values)(one.values);
  const auto a = elements<int64_t>(received[1]), b = elements<int64_t>(received[2]);
  std::vector<double> expected;
  for (size_t i = 0; i < 9; ++i)
    for (size_t j = 0; j < 20; ++j) {
      int64_t sum = 0;
      for (size_t k = 0; k < kTerms; ++k) sum += (a[i * kTerms + k] - 9) * b[j * kTerms + k];
      expected.push_back(0.125 * static_cast<double>(sum));
    }
  EXPECT_EQ(elements<double>(received[0]), expected);
}

TEST(MosaicIntegerProducts, of_integers_of_the_program) {
  const LazyTensor a = given("a", {35, 70}, 120, DType::int8);
  for (const bool known : {true, false}) {
    const LazyTensor b =
        known ? weight("b", {70, 40}, 120, DType::int8) : given("b", {70, 40}, 120, DType::int8);
    const Case one = case_of("_int_mm", {apply_one("aten::_int_mm", {a, b})});
    EXPECT_EQ(differences({one}), "");
    EXPECT_THAT(print(plan_of(one.graph)), HasSubstr(kOfBytes)) << known;
  }
}

// A quantized product and what quantizes its result for the next one are one kernel.
TEST(MosaicIntegerProducts, what_follows_is_fused) {
  const LazyTensor x = through_bytes(given("x", {35, 64}), 0.01, 3);
  const LazyTensor y =
      byte_linear(through_bytes(relu(byte_linear(x, "v", 96)), 0.02, -128), "w", 40);
  const Plan plan = plan_of(case_of("", {y}).graph);
  EXPECT_EQ(test::count_products(plan), 2) << print(plan);
  EXPECT_EQ(plan.run.size(), 3) << print(plan);
}

// Bytes that a sum reads as well, as a residual does: none of them is memory as something else.
TEST(MosaicIntegerProducts, are_read_by_others_too) {
  const LazyTensor x = through_bytes(given("x", {35, 64}), 0.01, 3);
  const LazyTensor y = through_bytes(relu(byte_linear(x, "v", 96)), 0.02, -128);
  const LazyTensor z = through_bytes(relu(byte_linear(y, "u", 96) + y), 0.03, -100);
  const Case one = case_of("residual", {byte_linear(z, "w", 40) + slice(z, 1, 0, 40)});
  EXPECT_EQ(differences({one}), "");
  const Plan plan = plan_of(one.graph);
  EXPECT_EQ(plan.run.size(), 4) << print(plan);
  for (const Kernel& kernel : plan.run)
    for (const StepId step : kernel.steps)
      for (const ValueId value : loops::writes(plan.routine.steps[step]))
        if (plan.routine.values[value].role == loops::Role::temporary)
          EXPECT_EQ(plan.routine.values[value].type.dtype, DType::uint8) << print(plan);
}

// What is subtracted, multiplied and added by columns behind a sum, scales included.
TEST(MosaicIntegerProducts, norms_are_one_factor_and_one_offset) {
  const auto column = [](const char* name) {
    return reshape(weight(name, {33}, 0.3) + 0.9, {33, 1, 1});
  };
  const LazyTensor x = through_bytes(given("image", {2, 10, 11, 9}), 0.011, -5),
                   y = byte_conv(x, "k", {33, 10, 3, 3}, {.padding = {1, 1}});
  const Case one =
      case_of("norm", {relu((y - column("m")) * column("f") + column("o")), sum(y, Ints{1})});
  EXPECT_EQ(differences({one}), "");
  const LazyTensor alone = relu((y - column("m")) * column("f") + column("o"));
  EXPECT_THAT(print(plan_of(case_of("", {alone}).graph)), HasSubstr("offset"));
  EXPECT_EQ(differences({case_of("norm alone", {alone})}), "");
}

// Words at any number of tokens, and images of any size, by texts that are compiled for some.
TEST(MosaicIntegerProducts, at_other_sizes) {
  const test::Model tokens = [](const test::Sizes& sizes) {
    const LazyTensor x = given("x", {sizes[0], 64}), y = byte_linear(through_tokens(x), "v", 96);
    return byte_linear(through_bytes(relu(y), 0.02, -128), "w", 64);
  };
  const test::Model images = [](const test::Sizes& sizes) {
    const LazyTensor x = through_bytes(given("x", {1, 8, sizes[0], sizes[0] + 3}), 0.011, -5);
    const LazyTensor y = byte_conv(x, "k", {16, 8, 3, 3}, {.padding = {1, 1}});
    return byte_conv(through_bytes(relu(y), 0.03, -128), "l", {8, 16, 3, 3}, {.padding = {1, 1}});
  };
  for (const test::Model& model : {tokens, images}) {
    std::vector<Graph> graphs;
    for (const int64_t size : {17, 40, 23}) graphs.push_back(test::graph_at(model, {size}));
    const auto code = sized_code(graphs, {.name = "model"}, 2, {"-O1", "-Wall", "-Werror"});
    for (const int64_t size : {17, 31, 39}) {
      const Case one = case_of("", {model({size})});
      EXPECT_THAT(print(plan_of(one.graph)), HasSubstr(kOfBytes));
      test::expect_right(Compiled(code->at(one.graph)->prepare(one.values)), one);
    }
    EXPECT_LE(code->compilations(), 2U);
  }
}

TEST(MosaicIntegerProducts, others_stay_as_they_are) {
  const LazyTensor x = given("x", {35, 67}), q = through_bytes(x, 0.01, 0);
  const auto expect_floats = [](const char* text, const LazyTensor& y) {
    const Case one = case_of(text, {y});
    EXPECT_EQ(differences({one}), "");
    EXPECT_THAT(print(plan_of(one.graph)), Not(HasSubstr(kOfBytes))) << text;
  };
  expect_floats("numbers that are not quantized", byte_linear(x, "w", 40));
  expect_floats("a weight that is not", test::linear(q, "w", 40));
  expect_floats(
      "zero points of the weight",
      apply_one("aten::linear",
                {q, apply_one("quantized_decomposed::dequantize_per_channel",
                              {weight("w", {40, 67}, 120, DType::int8),
                               weight("s", {40}, 0.002) + 0.003, weight("z", {40}, 9, DType::int32),
                               0, -128, 127, DType::int8, DType::float32})}));
  expect_floats(
      "scales that differ between terms",
      apply_one("aten::linear", {q, apply_one("quantized_decomposed::dequantize_per_channel",
                                              {weight("w", {40, 67}, 120, DType::int8),
                                               weight("s", {67}, 0.002) + 0.003, ArgumentValue(), 1,
                                               -128, 127, DType::int8, DType::float32})}));
  expect_floats("sums that may be too large",
                byte_linear(through_tokens(given("t", {3, 65800})), "w", 8));
  const LazyTensor half = to(to(q, DType::bfloat16), DType::float32);
  expect_floats("numbers that were rounded", byte_linear(half, "w", 40));
  expect_floats("padding by a zero point of the call",
                byte_conv(through_given(given("image", {2, 10, 11, 9}), DType::int8), "k",
                          {33, 10, 3, 3}, {.padding = {1, 1}}));
  expect_floats("channels that do not mix",
                byte_conv(through_bytes(given("image", {1, 16, 9, 9}), 0.01, 3), "k", {16, 1, 3, 3},
                          {.padding = {1, 1}, .groups = 16}));
}

}  // namespace
}  // namespace flashlight::mosaic
