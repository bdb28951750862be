// Quantized captures without LibTorch: what is stored, which layers, what is refused. Values of
// methods are compared with torch in tests/frontends/python/quantize_test.py.
#include "composit/quantize/quantize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "composit/eval/evaluate.h"
#include "composit/io/gguf.h"
#include "composit/io/safetensors.h"
#include "composit/ir/parse.h"
#include "composit/ir/verify.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"
#include "tests/agreement.h"
#include "tests/user_error.h"

namespace composit::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<double> waves(int64_t count, double step) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(std::sin(static_cast<double>(i) * step + 1));
  return values;
}

SavedCapture capture_of(const std::string& text) {
  SavedCapture capture{.graph = parse(text), .producer = "a test"};
  double step = 0.7;
  for (const LazyTensor& input : capture.graph.inputs()) {
    const Array value = array_of(input.type(), waves(input.numel(), step += 0.13));
    if (input_kind(*input.node) == InputKind::user_input)
      capture.example_inputs.push_back(value);
    else
      capture.weights[input_name(*input.node)] = value;
  }
  std::vector<Array> inputs;
  size_t next = 0;
  for (const LazyTensor& input : capture.graph.inputs())
    inputs.push_back(input_kind(*input.node) == InputKind::user_input
                         ? capture.example_inputs[next++]
                         : capture.weights.at(input_name(*input.node)));
  capture.example_outputs = evaluate(capture.graph, inputs);
  return capture;
}

constexpr const char* kLinear = R"(graph(%x: float32[3, 8], %w: float32[4, 8] parameter) {
  %y: float32[3, 4] = aten::linear(%x, %w, none)
  return %y
})";

// Rows of w, each with one scale: round(w / s) of the largest |w| = 7.5 s, by hand.
TEST(Quantize, bytes_hold_the_low_half_first) {
  SavedCapture capture = capture_of(kLinear);
  const std::vector<double> row = {7.5, -7.5, 1, -1, 2.4, -2.6, 0, 3};
  std::vector<double> all;
  for (const double factor : {1.0, 2.0, 0.5, 4.0})
    for (const double x : row) all.push_back(factor * x);
  capture.weights["w"] = array_of(tensor_type(DType::float32, {4, 8}), all);
  const Quantized small = quantize(capture, {.weights = {.bits = 4}});
  verify(small.capture.graph);
  const Array& bytes = small.capture.weights.at("w.int4");
  EXPECT_EQ(type_text(bytes.type()), "uint8[4, 4]");
  // 7 (8 is out of range), -8; 1, -1; 2, -3; 0, 3
  std::vector<int64_t> row_of_bytes = elements<int64_t>(bytes);
  row_of_bytes.resize(4);
  EXPECT_THAT(row_of_bytes, ElementsAre(0x87, 0xF1, 0xD2, 0x30));
  EXPECT_THAT(elements<double>(small.capture.weights.at("w.scales")), ElementsAre(1, 2, 0.5, 4));
  EXPECT_FALSE(small.capture.weights.contains("w"));
  ASSERT_EQ(small.layers.size(), 1U);
  EXPECT_EQ(small.layers[0].bytes_before, 128);
  EXPECT_EQ(small.layers[0].bytes_after, 16 + 16);
}

