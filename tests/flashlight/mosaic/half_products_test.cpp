// Products of 16-bit floats as tiles: their sums are of float32, and rounded once.
#include <gmock/gmock.h>

#include <cmath>
#include <numeric>

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
  const LazyTensor p = x({2, 70, 32}),
                   wide = to(matmul(p, transpose(p, 1, 2)) * 0.25, DType::float32);
  add("attention with a softmax in float32", matmul(to(softmax(wide, -1), dtype), p));
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

// Ones, of which bfloat16 counts no more than 256 and float16 no more than 2048: in lanes, over
// rows, and as an average.
TEST(MosaicHalfProducts, sums_are_kept_in_float32) {
  for (const DType dtype : kHalves)
    for (const bool rows : {false, true}) {
      const LazyTensor x = given("x", rows ? Dims{4096, 40} : Dims{40, 4096}, 1, dtype);
      Case one = case_of("", {sum(x, Ints{rows ? 0 : 1}), mean(x, Ints{rows ? 0 : 1})});
      const std::vector<double> ones(40 * 4096, 1.0);
      one.values[0] = array_of(one.graph.inputs()[0].type(), ones);
      const std::vector<Array> received = test::compiled(one.graph, one.values)(one.values);
      EXPECT_EQ(elements<double>(received[0]), std::vector<double>(40, 4096.0)) << name(dtype);
      EXPECT_EQ(elements<double>(received[1]), std::vector<double>(40, 1.0)) << name(dtype);
    }
}

// What is fused behind a product, a norm and a pooling are nearer to float64 than a program that
// rounds each of its results.
TEST(MosaicHalfProducts, fused_operations_round_once) {
  const auto layers = [](DType dtype) {
    const LazyTensor x = to(given("x", {9, 67}, 1, DType::bfloat16), dtype);
    const LazyTensor w = to(weight("w", {33, 67}, 0.1, DType::bfloat16), dtype),
                     b = to(weight("b", {33}, 0.3, DType::bfloat16), dtype);
    const LazyTensor y = apply_one("aten::linear", {x, w, b}), z = y * sigmoid(y) + y;
    return case_of("", {to(z - mean(z, Ints{1}, true), DType::float64)});
  };
  const Case half = layers(DType::bfloat16), exact = layers(DType::float64);
  const auto expected = elements<double>(evaluate(exact.graph, exact.values)[0]);
  const auto error = [&](const Array& array) {
    const auto received = elements<double>(array);
    double sum = 0;
    for (size_t i = 0; i < expected.size(); ++i) sum += std::pow(received[i] - expected[i], 2);
    return std::sqrt(sum / static_cast<double>(expected.size()));
  };
  EXPECT_LT(error(test::compiled(half.graph, half.values)(half.values)[0]),
            error(evaluate(half.graph, half.values)[0]));
}

// A program that rounds by itself is rounded there, whatever is fused.
TEST(MosaicHalfProducts, casts_round) {
  const LazyTensor x = given("x", {5, 70});
  const Case one = case_of("", {x - to(to(x, DType::bfloat16), DType::float32)});
  EXPECT_EQ(elements<double>(test::compiled(one.graph, one.values)(one.values)[0]),
            elements<double>(evaluate(one.graph, one.values)[0]));
}

// What is computed again where it is compared is what was stored: each line has its largest number.
TEST(MosaicHalfProducts, comparisons_see_rounded_numbers) {
  for (const DType dtype : kHalves) {
    const LazyTensor y = given("x", {35, 70}, 1, dtype) * 0.3 * 1.7;
    const LazyTensor most = apply_one("aten::amax", {y, Ints{1}, true});
    const Case one = case_of("", {apply_one("aten::eq.Tensor", {y, most}), most});
    const std::vector<Array> received = test::compiled(one.graph, one.values)(one.values);
    const auto equal = elements<double>(received[0]);
    for (size_t row = 0; row < 35; ++row)
      EXPECT_GE(std::accumulate(equal.begin() + static_cast<int64_t>(row * 70),
                                equal.begin() + static_cast<int64_t>(row * 70 + 70), 0.0),
                1)
          << row;
  }
}

// A momentum, to which a gradient is added: what is read behind a sum is computed once per result.
TEST(MosaicHalfProducts, have_their_results_added_to_what_is_computed_there) {
  for (const DType dtype : kHalves) {
    const LazyTensor x = given("x", {48, 35}, 1, dtype), y = given("y", {48, 40}, 1, dtype);
    const LazyTensor sums = to(matmul(transpose(x, 0, 1), y), DType::float32);
    // Compared by the tolerance of its dtype, to which the sums are rounded.
    const Case one = case_of("", {to(given("m", {35, 40}) * 0.9 + sums, dtype)});
    EXPECT_EQ(differences({one}), "");
    EXPECT_THAT(print(plan_of(one.graph)), Not(HasSubstr("writes mul")));
  }
}

