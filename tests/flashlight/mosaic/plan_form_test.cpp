// Forms of plans, made at some sizes and bound to others, against plans that are made anew there,
// and what is compiled of them against the interpreter.
#include "flashlight/mosaic/plan_form.h"

#include <gtest/gtest.h>

#include "composit/eval/evaluate.h"
#include "composit/nn/nn.h"
#include "flashlight/mosaic/emit.h"
#include "tests/agreement.h"
#include "tests/flashlight/mosaic/compare.h"
#include "tests/flashlight/mosaic/sized_models.h"
#include "tests/user_error.h"

namespace flashlight::mosaic {
namespace {

using namespace composit;  // NOLINT
using loops::SizeNumbers;
using test::Case;
using test::case_of;
using test::given;

using test::encoder;
using test::encoder_of_one;
using test::graph_at;
using test::image_filter;
using test::Model;
using test::residual_network;
using test::Sizes;

PlanForm form_at(const Model& model, const std::vector<Sizes>& shown,
                 const std::vector<std::string>& names, const PlanOptions& options = {}) {
  std::vector<Graph> graphs;
  for (const Sizes& sizes : shown) graphs.push_back(graph_at(model, sizes));
  return form_of(graphs, options, names);
}

SizeNumbers named(const std::vector<std::string>& names, const Sizes& sizes) {
  SizeNumbers numbers;
  for (size_t i = 0; i < names.size(); ++i) numbers[names[i]] = sizes[i];
  return numbers;
}

// Bound to these sizes, the form gives the plan that is made anew there: in what it prints, in what
// is emitted, and in what that says to the caller.
void expect_same_plan(const PlanForm& form, const Model& model, const SizeNumbers& numbers,
                      const Sizes& sizes) {
  const Plan bound = plan_of(bind_sizes(form, numbers)),
             anew = plan_of(graph_at(model, sizes), form.options);
  EXPECT_EQ(print(bound), print(anew));
  EXPECT_EQ(emit(bound, "model").text, emit(anew, "model").text);
  EXPECT_EQ(bound.ports.inputs, anew.ports.inputs);
  EXPECT_EQ(bound.ports.results, anew.ports.results);
  EXPECT_EQ(bound.layouts, anew.layouts);
}

// Code of the bound plan gives the graph's values.
void expect_right(const PlanForm& form, const Model& model, const SizeNumbers& numbers,
                  const Sizes& sizes) {
  const Case one = case_of("", {model(sizes)});
  test::expect_right(
      Compiled(compile({plan_of(bind_sizes(form, numbers))}, 2, {"-O1"})[0]->prepare(one.values)),
      one);
}

void expect_all(const Model& model, const std::vector<Sizes>& shown,
                const std::vector<Sizes>& bound, const std::vector<std::string>& names) {
  const PlanForm form = form_at(model, shown, names);
  for (const std::vector<Sizes>* list : {&shown, &bound})
    for (const Sizes& sizes : *list) {
      SCOPED_TRACE(testing::PrintToString(sizes));
      expect_same_plan(form, model, named(names, sizes), sizes);
    }
  for (const Sizes& sizes : bound) expect_right(form, model, named(names, sizes), sizes);
}

// Below 23 tokens the first sum of the encoder lies in memory in another order.
TEST(MosaicPlanForm, of_an_encoder_at_other_numbers_of_tokens) {
  expect_all(encoder_of_one, {{25}, {40}}, {{31}, {32}}, {"tokens"});
}
TEST(MosaicPlanForm, of_an_encoder_at_other_batches_and_tokens) {
  expect_all(encoder, {{4, 25}, {7, 40}}, {{5, 31}}, {"batch", "tokens"});
}
TEST(MosaicPlanForm, of_a_residual_network_at_other_batches) {
  expect_all(residual_network, {{2}, {6}}, {{3}}, {"batch"});
}
TEST(MosaicPlanForm, of_convolutions_at_other_sizes_of_images) {
  expect_all(image_filter, {{11, 17}, {40, 35}}, {{13, 31}, {29, 30}}, {"height", "width"});
}

// ---- what depends on sizes ----------------------------------------------------------------------

LazyTensor wide_product(const Sizes& rows) {
  return matmul(given("x", {rows[0], 256}), test::weight("w", {256, 320}));
}

// Strassen's algorithm pays from 64 rows on: it is chosen for the sizes that are bound.
TEST(MosaicPlanForm, an_algorithm_is_chosen_by_cost_for_the_bound_sizes) {
  const PlanForm form = form_at(wide_product, {{17}, {90}}, {"rows"});
  const auto form_of_last = [&](int64_t rows) {
    return plan_of(bind_sizes(form, {{"rows", rows}})).run.back().form;
  };
  EXPECT_EQ(form_of_last(63), &kProduct);
  EXPECT_EQ(form_of_last(64), &kStrassen);
  for (const int64_t rows : {63, 64}) {
    expect_same_plan(form, wide_product, {{"rows", rows}}, {rows});
    expect_right(form, wide_product, {{"rows", rows}}, {rows});
  }
}

// Rows of 256 numbers would meet in the same sets of a cache, and are set apart where a plan is
// made for them; the bound one leaves them side by side, and is right.
LazyTensor two_products(const Sizes& columns) {
  const LazyTensor x = matmul(given("x", {33, 40}), given("y", {40, columns[0]}));
  return matmul(relu(x) + 1.0, given("z", {columns[0], 20}));
}
TEST(MosaicPlanForm, may_differ_from_what_is_planned_anew_and_computes_the_same) {
  const PlanForm form = form_at(two_products, {{200}, {300}}, {"columns"});
  expect_same_plan(form, two_products, {{"columns", 250}}, {250});
  const Plan anew = plan_of(graph_at(two_products, {256}));
  EXPECT_NE(print(plan_of(bind_sizes(form, {{"columns", 256}}))), print(anew));
  expect_right(form, two_products, {{"columns", 256}}, {256});
}

// ---- what is refused ----------------------------------------------------------------------------

TEST(MosaicPlanForm, refuses_sizes_that_were_not_shown) {
  const PlanForm form = form_at(encoder_of_one, {{25}, {40}}, {"tokens"});
  const auto error = [&](const SizeNumbers& sizes) {
    return user_error([&] { bind_sizes(form, sizes); });
  };
  EXPECT_EQ(error({{"tokens", 41}}),
            "[bind] expected 'tokens' from 25 to 40, as was shown, received 41");
  EXPECT_EQ(error({}), "[bind] expected a number for each of tokens, received none for 'tokens'");
  EXPECT_EQ(error({{"tokens", 30}, {"batch", 2}}),
            "[bind] expected numbers for tokens, received one for 'batch'");
  EXPECT_EQ(
      user_error([&] { plan_of(form); }),
      "[mosaic] expected a program of numbers, received one with 'tokens' open: bind it first");
}

TEST(MosaicPlanForm, refuses_forms_that_differ) {
  EXPECT_EQ(user_error([&] {
              form_at(two_products, {{200}, {256}}, {"columns"});
            })
                .value_or("")
                .rfind("[mosaic] expected plans of one form, received different layouts of '", 0),
            0);
  EXPECT_EQ(user_error([&] { form_at(encoder_of_one, {{17}}, {"tokens"}); }),
            "[unify] expected two programs or more, received 1");
}

}  // namespace
}  // namespace flashlight::mosaic