TEST(Quantize, all_spellings_of_a_product_are_found) {
  const Quantized small = quantize(capture_of(R"(
    graph(%x: float32[3, 8], %a: float32[8, 4] parameter, %b: float32[4, 6] parameter,
          %c: float32[6, 8] parameter, %d: float32[8] parameter, %e: float32[2, 8] parameter,
          %f: float32[3, 2] parameter) {
      %p: float32[3, 4] = aten::mm(%x, %a)
      %q: float32[3, 6] = aten::matmul(%p, %b)
      %r: float32[3, 8] = aten::addmm(%d, %q, %c, beta=scalar(1), alpha=scalar(1))
      %t: float32[8, 2] strides=[1, 8] = aten::t(%e)
      %s: float32[3, 2] = aten::mm(%r, %t)
      %u: float32[3, 2] = aten::add.Tensor(%s, %f, alpha=scalar(1))
      return %u
    })"));
  std::vector<std::string> names;
  for (const QuantizedLayer& layer : small.layers) {
    EXPECT_EQ(layer.left, "");
    EXPECT_LT(layer.output_error.value(), 0.05);  // half a step of 255, where sums cancel
    names.push_back(layer.weight);
  }
  EXPECT_THAT(names, ElementsAre("a", "b", "c", "e"));
  EXPECT_LT(small.error.value(), 0.05);
  // [out, in], whichever way the program has them.
  EXPECT_EQ(type_text(small.capture.weights.at("a.int8").type()), "int8[4, 8]");
  EXPECT_EQ(type_text(small.capture.weights.at("e.int8").type()), "int8[2, 8]");
}

TEST(Quantize, results_are_those_of_the_new_graph) {
  const SavedCapture capture = capture_of(kLinear);
  const Quantized small = quantize(capture, {.activations = Activations::by_token});
  std::vector<Array> inputs = capture.example_inputs;
  for (size_t i = 1; i < small.capture.graph.inputs().size(); ++i)
    inputs.push_back(small.capture.weights.at(input_name(*small.capture.graph.inputs()[i].node)));
  EXPECT_EQ(differences(small.capture.example_outputs, evaluate(small.capture.graph, inputs)), "");
  // int8 on both sides: about a hundredth.
  const auto before = elements<double>(capture.example_outputs[0]);
  const auto after = elements<double>(small.capture.example_outputs[0]);
  for (size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(after[i], before[i], 0.05);
}

TEST(Quantize, report_says_what_a_person_needs) {
  const Quantized small = quantize(capture_of(kLinear));
  const std::string text = str(small);
  EXPECT_THAT(text, HasSubstr("1 of 1 layers are quantized"));
  EXPECT_THAT(text, HasSubstr("the layer that is off most: w"));
  EXPECT_THAT(text, HasSubstr("on the examples, results are off by"));
}

// Scales are rounded before integers are found: 3.3 / 7.5 = 0.44 is 0.43994 in float16
// (0x1.c28p-2), 0.439453 in bfloat16.
TEST(Quantize, scales_are_stored_in_16_bits) {
  SavedCapture capture = capture_of(kLinear);
  const std::vector<double> row = {3.3, -3.3, 0.22, 0.2199, 1, -1, 2, 0};
  std::vector<double> all;
  for (int i = 0; i < 4; ++i) all.insert(all.end(), row.begin(), row.end());
  capture.weights["w"] = array_of(tensor_type(DType::float32, {4, 8}), all);
  for (const auto& [dtype, scale] :
       {std::pair(DType::float16, 0.43994140625), std::pair(DType::bfloat16, 0.439453125)}) {
    const Quantized small = quantize(capture, {.weights = {.bits = 8, .scales = dtype}});
    const double step = scale / 17;  // 3.3 / 127.5
    EXPECT_EQ(small.capture.weights.at("w.scales").type().dtype, dtype);
    EXPECT_NEAR(elements<double>(small.capture.weights.at("w.scales"))[0], step, step * 0x1p-7);
    EXPECT_EQ(small.layers[0].bytes_after, 32 + 8);
    const Quantized nibbles = quantize(capture, {.weights = {.bits = 4, .scales = dtype}});
    EXPECT_EQ(elements<double>(nibbles.capture.weights.at("w.scales"))[0], scale);
    // 0.22 is half of 0.44, and more than half of both others; 0.2199 is that of one of them.
    EXPECT_EQ(elements<int64_t>(nibbles.capture.weights.at("w.int4"))[1],
              dtype == DType::float16 ? 0x01 : 0x11);
    verify(small.capture.graph);
  }
  EXPECT_THAT(user_error([&] {
                static_cast<void>(quantize(capture, {.weights = {.scales = DType::int8}}));
              }).value_or(""),
              HasSubstr("expected scales of float32, float16 or bfloat16, received int8"));
}

TEST(Quantize, says_what_is_wrong) {
  const auto says = [](const SavedCapture& capture, const QuantizeOptions& options,
                       const std::string& part) {
    EXPECT_THAT(user_error([&] { quantize(capture, options); }).value_or("no error"),
                HasSubstr(part));
  };
  const SavedCapture capture = capture_of(kLinear);
  says(capture, {.weights = {.bits = 3}}, "expected weights of 8 or 4 bits, received 3");
  says(capture, {.weights = {.bits = 4, .group = 1}}, "expected groups of 2 or more");
  says(capture, {.weights = {.bits = 8, .group = 3}},
       "groups of 3 do not divide 'w' with 8 inputs: leave these out");
  says(capture, {.layers = {"v*"}}, "no weight of a layer is called 'v*'; there are 1: w");
  says(capture, {.max_error = -1.0}, "an error above 0");
  says(capture, {.examples = {{}}}, "expected examples of 1 arrays");
  SavedCapture infinite = capture;
  auto values = elements<double>(capture.weights.at("w"));
  values[9] = INFINITY;
  infinite.weights["w"] = array_of(capture.weights.at("w").type(), values);
  says(infinite, {}, "weight 'w' has the element inf at place 9 of 32");
  SavedCapture without = capture;
  without.example_inputs.clear();
  says(without, {.method = QuantizeMethod::gptq}, "need examples, and the capture has none");
  without.weights.clear();
  says(without, {}, "weight 'w' has no value");
  says(capture_of("graph(%x: float32[3]) {\n  %y: float32[3] = aten::exp(%x)\n  return %y\n}"), {},
       "there is no layer to quantize");
}

TEST(WithValues, blocks_of_a_file_are_weights) {
  const std::filesystem::path folder = FLASHLIGHT_SOURCE_DIR "/tests/io/gguf";
  const Gguf file = read_gguf(folder / "formats.gguf");
  const Safetensors numbers = read_safetensors(folder / "formats.safetensors");
  const SavedCapture capture = capture_of(
      "graph(%x: float32[3, 768], %w: float32[2, 768] parameter) {\n"
      "  %y: float32[3, 2] = aten::linear(%x, %w, none)\n  return %y\n}");
  for (const char* format : {"q4_1", "q5_1"}) {
    const SavedCapture mapped =
        with_values(capture, {{"w", numbers_of("w", file.tensors.at(format))}});
    verify(mapped.graph);
    // The bytes of the file themselves.
    EXPECT_EQ(mapped.weights.at("w").data(), file.tensors.at(format).data.data());
    const Array y = evaluate(mapped.graph, {capture.example_inputs[0], mapped.weights.at("w")})[0];
    const auto x = elements<double>(capture.example_inputs[0]);
    const auto w = elements<double>(numbers.tensors.at(format));
    for (size_t i = 0; i < 3; ++i)
      for (size_t j = 0; j < 2; ++j) {
        double sum = 0, size = 0;
        for (size_t k = 0; k < 768; ++k) {
          sum += x[i * 768 + k] * w[j * 768 + k];
          size += std::abs(x[i * 768 + k] * w[j * 768 + k]);
        }
        EXPECT_NEAR(elements<double>(y)[i * 2 + j], sum, 1e-6 * size);
      }
  }
  EXPECT_THAT(user_error([&] {
                with_values(capture, {{"w", numbers_of("x", file.tensors.at("q4_1"))}});
              }).value_or("no error"),
              HasSubstr("two inputs would be called 'x'"));
  EXPECT_THAT(user_error([&] {
                with_values(capture, {{"v", numbers_of("v", file.tensors.at("f32"))}});
              }).value_or("no error"),
              HasSubstr("no weight is called 'v'"));
  EXPECT_THAT(user_error([&] {
                with_values(capture, {{"w", numbers_of("w", file.tensors.at("f32"))}});
              }).value_or("no error"),
              HasSubstr("expected float32[2, 768] for 'w', received float32[2, 3, 4]"));
}

}  // namespace
}  // namespace composit::test