TEST(MosaicHalfProducts, attention_is_one_kernel) {
  for (const DType dtype : kHalves) {
    const LazyTensor q = given("q", {2, 70, 32}, 1, dtype), k = given("k", {2, 90, 32}, 1, dtype);
    const Plan plan =
        plan_of(case_of("", {matmul(softmax(matmul(q, transpose(k, 1, 2)) * 0.25, -1), k)}).graph);
    EXPECT_THAT(print(plan), HasSubstr("attention_2x70x90x32"));
  }
}

// A softmax in float32 of scores in 16 bits is what programs have. Weights that a program rounds by
// itself, for a product of float32, are not left to a kernel that would not round them.
TEST(MosaicHalfProducts, attention_keeps_casts_of_the_program) {
  const auto planned = [](const LazyTensor& weights, const LazyTensor& values) {
    return print(plan_of(case_of("", {matmul(weights, values)}).graph));
  };
  const auto softmax_of = [](const LazyTensor& q, const LazyTensor& k) {
    return softmax(to(matmul(q, transpose(k, 1, 2)) * 0.25, DType::float32), -1);
  };
  for (const DType dtype : kHalves) {
    const LazyTensor q = given("q", {2, 70, 32}, 1, dtype), k = given("k", {2, 90, 32}, 1, dtype);
    EXPECT_THAT(planned(to(softmax_of(q, k), dtype), k), HasSubstr("attention_2x70x90x32"));
    const LazyTensor x = given("x", {2, 70, 32}), y = given("y", {2, 90, 32});
    EXPECT_THAT(planned(softmax_of(x, y), y), HasSubstr("attention_2x70x90x32"));
    EXPECT_THAT(planned(to(to(softmax_of(x, y), dtype), DType::float32), y),
                Not(HasSubstr("attention_2x70x90x32")));
  }
}

// What is computed with these options is rounded, to bfloat16 and no further.
void expect_rounded(const Case& one, const PlanOptions& options) {
  const auto a = elements<double>(evaluate(one.graph, one.values)[0]),
             b = elements<double>(test::compiled(one.graph, one.values, options)(one.values)[0]);
  double largest = 0, error = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(a[i]));
    error = std::max(error, std::abs(a[i] - b[i]));
  }
  EXPECT_GT(error, 1e-5 * largest);
  EXPECT_LT(error, 0x1p-6 * largest);
}

// Products of float32 as products of bfloat16, of all layers or of one: to the errors of bfloat16.
TEST(MosaicHalfProducts, of_float32_by_choice) {
  const LazyTensor x = given("x", {35, 64});
  Case one = case_of("", {relu(test::linear(relu(test::linear(x, "v", 96)), "w", 40))});
  const auto planned = [&](const PlanOptions& options) {
    return print(plan_of(one.graph, options));
  };
  const auto count_of = [](const std::string& text) {
    const std::string words = "of bfloat16 x bfloat16, summed in float32";
    int found = 0;
    for (size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1))
      ++found;
    return found;
  };
  EXPECT_EQ(count_of(planned({})), 0);
  EXPECT_EQ(count_of(planned({.products = DType::bfloat16})), 2);
  EXPECT_EQ(count_of(planned({.choices = parse_choices("relu: bfloat16")})), 1);
  EXPECT_EQ(
      count_of(planned({.products = DType::bfloat16, .choices = parse_choices("relu: float32")})),
      1);
  expect_rounded(one, {.products = DType::bfloat16});
  EXPECT_THAT(
      [&] { plan_of(case_of("", {relu(x)}).graph, {.choices = parse_choices("relu: bfloat16")}); },
      testing::ThrowsMessage<UserError>(HasSubstr("relu")));
}

// What products of bfloat16 alone read is stored as that; not where anything else reads it.
TEST(MosaicHalfProducts, round_what_they_read_where_it_is_stored) {
  const auto hidden = [](const LazyTensor& x) { return relu(test::linear(x, "v", 96)); };
  const auto dtype_of = [](const LazyTensor& y, const std::string& name,
                           const PlanOptions& options) {
    const Plan plan = plan_of(case_of("", {y}).graph, options);
    for (const loops::Value& value : plan.routine.values)
      if (value.name == name) return value.type.dtype;
    return DType::complex128;
  };
  const LazyTensor x = given("x", {35, 64});
  const PlanOptions all = {.products = DType::bfloat16, .has_matrix_unit = true};
  const LazyTensor once = test::linear(hidden(x), "w", 96);
  EXPECT_EQ(dtype_of(once, "relu", {}), DType::float32);
  EXPECT_EQ(dtype_of(once, "relu", all), DType::bfloat16);
  expect_rounded(case_of("", {once}), all);
  const LazyTensor again = hidden(x), twice = test::linear(again, "w", 96) + again;
  EXPECT_EQ(dtype_of(twice, "relu", all), DType::float32);
  expect_rounded(case_of("", {twice}), all);
  // All that attention reads and writes, or nothing of it.
  const auto attended = [&](const LazyTensor& q, const LazyTensor& k) {
    return test::linear(matmul(softmax(matmul(q, transpose(k, 0, 1)) * 0.1, -1), k), "w", 40);
  };
  const LazyTensor q = test::linear(x, "q", 32), k = test::linear(x, "k", 32);
  const auto stored = [](const LazyTensor& y, const PlanOptions& options) {
    int count = 0;
    for (const loops::Value& value : plan_of(case_of("", {y}).graph, options).routine.values)
      count += value.type.dtype == DType::bfloat16 && value.role == loops::Role::temporary &&
               value.name.find("panels") == std::string::npos;
    return count;
  };
  EXPECT_EQ(stored(attended(q, k), all), 3);
  EXPECT_EQ(stored(attended(q, given("k", {35, 32})), all), 0);
  expect_rounded(case_of("", {attended(q, k)}), all);
}

