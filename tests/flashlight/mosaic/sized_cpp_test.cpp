// One text of the backend cpp for a program at many sizes, against the interpreter at each of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "composit/ops/control_flow.h"
#include "composit/ops/functions.h"
#include "flashlight/cpp/backend.h"
#include "flashlight/cpp/sized.h"
#include "tests/flashlight/mosaic/sized_models.h"
#include "tests/user_error.h"

namespace flashlight::cpp {
namespace {

using namespace composit;  // NOLINT
using mosaic::test::Model;
using mosaic::test::Sizes;
using ::testing::HasSubstr;
using ::testing::Not;
namespace test = mosaic::test;

const std::vector<std::string> kFlags = {"-O1", "-Wall", "-Wextra", "-Wconversion", "-Werror"};

std::vector<SizedGraph> graphs_of(const Model& model, const std::vector<Sizes>& shown) {
  static const std::vector<std::string> names = {"first", "second"};
  std::vector<SizedGraph> graphs;
  for (const Sizes& sizes : shown) {
    graphs.push_back({test::graph_at(model, sizes), {}});
    for (size_t i = 0; i < sizes.size(); ++i) graphs.back().sizes[names.at(i)] = sizes[i];
  }
  return graphs;
}

void expect_right(SizedCode& code, const Model& model, const Sizes& sizes) {
  SCOPED_TRACE(testing::PrintToString(sizes));
  const test::Case one = test::case_of("", {model(sizes)});
  test::expect_right(code.at(one.graph), one);
}

// `texts`: how many are compiled for all of these sizes.
std::shared_ptr<SizedCode> expect_all(const Model& model, const std::vector<Sizes>& shown,
                                      const std::vector<Sizes>& others, size_t texts = 1) {
  const std::shared_ptr<SizedCode> code =
      backend().compile_sized(graphs_of(model, shown), {.name = "model", .flags = kFlags});
  for (const auto* list : {&shown, &others})
    for (const Sizes& sizes : *list) expect_right(*code, model, sizes);
  EXPECT_EQ(code->compilations(), texts);
  return code;
}

TEST(SizedCpp, an_encoder_at_other_numbers_of_tokens) {
  const auto code =
      expect_all(test::encoder_of_one, {{25}, {40}, {61}}, {{31}, {2}, {26}, {60}, {47}});
  EXPECT_THAT(code->source(), HasSubstr("int first"));
  for (const char* number : {"25", "40", "61"})
    EXPECT_THAT(code->source(), Not(HasSubstr("[" + std::string(number) + "]")));
}
TEST(SizedCpp, an_encoder_at_other_batches_and_tokens) {
  expect_all(test::encoder, {{4, 25}, {7, 40}, {5, 33}}, {{5, 31}, {2, 39}, {7, 2}});
}
TEST(SizedCpp, a_residual_network_at_other_batches) {
  expect_all(test::residual_network, {{2}, {4}, {6}}, {{3}, {5}});
}
TEST(SizedCpp, convolutions_at_other_sizes_of_images) {
  expect_all(test::image_filter, {{11, 17}, {23, 19}, {40, 35}}, {{13, 31}, {29, 30}, {12, 34}});
}

// Where layers repeat, functions are cut alike at all sizes.
LazyTensor of_twelve_layers(const Sizes& tokens) {
  constexpr int64_t kSize = 48;
  const auto linear = [](const std::string& name, int64_t in, int64_t out) {
    return nn::Affine{test::weight((name + ".weight").c_str(), {out, in}),
                      test::weight((name + ".bias").c_str(), {out})};
  };
  const auto norm = [](const std::string& name) {
    return nn::Affine{test::weight((name + ".weight").c_str(), {kSize}),
                      test::weight((name + ".bias").c_str(), {kSize})};
  };
  LazyTensor x = nn::embedding(test::row_numbers("ids", {1, tokens[0]}, 50),
                               test::weight("words", {50, kSize})) +
                 slice(test::weight("places", {512, kSize}), 0, 0, tokens[0]);
  x = nn::layer_norm(x, norm("norm"));
  const LazyTensor mask = test::given("mask", {1, 1, 1, tokens[0]}, 3);
  for (int i = 0; i < 12; ++i) {
    const std::string name = "layer." + std::to_string(i);
    const nn::EncoderLayer layer = {
        {linear(name + ".query", kSize, kSize), linear(name + ".key", kSize, kSize),
         linear(name + ".value", kSize, kSize), linear(name + ".output", kSize, kSize)},
        {linear(name + ".inner", kSize, 96), linear(name + ".outer", 96, kSize)},
        norm(name + ".attention_norm"),
        norm(name + ".feedforward_norm")};
    x = nn::transformer_encoder_layer(
        x, layer, {.head_size = 12, .attn_mask = mask, .activation = [](const LazyTensor& y) {
                     return nn::gelu(y);
                   }});
  }
  return tanh(nn::linear(apply_one("aten::select.int", {x, 1, 0}), linear("pooler", kSize, kSize)));
}
TEST(SizedCpp, repeats_are_functions_at_all_sizes) {
  const SizedProgram program(graphs_of(of_twelve_layers, {{8}, {80}, {152}, {296}, {440}, {512}}),
                             {.name = "model"});
  for (const int64_t tokens : {16, 37, 77, 128, 250, 384, 511})
    EXPECT_TRUE(program.sizes_of(test::graph_at(of_twelve_layers, {tokens}))) << tokens;
}

// Loops over one row, and of no part of a table, have other forms.
TEST(SizedCpp, sizes_of_another_form_are_compiled_alone) {
  expect_all(test::encoder_of_one, {{1}, {25}, {40}, {61}}, {{31}}, 2);
}

// A number of the program that follows from sizes, as a float.
LazyTensor averaged(const Sizes& rows) {
  const LazyTensor x = test::given("x", {rows[0], rows[1], 12});
  return mean(mean(x, {0}) * x, {1});
}
TEST(SizedCpp, a_mean_divides_by_a_size) {
  expect_all(averaged, {{3, 8}, {5, 7}, {9, 12}}, {{4, 9}, {7, 8}});
}

// Halves that are rounded down follow from no size by a product.
LazyTensor halved(const Sizes& rows) {
  const LazyTensor x = test::given("x", {rows[0], 12}), y = slice(x, 0, 0, rows[0] / 2);
  return softmax(matmul(y, transpose(y, 0, 1)), -1);
}
TEST(SizedCpp, a_size_that_is_rounded_is_read_off_the_program) {
  const auto code = expect_all(halved, {{11}, {20}, {33}}, {{12}, {13}, {32}, {15}});
}

// A carry and a sequence whose sizes are data.
LazyTensor recurrent(const Sizes& sizes) {
  const int64_t steps = sizes[0], rows = sizes[1];
  const LazyTensor x = test::given("x", {steps, rows, 6}), first = test::given("h", {rows, 6});
  const LazyTensor w = test::weight("w", {6, 6}, 0.3);
  const auto body = [&](const LazyTensors& carried, const LazyTensors& now) {
    const LazyTensor next = tanh(matmul(carried[0], w) + now[0]);
    return ScanStep{{next}, {next * 2}};
  };
  const ScanStep all = scan(body, {first}, {x});
  return sum(all.outputs[0], {0}) + all.carried[0];
}
TEST(SizedCpp, a_scan_over_as_many_steps_as_a_size_says) {
  expect_all(recurrent, {{4, 5}, {6, 9}, {11, 7}}, {{5, 8}, {9, 6}});
}

// Numbers of columns that are primes, as sizes are where the text is written.
LazyTensor of_primes(const Sizes& rows) {
  LazyTensor x = test::given("x", {rows[0], 61});
  int64_t before = 61;
  for (const int64_t size : {67, 71, 73, 79, 122, 127, 183}) {
    const std::string name = "w" + std::to_string(size);
    x = relu(matmul(x, test::weight(name.c_str(), {before, size}, 0.2)));
    before = size;
  }
  return x;
}
TEST(SizedCpp, constants_are_no_sizes) {
  expect_all(of_primes, {{5}, {12}, {61}}, {{7}, {60}, {67}, {71}});
}

// A constant of each size: there is no text for all.
LazyTensor with_table(const Sizes& rows) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < rows[0]; ++i)
    numbers.push_back(std::sin(static_cast<double>(i * i + rows[0])));
  const LazyTensor table = constant(array_of(tensor_type(DType::float32, {rows[0], 1}), numbers));
  return test::given("x", {rows[0], 24}) * table;
}
TEST(SizedCpp, constants_of_a_size_have_a_text_of_their_own) {
  const auto code = expect_all(with_table, {{25}, {33}, {40}}, {{31}}, 4);
  EXPECT_EQ(code->source(), "");
  const auto error = user_error([] {
    SizedProgram(graphs_of(with_table, {{25}, {33}, {40}}), {.name = "model"});
  });
  EXPECT_THAT(error.value_or(""),
              HasSubstr("[cpp] expected loops of one form at two sizes or more"));
}

TEST(SizedCpp, needs_several_sizes) {
  const auto error =
      user_error([] { SizedProgram(graphs_of(test::encoder_of_one, {{25}}), {.name = "model"}); });
  EXPECT_EQ(error, "[cpp] expected graphs at two sizes or more, received 1");
}

}  // namespace
}  // namespace flashlight::cpp
