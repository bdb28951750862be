// Graphs of ATen's operators as modules of StableHLO, as text. Values: stablehlo_test.py.
#include "composit/interchange/stablehlo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "composit/interchange/stablehlo/rows.h"
#include "composit/interchange/stablehlo/types.h"
#include "composit/io/safetensors.h"
#include "composit/ir/parse.h"
#include "composit/ops/native.h"
#include "tests/io/temporary_folder.h"
#include "tests/user_error.h"

namespace composit::stablehlo::test {
namespace {

using composit::test::message_of;
using composit::test::read_file;
using composit::test::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

StableHloModule module_of(const char* graph, const StableHloOptions& options = {}) {
  return stablehlo_module(parse(graph), "m", options);
}

std::string text_of(const char* graph) { return module_of(graph).text; }

Array floats(const Dims& sizes, const std::vector<double>& values) {
  return array_of(tensor_type(DType::float32, sizes), values);
}

TEST(stablehlo, operators_that_there_are_are_taken) {
  const std::string text = text_of(R"(
    graph(%x: float32[2, 3], %w: float32[4, 3]) {
      %y: float32[2, 4] = aten::linear(%x, %w, none)
      %z: float32[2, 4] = aten::tanh(%y)
      return %z
    })");
  EXPECT_THAT(text, HasSubstr("stablehlo.dot_general %x, %w, contracting_dims = [1] x [1]"));
  EXPECT_THAT(text, HasSubstr("stablehlo.tanh"));
  EXPECT_THAT(text, HasSubstr("%x: tensor<2x3xf32> {flashlight.input = \"x\"}"));
  EXPECT_THAT(text, HasSubstr("tensor<2x4xf32> {flashlight.output = \"output_0\"}"));
}

TEST(stablehlo, operands_are_broadcast) {
  const std::string text = text_of(R"(
    graph(%x: float32[2, 3], %y: float32[3]) {
      %z: float32[2, 3] = aten::mul.Tensor(%x, %y)
      return %z
    })");
  EXPECT_THAT(text, HasSubstr("stablehlo.broadcast_in_dim %y, dims = [1] : (tensor<3xf32>) -> "
                              "tensor<2x3xf32>"));
}

TEST(stablehlo, others_become_what_their_definitions_say) {
  const std::string text = text_of(R"(
    graph(%x: float32[3]) {
      %y: float32[3] = aten::hardsigmoid(%x)
      return %y
    })");
  EXPECT_THAT(text, HasSubstr("stablehlo.select"));
  EXPECT_THAT(text, Not(HasSubstr("aten")));
}

TEST(stablehlo, values_are_written_to_the_bit) {
  EXPECT_EQ(value_text(floats({}, {0.1})), "dense<1.00000001490116119e-01>");
  EXPECT_EQ(value_text(floats({}, {-INFINITY})), "dense<0xFF800000>");
  EXPECT_EQ(value_text(floats({2}, {1, 2})),
            "dense<[1.00000000000000000e+00, 2.00000000000000000e+00]>");
  EXPECT_EQ(value_text(floats({2, 2}, {1, 2, 3, 4})),
            "dense<\"0x0000803F000000400000404000008040\">");
  EXPECT_EQ(value_text(floats({2, 2}, {3, 3, 3, 3})), "dense<3.00000000000000000e+00>");
  EXPECT_EQ(value_text(floats({0}, {})), "dense<>");
  const Type wide = tensor_type(DType::uint64, {});
  EXPECT_EQ(value_text(array_of(wide, std::vector<int64_t>{-1})), "dense<18446744073709551615>");
  const Type complex = tensor_type(DType::complex64, {});
  EXPECT_EQ(value_text(array_of(complex, std::vector<std::complex<double>>{{1, -2}})),
            "dense<(1.00000000000000000e+00, -2.00000000000000000e+00)>");
}

TEST(stablehlo, negative_zero_and_what_is_not_a_number_are_no_other_numbers) {
  EXPECT_EQ(value_text(floats({2}, {0., -0.})),
            "dense<[0.00000000000000000e+00, -0.00000000000000000e+00]>");
  EXPECT_EQ(value_text(floats({}, {std::nan("")})), "dense<0x7FC00000>");
}

TEST(stablehlo, indices_have_to_be_in_range) {
  const char* graph = R"(
    graph(%table: float32[5, 3], %i: int64[4]) {
      %rows: float32[4, 3] = aten::embedding(%table, %i)
      return %rows
    })";
  EXPECT_THAT(module_of(graph).guards, ElementsAre("indices are in range"));
  EXPECT_THAT(module_of(graph).text, HasSubstr("{flashlight.guard = \"indices are in range\"}"));
  EXPECT_THAT(module_of(graph, {.drop_guards = true}).guards, ElementsAre());
}

TEST(stablehlo, what_is_in_range_is_not_asked) {
  const auto asked = [](const char* graph) { return module_of(graph).guards; };
  EXPECT_THAT(asked(R"(
    graph(%table: float32[5, 3], %i: int64[4]) {
      %some: int64[4] = aten::clamp(%i, min=scalar(0), max=scalar(4))
      %rows: float32[4, 3] = aten::embedding(%table, %some)
      return %rows
    })"),
              ElementsAre());
  EXPECT_THAT(asked(R"(
    graph(%table: float32[5, 3], %i: int64[4]) {
      %some: int64[4] = aten::clamp(%i, min=scalar(0), max=scalar(5))
      %rows: float32[4, 3] = aten::embedding(%table, %some)
      return %rows
    })"),
              ElementsAre("indices are in range"));
  EXPECT_THAT(asked(R"(
    graph(%table: float32[5, 3], %i: int64[4]) {
      %some: int64[4] = aten::clamp(%i, min=scalar(-1), max=scalar(4))
      %rows: float32[4, 3] = aten::embedding(%table, %some)
      return %rows
    })"),
              ElementsAre("indices are in range"));
}

std::string rows_in_a_branch(const std::string& places) {
  return R"(
    graph(%p: bool[], %table: float32[5, 3], %i: int64[4]) {
      %rows: float32[4, 3] = composit::cond(%p, [%table, %i], then_body=region(%t: float32[5, 3], %k: int64[4]) {
          )" +
         places + R"(
          %r: float32[4, 3] = aten::embedding(%t, %some)
          return %r
        }, else_body=region(%u: float32[5, 3], %l: int64[4]) {
          %z: float32[4, 3] = aten::slice.Tensor(%u, dim=0, start=0, end=4, step=1)
          return %z
        })
      return %rows
    })";
}