// Values between kernels are stored as bfloat16 by choice: what loops read, sums that are added to
// products, and rows of those.
TEST(MosaicHalfProducts, values_are_stored_by_choice) {
  const LazyTensor x = given("x", {64, 160});
  const LazyTensor first = relu(test::linear(x, "v", 160)), y = exp(first * 0.1);
  const LazyTensor second = relu(test::linear(y, "w", 160) + first);
  const Case one = case_of("", {softmax(second * 0.05, -1)});
  const auto stored = [&](const PlanOptions& options) {
    std::string names;
    for (const loops::Value& value : plan_of(one.graph, options).routine.values)
      if (value.type.dtype == DType::bfloat16 && value.name.find("panels") == std::string::npos)
        names += value.name + " ";
    return names;
  };
  const PlanOptions half = {.products = DType::bfloat16},
                    all = {.products = DType::bfloat16, .values = DType::bfloat16};
  EXPECT_EQ(stored(half), "exp ");
  EXPECT_EQ(stored(all), "relu exp mul ");
  expect_rounded(one, all);
  // Products of float32 read rows of float32.
  EXPECT_EQ(stored({.values = DType::bfloat16}), "relu mul ");
  expect_rounded(one, {.values = DType::bfloat16});
  // Of one value.
  EXPECT_EQ(stored({.choices = parse_choices("relu: stored bfloat16")}), "relu ");
  EXPECT_EQ(stored({.products = DType::bfloat16,
                    .values = DType::bfloat16,
                    .choices = parse_choices("relu: stored float32\nexp: stored float32")}),
            "mul ");
  const auto refused = [&](const std::string& name) {
    return testing::ThrowsMessage<UserError>(
        HasSubstr("'" + name + "' cannot be stored as bfloat16"));
  };
  EXPECT_THAT([&] { stored({.choices = parse_choices("exp: stored bfloat16")}); }, refused("exp"));
}

// Both products of attention, by choice or where the processor has a unit for matrices.
// Instructions for pairs alone make up for the rounding of no element.
TEST(MosaicHalfProducts, attention_of_float32_by_choice) {
  const LazyTensor q = given("q", {2, 70, 32}), k = given("k", {2, 90, 32});
  const Case one = case_of("", {matmul(softmax(matmul(q, transpose(k, 1, 2)) * 0.25, -1), k)});
  const auto planned = [&](const PlanOptions& options) {
    return print(plan_of(one.graph, options));
  };
  const char* const words = "multiplied as bfloat16";
  const PlanOptions all = {.products = DType::bfloat16, .has_matrix_unit = true},
                    chosen = {.choices = parse_choices("matmul_2: bfloat16")};
  EXPECT_THAT(planned({.products = DType::bfloat16}), Not(HasSubstr(words)));
  EXPECT_THAT(planned(all), HasSubstr(words));
  EXPECT_THAT(planned(chosen), HasSubstr(words));
  PlanOptions others = all;
  others.choices = parse_choices("matmul_2: float32");
  EXPECT_THAT(planned(others), Not(HasSubstr(words)));
#if defined(__x86_64__)  // elsewhere it is multiplied as it is
  if (__builtin_cpu_supports("avx512bf16")) expect_rounded(one, chosen);
#endif
  const LazyTensor odd = given("q", {2, 70, 31});
  EXPECT_THAT(
      [&] {
        plan_of(case_of("", {matmul(softmax(matmul(odd, transpose(odd, 1, 2)), -1), odd)}).graph,
                {.choices = parse_choices("matmul_2: bfloat16")});
      },
      testing::ThrowsMessage<UserError>(HasSubstr("even number of elements")));
}

// No algorithm that multiplies fewer numbers of float32 is faster than a unit for matrices.
TEST(MosaicHalfProducts, convolutions_are_direct_where_there_is_a_unit_for_matrices) {
  const LazyTensor x = given("x", {1, 64, 56, 56}, 1, DType::bfloat16);
  const Case one = case_of(
      "", {convolution(x, weight("w", {64, 64, 3, 3}, 0.1, DType::bfloat16), {.padding = {1, 1}})});
  EXPECT_THAT(print(plan_of(one.graph)), HasSubstr("winograd_4"));
  EXPECT_THAT(print(plan_of(one.graph, {.has_matrix_unit = true})), Not(HasSubstr("winograd_")));
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
