// One compiled text for a program at many sizes, against the interpreter at each of them.
#include "flashlight/mosaic/sized.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "composit/eval/evaluate.h"
#include "flashlight/cpp/backend.h"
#include "flashlight/mosaic/step_texts.h"
#include "tests/agreement.h"
#include "tests/flashlight/mosaic/sized_models.h"
#include "tests/user_error.h"

namespace flashlight::mosaic {
namespace {

using namespace composit;  // NOLINT
using test::Model;
using test::Sizes;

const std::vector<std::string> kFlags = {"-O1", "-Wall", "-Wextra", "-Werror"};

std::shared_ptr<SizedCode> code_for(const Model& model, const std::vector<Sizes>& shown) {
  std::vector<Graph> graphs;
  for (const Sizes& sizes : shown) graphs.push_back(test::graph_at(model, sizes));
  return sized_code(graphs, {.name = "model"}, 2, kFlags);
}

void expect_right(SizedCode& code, const Model& model, const Sizes& sizes) {
  SCOPED_TRACE(testing::PrintToString(sizes));
  const test::Case one = test::case_of("", {model(sizes)});
  test::expect_right(Compiled(code.at(one.graph)->prepare(one.values)), one);
}

// `texts`: the most that may be compiled for all of these sizes.
void expect_all(const Model& model, const std::vector<Sizes>& shown,
                const std::vector<Sizes>& others, size_t texts) {
  const std::shared_ptr<SizedCode> code = code_for(model, shown);
  for (const auto* list : {&shown, &others})
    for (const Sizes& sizes : *list) expect_right(*code, model, sizes);
  EXPECT_LE(code->compilations(), texts);
}

TEST(MosaicSized, an_encoder_at_other_numbers_of_tokens) {
  expect_all(test::encoder_of_one, {{25}, {40}, {61}}, {{31}, {32}, {26}, {60}, {47}}, 2);
}
TEST(MosaicSized, an_encoder_at_other_batches_and_tokens) {
  expect_all(test::encoder, {{4, 25}, {7, 40}, {5, 33}}, {{5, 31}, {6, 39}, {7, 26}}, 2);
}
TEST(MosaicSized, a_residual_network_at_other_batches) {
  expect_all(test::residual_network, {{2}, {6}}, {{3}, {4}, {5}}, 2);
}
TEST(MosaicSized, convolutions_at_other_sizes_of_images) {
  expect_all(test::image_filter, {{11, 17}, {40, 35}, {23, 19}}, {{13, 31}, {29, 30}, {12, 34}}, 4);
}

// Windows end where the image ends.
LazyTensor pooled(const Sizes& pixels) {
  const LazyTensor x = test::given("x", {2, 8, pixels[0], pixels[1]});
  return nn::max_pool2d(x, {3}, {.stride = {2}, .padding = {1}}) +
         nn::avg_pool2d(x, {3}, {.stride = {2}, .padding = {1}});
}
TEST(MosaicSized, windows_at_other_sizes_of_images) {
  expect_all(pooled, {{11, 17}, {40, 35}, {23, 19}}, {{13, 31}, {29, 30}, {12, 34}}, 5);
}

// A table that the program makes for each size, of numbers that follow from nothing.
LazyTensor with_table(const Sizes& rows) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < rows[0] * 40; ++i)
    numbers.push_back(std::sin(static_cast<double>(i * i + rows[0])));
  const LazyTensor table = constant(array_of(tensor_type(DType::float32, {rows[0], 40}), numbers));
  return relu(matmul(test::given("x", {rows[0], 24}), test::weight("w", {24, 40})) + table);
}
TEST(MosaicSized, constants_are_those_of_the_size) {
  expect_all(with_table, {{25}, {40}, {33}}, {{31}, {38}}, 2);
}

// Packed weights serve all sizes whose texts prepare the same.
TEST(MosaicSized, what_is_prepared_at_one_size_does_for_others) {
  const std::shared_ptr<SizedCode> code = code_for(test::encoder_of_one, {{25}, {40}, {33}});
  const test::Case one = test::case_of("", {test::encoder_of_one({31})}),
                   two = test::case_of("", {test::encoder_of_one({38})});
  const auto prepared = code->at(one.graph)->prepare(one.values);
  const auto like = code->at(two.graph)->prepare_like({prepared});
  ASSERT_NE(like, nullptr);
  test::expect_right(Compiled(like), two);
  const Compiled fixed = backend().compile(two.graph, {.name = "fixed", .may_prepare = true});
  EXPECT_EQ(fixed->prepare_like({prepared}), nullptr);
  EXPECT_EQ(code->at(two.graph)->prepare_like({fixed->prepare(two.values)}), nullptr);
}

// Plans of other algorithms take what they have in common, and pack the rest.
TEST(MosaicSized, what_is_prepared_is_shared_one_by_one) {
  const std::vector<Sizes> sizes = {{3, 4}, {11, 17}, {40, 35}, {23, 19}};
  const std::shared_ptr<SizedCode> code = code_for(test::image_filter, sizes);
  Code::Codes prepared;
  for (const Sizes& pixels : sizes) {
    SCOPED_TRACE(testing::PrintToString(pixels));
    const test::Case one = test::case_of("", {test::image_filter(pixels)});
    prepared.push_back(code->at(one.graph)->prepare_beside(one.values, prepared));
    test::expect_right(Compiled(prepared.back()), one);
    const auto again = code->at(one.graph)->prepare_like(prepared);
    ASSERT_NE(again, nullptr);
    test::expect_right(Compiled(again), one);
  }
  EXPECT_EQ(code->at(test::graph_at(test::image_filter, sizes[0]))->prepare_like({}), nullptr);
}