TEST(stablehlo, nobody_can_ask_within_a_branch) {
  const std::string open = rows_in_a_branch("%some: int64[4] = aten::neg(%k)");
  EXPECT_THAT(message_of([&] { text_of(open.c_str()); }),
              HasSubstr("nobody can ask whether indices are in range"));
  EXPECT_THAT(module_of(open.c_str(), {.drop_guards = true}).text, HasSubstr("stablehlo.if"));
  const std::string known =
      rows_in_a_branch("%some: int64[4] = aten::clamp(%k, min=scalar(0), max=scalar(4))");
  EXPECT_THAT(module_of(known.c_str()).guards, ElementsAre());
}

TEST(stablehlo, all_that_has_no_form_is_named_at_once) {
  const std::string message = message_of([] {
    text_of(R"(
      graph(%x: float32[4]) {
        %a: float32[4] = aten::bernoulli(%x, none) {effect=1}
        %u: float32[4] = mine::unknown(%x)
        return %a, %u
      })");
  });
  EXPECT_THAT(message, HasSubstr("aten::bernoulli"));
  EXPECT_THAT(message, HasSubstr("mine::unknown"));
}

SavedCapture perceptron() {
  SavedCapture capture;
  capture.graph = parse(R"(
    graph(%x: float32[2, 3], %w: float32[4, 3] parameter "fc.weight") {
      %y: float32[2, 4] = aten::linear(%x, %w, none)
      return %y
    })");
  capture.weights = {{"fc.weight", floats({4, 3}, std::vector<double>(12, 0.5))}};
  return capture;
}

TEST(stablehlo, weights_follow_the_inputs_by_name) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "m.mlir";
  save_stablehlo(perceptron(), file);
  EXPECT_THAT(read_file(file),
              HasSubstr("%fc.weight: tensor<4x3xf32> {flashlight.weight = \"fc.weight\"}"));
  const Safetensors weights = read_safetensors(file.string() + ".safetensors");
  EXPECT_EQ(weights.tensors.at("fc.weight").type().sizes, (Dims{4, 3}));
}

TEST(stablehlo, weights_may_be_parameters_of_the_module) {
  const StableHloModule made = stablehlo_module(perceptron(), "m", {.weights_as_parameters = true});
  EXPECT_THAT(made.text, HasSubstr("#flow.parameter.named<\"model\"::\"fc.weight\">"));
  EXPECT_THAT(made.text, Not(HasSubstr("flashlight.weight")));
  EXPECT_EQ(made.weights.size(), 1u);
}

TEST(stablehlo, a_weight_without_a_value_is_refused) {
  SavedCapture capture = perceptron();
  capture.weights.clear();
  EXPECT_THAT(message_of([&] { stablehlo_module(capture, "m"); }),
              HasSubstr("'fc.weight' has no value"));
}

TEST(stablehlo, rows_are_of_operations_that_there_are) { EXPECT_GT(rows().all().size(), 120u); }

}  // namespace
}  // namespace composit::stablehlo::test
