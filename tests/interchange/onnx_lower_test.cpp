// Graphs of ATen's operators as graphs of ONNX's, as text; models as bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "composit/eval/evaluate.h"
#include "composit/interchange/onnx.h"
#include "composit/interchange/onnx/lower.h"
#include "composit/interchange/onnx/model.h"
#include "composit/interchange/onnx/rows.h"
#include "composit/interchange/onnx/wire.h"
#include "composit/ir/parse.h"
#include "composit/ir/print.h"
#include "tests/io/temporary_folder.h"
#include "tests/user_error.h"

namespace composit::onnx::test {
namespace {

using composit::test::message_of;
using composit::test::read_file;
using composit::test::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string text_of(const char* graph) { return print(lower(parse(graph)).graph); }

// The names of a graph's operators, in order.
std::vector<std::string> operators_of(const Graph& graph) {
  std::vector<std::string> names;
  for (const NodePtr& node : graph.nodes())
    if (!is_input(*node) && node->op() != ops::kConstant) names.push_back(node->op().str());
  return names;
}

TEST(onnx, operators_that_there_are_are_taken) {
  const std::string text = text_of(R"(
    graph(%x: float32[2, 3], %w: float32[4, 3], %b: float32[4]) {
      %linear: float32[2, 4] = aten::linear(%x, %w, %b)
      %relu: float32[2, 4] = aten::relu(%linear)
      return %relu
    })");
  EXPECT_THAT(text, HasSubstr("onnx::Gemm(%x, %w, %b, transB=1)"));
  EXPECT_THAT(text, HasSubstr("onnx::Relu(%Gemm)"));
  EXPECT_THAT(text, Not(HasSubstr("aten::")));
}

TEST(onnx, others_become_what_their_definitions_say) {
  const Lowered hardsigmoid = lower(parse(R"(
    graph(%x: float32[3]) {
      %y: float32[3] = aten::hardsigmoid(%x)
      return %y
    })"));
  EXPECT_THAT(operators_of(hardsigmoid.graph), ::testing::Contains("onnx::Where"));
  EXPECT_THAT(print(hardsigmoid.graph), Not(HasSubstr("aten::")));
}

TEST(onnx, numbers_keep_their_part_in_promotion) {
  const std::string text = text_of(R"(
    graph(%x: int64[3]) {
      %c: float64[] = composit::constant(value=array(float64[], [2.5]), wrapped=true)
      %y: float32[3] = aten::mul.Tensor(%x, %c)
      return %y
    })");
  EXPECT_THAT(text, HasSubstr("float32[3] = onnx::Mul"));
  EXPECT_THAT(text, HasSubstr("onnx::Cast(%x, to=1)"));
}

TEST(onnx, a_guard_is_an_output) {
  const Lowered lowered = lower(parse(R"(
    graph(%x: float32[3]) {
      %sum: float32[] = aten::sum(%x)
      aten::_local_scalar_dense(%sum) {expected=[scalar(2.5)], effect=0}  # source="a.cpp:7"
      return %x
    })"));
  EXPECT_EQ(lowered.graph.outputs().size(), 2);
  EXPECT_EQ(lowered.graph.outputs()[1].dtype(), DType::bool_);
  EXPECT_TRUE(lowered.graph.effects().empty());
  EXPECT_THAT(lowered.guards, ElementsAre("aten::_local_scalar_dense at a.cpp:7 is scalar(2.5)"));
}

TEST(onnx, a_size_that_follows_from_values_is_an_output) {
  const Lowered lowered = lower(parse(R"(
    graph(%x: float32[3]) {
      %places: int64[2, 1] = aten::nonzero(%x)
      return %places
    })"));
  EXPECT_THAT(operators_of(lowered.graph),
              ElementsAre("onnx::NonZero", "onnx::Transpose", "onnx::Size", "onnx::Equal"));
  EXPECT_THAT(lowered.guards, ElementsAre(HasSubstr("number of elements of nonzero is 2")));
}

TEST(onnx, refuses_all_that_has_no_operators) {
  const std::string message = message_of([] {
    lower(parse(R"(
      graph(%x: float32[3]) {
        %a: float32[3] = mine::other(%x)  # source="a.cpp:1"
        %b: float32[3] = mine::unknown(%a)  # source="a.cpp:2"
        return %b
      })"));
  });
  EXPECT_THAT(message, HasSubstr("mine::other at a.cpp:1"));
  EXPECT_THAT(message, HasSubstr("mine::unknown at a.cpp:2"));
}

TEST(onnx, a_program_that_gives_no_tensor_is_no_model) {
  EXPECT_THAT(message_of([] { lower(parse("graph(%x: float32[3]) {\n  return\n}")); }),
              HasSubstr("at least one output"));
}

TEST(onnx, complex_inputs_and_results_have_an_axis_for_their_parts) {
  const Graph graph = lower(parse(R"(
      graph(%z: complex64[3]) {
        %w: complex64[3] = aten::conj_physical(%z)
        return %w
      })"))
                          .graph;
  EXPECT_EQ(graph.inputs()[0].type(), tensor_type(DType::float32, {3, 2}));
  EXPECT_EQ(graph.outputs()[0].type(), tensor_type(DType::float32, {3, 2}));
}

TEST(onnx, draws_have_no_operators) {
  EXPECT_THAT(message_of([] {
                lower(parse(R"(
      graph(%x: float32[3]) {
        %a: float32[3] = aten::rand_like(%x, dtype=none, layout=none, device=none, pin_memory=none, memory_format=none) {effect=0}
        return %a
      })"));
              }),
              HasSubstr("aten::rand_like"));
}

TEST(onnx, rows_are_of_operations_that_there_are) { EXPECT_GT(rows(20).all().size(), 120); }

// Examples of https://protobuf.dev/programming-guides/encoding.
TEST(onnx, wire_format) {
  Message integer;
  integer.integer(1, 150);
  EXPECT_EQ(integer.bytes(), "\x08\x96\x01");
  Message text;
  text.text(2, "testing");
  EXPECT_EQ(text.bytes(), "\x12\x07testing");
  Message outer;
  outer.message(3, integer);
  EXPECT_EQ(outer.bytes(), std::string("\x1a\x03\x08\x96\x01"));
  Message negative;
  negative.integer(1, -1);
  EXPECT_EQ(negative.bytes().size(), 11);
  Message real;
  real.real(2, 1.0f);
  EXPECT_EQ(real.bytes(), std::string("\x15\0\0\x80\x3f", 5));
}

TEST(onnx, weights_lie_beside_the_model_once_and_at_pages) {
  const TemporaryFolder folder;
  const Type type = tensor_type(DType::float32, {64, 64});
  const std::vector<float> values(64 * 64, 1.5f);
  const Array weight = Array::copy_of(type, values.data());
  const LazyTensor x = input("x", type), a = input("a", type, InputKind::parameter),
                   b = input("b", type, InputKind::parameter);
  const auto add = [](const LazyTensor& p, const LazyTensor& q) {
    return NodeSpec("aten::add.Tensor")
        .tensor(p)
        .tensor(q)
        .attribute("alpha", Scalar(int64_t{1}))
        .output(p.type())
        .make();
  };
  const Graph graph({.inputs = {x, a, b}, .outputs = {add(add(x, a), b)}});
  save_onnx({.graph = graph, .weights = {{"a", weight}, {"b", weight}}}, folder / "m.onnx");
  EXPECT_THAT(folder.list(), ElementsAre("m.onnx", "m.onnx.data"));
  EXPECT_EQ(std::filesystem::file_size(folder / "m.onnx.data"), 64 * 64 * 4);
  EXPECT_LT(std::filesystem::file_size(folder / "m.onnx"), 2000);
}

TEST(onnx, nothing_is_written_of_what_is_refused) {
  const TemporaryFolder folder;
  const LazyTensor x = input("x", tensor_type(DType::float32, {3}));
  const Graph graph(
      {.inputs = {x}, .outputs = {NodeSpec("mine::one").tensor(x).output(x.type()).make()}});
  EXPECT_THAT(message_of([&] { save_onnx({.graph = graph}, folder / "m.onnx"); }),
              HasSubstr("mine::one"));
  EXPECT_THAT(message_of([&] {
                save_onnx({.graph = Graph({.inputs = {x}, .outputs = {x}})}, folder / "m.onnx",
                          {.opset = 12});
              }),
              HasSubstr("expected an opset from 20 to 24, received 12"));
  EXPECT_TRUE(folder.list().empty());
}

}  // namespace
}  // namespace composit::onnx::test