// The norms of a slice of a weight are known beforehand, but not for all sizes.
LazyTensor with_places(const Sizes& rows) {
  const LazyTensor places = slice(test::weight("places", {64, 40}), 0, 0, rows[0]);
  nn::Initializer init(1);
  const LazyTensor table = nn::layer_norm(places, nn::norm_layer(init, "norm", 40));
  return relu(matmul(test::given("x", {rows[0], 24}), test::weight("w", {24, 40})) + table);
}
TEST(MosaicSized, what_sizes_decide_is_not_prepared) {
  const std::shared_ptr<SizedCode> code = code_for(with_places, {{25}, {40}, {33}});
  const test::Case one = test::case_of("", {with_places({31})}),
                   two = test::case_of("", {with_places({38})});
  const auto prepared = code->at(one.graph)->prepare(one.values);
  const auto like = code->at(two.graph)->prepare_like({prepared});
  ASSERT_NE(like, nullptr);
  test::expect_right(Compiled(like), two);
}

// A backend that cannot have sizes as data compiles each size.
TEST(MosaicSized, other_backends_compile_each_size) {
  const std::shared_ptr<SizedCode> code =
      cpp::backend().compile_sized({}, {.name = "model", .flags = kFlags});
  for (const int64_t tokens : {25, 26}) expect_right(*code, with_table, {tokens});
  EXPECT_EQ(code->compilations(), 2U);
}

// The first number of each kernel is no C++ here.
TEST(MosaicSized, where_a_text_with_data_does_not_compile_each_size_is_compiled) {
  std::vector<Graph> graphs;
  for (const int64_t rows : {25, 40}) graphs.push_back(test::graph_at(with_table, {rows}));
  const std::shared_ptr<SizedCode> code =
      sized_code(graphs, {.name = "model"}, 2, {"-O1", "-DN0=@"});
  for (const int64_t rows : {31, 38}) expect_right(*code, with_table, {rows});
  EXPECT_EQ(code->compilations(), 3U);
}

// Sizes that nobody showed, outside of the range, too.
TEST(MosaicSized, sizes_outside_of_what_was_shown_have_a_text_of_their_own) {
  const std::shared_ptr<SizedCode> code = code_for(test::encoder_of_one, {{25}, {40}});
  EXPECT_EQ(code->compilations(), 1U);
  for (const int64_t tokens : {1, 2, 3, 64}) expect_right(*code, test::encoder_of_one, {tokens});
}

// ---- texts --------------------------------------------------------------------------------------

OpenProgram steps_at(const Sizes& sizes) {
  return open_steps(plan_of(test::graph_at(test::encoder, sizes), {.name = "model"}));
}

TEST(MosaicStepTexts, have_the_numbers_of_each_size) {
  const OpenProgram at_25 = steps_at({4, 25}), at_40 = steps_at({4, 40}), at_31 = steps_at({4, 31});
  StepTexts texts(kFlags);
  texts.see(at_25);
  EXPECT_TRUE(texts.has_news(at_25));
  texts.see(at_40);
  EXPECT_FALSE(texts.has_news(at_25));
  EXPECT_FALSE(texts.find(at_25));
  texts.compile({&at_25, &at_40});
  const std::optional<ReadySteps> first = texts.find(at_25), other = texts.find(at_31);
  ASSERT_TRUE(first && other);
  ASSERT_EQ(first->run.size(), other->run.size());
  size_t different = 0;
  for (size_t i = 0; i < first->run.size(); ++i) {
    EXPECT_EQ(first->run[i].enter, other->run[i].enter);
    different += first->run[i].numbers != other->run[i].numbers ? 1U : 0U;
  }
  EXPECT_GT(different, 0U);
}

// The batch was the same in all samples: it is a constant of the texts.
TEST(MosaicStepTexts, a_number_that_was_the_same_is_no_data_until_it_differs) {
  const OpenProgram at_25 = steps_at({4, 25}), at_40 = steps_at({4, 40}), other = steps_at({5, 31}),
                    another = steps_at({6, 32});
  StepTexts texts(kFlags);
  texts.see(at_25);
  texts.see(at_40);
  texts.compile({&at_25, &at_40});
  EXPECT_FALSE(texts.find(other));
  texts.see(other);
  texts.compile({&other});
  EXPECT_TRUE(texts.find(other));
  EXPECT_TRUE(texts.find(another));
  EXPECT_EQ(texts.compilations(), 2U);
}

// Layers of one form share their code.
TEST(MosaicStepTexts, equal_layers_have_one_text) {
  const OpenProgram at_25 = steps_at({4, 25}), at_40 = steps_at({4, 40});
  StepTexts texts(kFlags);
  texts.see(at_25);
  texts.see(at_40);
  texts.compile({&at_25});
  const std::optional<ReadySteps> steps = texts.find(at_25);
  ASSERT_TRUE(steps);
  std::set<fl::StepEntry*> entries;
  for (const ReadyStep& step : steps->run) entries.insert(step.enter);
  EXPECT_LT(entries.size() + 4, steps->run.size());
}

}  // namespace
}  // namespace flashlight::mosaic
