// Decisions that somebody makes instead of the planner: they are carried out, the results stay the
// same, and impossible ones are refused.
#include "flashlight/mosaic/choices.h"

#include <gtest/gtest.h>

#include <cstring>

#include "composit/ir/error.h"
#include "composit/ops/functions.h"
#include "flashlight/mosaic/buffers.h"
#include "flashlight/mosaic/describe.h"
#include "tests/flashlight/mosaic/layers.h"
#include "tests/user_error.h"

namespace flashlight::mosaic {
namespace {

using namespace composit;  // NOLINT
using test::Case;
using test::case_of;
using test::conv3x3;
using test::convolution;
using test::count;
using test::divided_trips;
using test::given;
using test::weight;
using test::winograd_pixels;

LazyTensor product(const LazyTensor& x, const std::string& name, int64_t out) {
  return matmul(x, weight(name, {x.type().sizes.back(), out}, 0.1));
}

Plan planned(const Case& one, const std::string& choices) {
  return plan_of(one.graph, {.choices = parse_choices(choices)});
}
std::string refusal(const Case& one, const std::string& choices) {
  return user_error([&] { planned(one, choices); }).value_or("");
}
ValueId value(const Plan& plan, const std::string& name) {
  const std::vector<std::string> names = value_names(plan.routine);
  return ValueId(static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin()));
}
// The kernel that writes a value.
const Kernel& writer(const Plan& plan, const std::string& name) {
  for (const Kernel& kernel : plan.run)
    for (const StepId step : kernel.steps)
      for (const ValueId written : loops::writes(plan.routine.steps[step]))
        if (written == value(plan, name)) return kernel;
  throw std::runtime_error("nobody writes " + name);
}
// The results are those of definitions.
std::string differences(Case one, const std::string& choices) {
  one.choices = parse_choices(choices);
  return test::differences({one});
}

// relu(exp(x w) v): two products.
Case two_products() {
  return case_of("two products",
                 {relu(product(exp(product(given("x", {9, 33}), "w", 40)), "v", 20))});
}

TEST(MosaicChoices, are_read) {
  const Choices choices = parse_choices(
      "# as measured\n"
      "relu_3: keep, layout NCHW -> N C/16 H W | 16c, apart 16\n\n"
      "gelu: fuse   # whatever it costs\n"
      "conv: winograd 0, at 4096\n"
      "dot: split columns\n"
      "sum: split rows, keep\n"
      "x: new loops, one thread, own place\n");
  ASSERT_EQ(choices.size(), 6);
  EXPECT_EQ(parse_choices(std::string(choices)), choices);
  EXPECT_EQ(std::string(parse_choices("dot: strassen 1, keep")), "dot: keep, strassen 1\n");
  EXPECT_EQ(choices.at("relu_3"), (Choice{.fuse = false,
                                          .layout = parse_tile_schema("NCHW -> N C/16 H W | 16c"),
                                          .apart = 16}));
  EXPECT_EQ(choices.at("gelu"), (Choice{.fuse = true}));
  EXPECT_EQ(choices.at("dot"), (Choice{.split_columns = true}));
  EXPECT_EQ(choices.at("sum"), (Choice{.fuse = false, .split_columns = false}));
  EXPECT_EQ(choices.at("conv"), (Choice{.winograd = 0, .offset = 4096}));
  EXPECT_EQ(choices.at("x"), (Choice{.new_loops = true, .one_thread = true, .own_place = true}));
}

TEST(MosaicChoices, are_refused_with_their_line) {
  const auto error = [](const std::string& text) {
    return user_error([&] { parse_choices(text); }).value_or("");
  };
  EXPECT_EQ(error("\nrelu keep"),
            "[mosaic] line 2: expected 'name: choice, choice', received 'relu keep'");
  EXPECT_NE(error("relu: hide").find("[mosaic] line 1: expected fuse, keep, layout SCHEMA"),
            std::string::npos);
  EXPECT_NE(error("relu: at").find("expected one number behind 'at'"), std::string::npos);
  EXPECT_NE(error("relu: apart -3").find("expected numbers from 0 on"), std::string::npos);
}

TEST(MosaicChoices, values_have_to_be_there) {
  EXPECT_EQ(refusal(two_products(), "nobody: keep"),
            "[mosaic] no value is called 'nobody'; there are x, w, v, mm, exp, mm_2, relu");
  EXPECT_NE(refusal(two_products(), "x: keep").find("'x' is no temporary"), std::string::npos);
  EXPECT_NE(refusal(two_products(), "mm: own place").find("is computed where it is read"),
            std::string::npos);
}

// exp(x w) is what a product does with its sums, unless it is kept apart.
TEST(MosaicChoices, keep) {
  const Case one = two_products();
  const size_t kernels = planned(one, "").run.size();
  EXPECT_EQ(planned(one, "mm: keep").run.size(), kernels + 1);
  EXPECT_EQ(differences(one, "mm: keep"), "");
}

TEST(MosaicChoices, kept_scores_are_no_attention) {
  const LazyTensor scores = bmm(given("q", {2, 35, 16}), transpose(given("k", {2, 37, 16}), 1, 2));
  const Case one = case_of("attention", {bmm(softmax(scores, 2), given("v", {2, 37, 24}))});
  EXPECT_EQ(count(planned(one, ""), kAttention), 1);
  EXPECT_EQ(count(planned(one, "bmm: keep"), kAttention), 0);
  EXPECT_EQ(differences(one, "bmm: keep"), "");
}

// Elements are added up, and divided by that: each would be computed twice.
TEST(MosaicChoices, fuse) {
  const LazyTensor x = given("x", {20, 32}), y = x * x * x + x * 0.5 - 7.0;
  const Case one = case_of("shares", {(y / sum(y, {1}, true))});
  EXPECT_NO_THROW(writer(planned(one, ""), "sub"));
  EXPECT_THROW(writer(planned(one, "sub: fuse"), "sub"), std::runtime_error);
  EXPECT_EQ(differences(one, "sub: fuse"), "");
}

TEST(MosaicChoices, what_cannot_be_fused_says_why) {
  EXPECT_EQ(refusal(two_products(), "exp: fuse"),
            "[mosaic] 'exp' cannot be fused: it is needed whole by relu");
  const Case one = case_of("softmax", {product(softmax(given("x", {20, 30}), 1), "w", 20)});
  EXPECT_EQ(refusal(one, "div: fuse"),
            "[mosaic] 'div' cannot be fused: it is a side of a product, which tiles read from "
            "memory");
}

TEST(MosaicChoices, order_and_pitch) {
  const Case one = two_products();
  const Plan plan = planned(one, "exp: layout MN -> N M, apart 8");
  const Layout& layout = plan.layouts.at(value(plan, "exp"));
  EXPECT_EQ(print(layout, "MN"), "MN -> N M, 8 apart");
  EXPECT_EQ(plan.routine.values[value(plan, "exp")].type.sizes, (Dims{40, 9 + 8}));
  EXPECT_EQ(differences(one, "exp: layout MN -> N M, apart 8"), "");
}

TEST(MosaicChoices, winograd) {
  const Case one = case_of(
      "convolutions", {conv3x3(relu(conv3x3(given("x", {1, 32, 12, 13}), "w", 32)), "v", 32, 2)});
  EXPECT_EQ(winograd_pixels(writer(planned(one, ""), "relu")), 2);
  EXPECT_EQ(winograd_pixels(writer(planned(one, "relu: winograd 0"), "relu")), 0);
  EXPECT_EQ(winograd_pixels(writer(planned(one, "relu: winograd 4"), "relu")), 4);
  EXPECT_EQ(differences(one, "relu: winograd 0"), "");
  EXPECT_EQ(differences(one, "relu: winograd 4"), "");
  EXPECT_NE(refusal(one, "relu: winograd 3").find("expected tiles of 2 or 4, received 3"),
            std::string::npos);
  EXPECT_NE(
      refusal(two_products(), "exp: winograd 4").find("it is no convolution by known windows"),
      std::string::npos);
}

TEST(MosaicChoices, strassen) {
  const Case one = case_of("even", {product(exp(product(given("x", {9, 34}), "w", 40)), "v", 20)});
  EXPECT_NE(writer(planned(one, ""), "exp").form, &kStrassen);
  EXPECT_EQ(writer(planned(one, "exp: strassen 1"), "exp").form, &kStrassen);
  EXPECT_EQ(differences(one, "exp: strassen 1"), "");
  EXPECT_NE(refusal(two_products(), "exp: strassen 1")
                .find("it is no product of matrices with an even number of terms"),
            std::string::npos);
}

TEST(MosaicChoices, loops_and_threads) {
  const LazyTensor x = given("x", {20, 32});
  const Case one = case_of("softmax", {product(softmax(x, 1), "w", 20)});
  const size_t kernels = planned(one, "").run.size();
  EXPECT_EQ(planned(one, "exp: new loops").run.size(), kernels + 1);
  EXPECT_EQ(divided_trips(writer(planned(one, ""), "div")), 20);
  EXPECT_EQ(divided_trips(writer(planned(one, "div: one thread"), "div")), 0);
  EXPECT_EQ(differences(one, "exp: new loops"), "");
  EXPECT_EQ(differences(one, "div: one thread"), "");
  EXPECT_NE(refusal(two_products(), "exp: one thread").find("is not written by a kernel of loops"),
            std::string::npos);
}

TEST(MosaicChoices, split) {
  const Case one =
      case_of("wide", {product(exp(product(given("x", {200, 33}), "w", 160)), "v", 20)});
  const auto split = [&](const std::string& choices) {
    return writer(planned(one, choices), "exp").split.of;
  };
  EXPECT_EQ(split(""), Split::Of::rows);
  EXPECT_EQ(split("exp: split rows"), Split::Of::rows);
  EXPECT_EQ(split("exp: split columns"), Split::Of::columns);
  EXPECT_NE(print(planned(one, "")).find("\n         threads divide 200 rows\n"),
            std::string::npos);
  EXPECT_NE(print(planned(one, "exp: split columns")).find("threads divide 160 columns"),
            std::string::npos);
  EXPECT_EQ(differences(one, "exp: split columns"), "");
  const Case few = case_of("few", {product(exp(product(given("x", {9, 33}), "w", 160)), "v", 20)});
  EXPECT_EQ(writer(planned(few, ""), "exp").split.of, Split::Of::columns);
  EXPECT_EQ(differences(few, "exp: split rows"), "");
}

TEST(MosaicChoices, splits_that_cannot_be) {
  const Case loops = case_of("softmax", {product(softmax(given("x", {20, 32}), 1), "w", 20)});
  EXPECT_EQ(refusal(loops, "div: split rows"), "");
  EXPECT_NE(
      refusal(loops, "div: split columns").find("'div' cannot be split by columns: loops are"),
      std::string::npos);
  EXPECT_NE(refusal(loops, "div: one thread, split rows")
                .find("'div' cannot be split by rows: its kernel is one thread's"),
            std::string::npos);
  const Case batch = case_of(
      "batch",
      {bmm(exp(bmm(given("q", {3, 35, 16}), given("k", {3, 16, 37}))), given("v", {3, 37, 5}))});
  EXPECT_NE(refusal(batch, "exp: split rows").find("threads divide the products of its batch"),
            std::string::npos);
  const LazyTensor scores = bmm(given("q", {2, 35, 16}), transpose(given("k", {2, 37, 16}), 1, 2));
  const Case attention =
      case_of("attention", {product(bmm(softmax(scores, 2), given("v", {2, 37, 24})), "w", 20)});
  EXPECT_NE(
      refusal(attention, "bmm_2: split columns").find("it is no result of a product or of loops"),
      std::string::npos);
  const LazyTensor image = given("x", {1, 32, 12, 13});
  const Case depthwise = case_of(
      "depthwise",
      {conv3x3(convolution(image, weight("k", {32, 1, 3, 3}), {.padding = {1, 1}, .groups = 32}),
               "w", 8)});
  EXPECT_NE(refusal(depthwise, "convolution: split columns").find("channels side by side"),
            std::string::npos);
}

TEST(MosaicChoices, places) {
  const Case one =
      case_of("softmax", {product(softmax(product(given("x", {9, 33}), "w", 40), 1), "v", 20)});
  EXPECT_EQ(planned(one, "").in_place.size(), 1);
  EXPECT_EQ(planned(one, "div: own place").in_place.size(), 0);
  const Plan plan = planned(one, "div: at 8192");
  EXPECT_EQ(plan.offsets[value(plan, "div")], 8192);
  EXPECT_GT(plan.arena_bytes, 8192);
  EXPECT_EQ(differences(one, "div: at 8192"), "");
  EXPECT_NE(refusal(one, "div: at 100").find("expected a multiple of 64"), std::string::npos);
  EXPECT_NE(refusal(one, "div: at 64\nmm: at 0").find("overlap while both are needed"),
            std::string::npos);
}

TEST(MosaicChoices, a_plan_changed_by_hand) {
  const Case one = two_products();
  Plan plan = planned(one, "");
  const auto run = [&] {
    return Compiled(mosaic::compile({plan}, 0, {"-O1"})[0]->prepare(one.values))(one.values)[0];
  };
  const Array expected = run();
  plan.offsets[value(plan, "exp")] += 256;
  EXPECT_NE(user_error(run).value_or("").find("the arena has"), std::string::npos);
  plan.arena_bytes += 256;
  const Array moved = run();
  const auto bytes = static_cast<size_t>(expected.type().nbytes());
  EXPECT_EQ(std::memcmp(moved.data(), expected.data(), bytes), 0);
}

}  // namespace
}  // namespace flashlight::mosaic
