// Products whose weights are integers with scales: tiles read the integers.
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
using test::differences;
using test::given;
using test::weight;
using testing::HasSubstr;
using testing::Not;

// A weight of this dtype whose numbers run through all of an integer dtype.
LazyTensor integers(const std::string& name, const Dims& sizes, DType dtype) {
  std::vector<double> numbers;
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  for (int64_t i = 0; i < count; ++i)
    numbers.push_back(static_cast<double>(i * 37 % 256) - (dtype == DType::int8 ? 128 : 0));
  return held_input(name, array_of(tensor_type(dtype, sizes), numbers), InputKind::buffer);
}
LazyTensor small_integers(const std::string& name, const Dims& sizes, DType dtype) {
  std::vector<double> numbers;
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<double>(i * 5 % 14) - 7);
  return held_input(name, array_of(tensor_type(dtype, sizes), numbers), InputKind::buffer);
}
LazyTensor scales(const Dims& sizes, DType dtype = DType::float32) {
  return weight("scales", sizes, 0.01, dtype);
}

LazyTensor by_channel(int64_t out, int64_t in, bool has_zeros, DType dtype) {
  const ArgumentValue zeros =
      has_zeros ? ArgumentValue(small_integers("zeros", {out}, DType::int32)) : ArgumentValue();
  return apply_one("quantized_decomposed::dequantize_per_channel",
                   {integers("w8", {out, in}, DType::int8), scales({out}), zeros, 0, -128, 127,
                    DType::int8, dtype});
}
// Integers of 4 bits in groups.
LazyTensor by_group(int64_t out, int64_t in, int64_t group, bool has_zeros, DType dtype,
                    DType scale = DType::float32) {
  const LazyTensor w4 =
      apply_one("composit::unpack_int4", {integers("w4", {out, in / 2}, DType::uint8)});
  const ArgumentValue zeros =
      has_zeros ? ArgumentValue(apply_one("composit::unpack_int4",
                                          {integers("z4", {out, in / group / 2}, DType::uint8)}))
                : ArgumentValue();
  return apply_one("quantized_decomposed::dequantize_per_channel_group",
                   {w4, to(scales({out, in / group}, scale), DType::float32), zeros, -8, 7,
                    DType::int8, group, dtype});
}
LazyTensor linear(const LazyTensor& x, const LazyTensor& w) {
  return apply_one("aten::linear", {x, w, weight("b", {w.size(0)}, 0.3, x.dtype())});
}

constexpr int64_t kRows[] = {1, 3, 9, 40};

std::vector<Case> cases_of(DType dtype, int64_t rows) {
  std::vector<Case> cases;
  const auto add = [&](const std::string& text, const LazyTensor& y) {
    cases.push_back(case_of(
        text + " by " + std::to_string(rows) + " rows of " + std::string(name(dtype)), {y}));
  };
  const auto x = [&](int64_t terms) { return given("x", {rows, terms}, 1, dtype); };
  add("int8", linear(x(100), by_channel(70, 100, false, dtype)));
  add("int8 with zeros", linear(x(100), by_channel(65, 100, true, dtype)));
  add("int8, long", linear(x(1536), by_channel(65, 1536, false, dtype)));
  add("int4", relu(linear(x(128), by_group(40, 128, 32, false, dtype))));
  add("int4 with zeros", linear(x(128), by_group(40, 128, 32, true, dtype)));
  add("int4 in groups of 64", linear(x(256), by_group(70, 256, 64, false, dtype, DType::float16)));
  return cases;
}

// A test for each, since compilers take minutes for all.
class MosaicCompressedProduct : public testing::TestWithParam<std::tuple<DType, int64_t>> {};

TEST_P(MosaicCompressedProduct, gives_what_its_definition_says) {
  const auto [dtype, rows] = GetParam();
  EXPECT_EQ(differences(cases_of(dtype, rows)), "");
}
INSTANTIATE_TEST_SUITE_P(All, MosaicCompressedProduct,
                         testing::Combine(testing::Values(DType::float32, DType::bfloat16),
                                          testing::ValuesIn(kRows)),
                         [](const auto& one) {
                           return std::string(name(std::get<0>(one.param))) + "_by_" +
                                  std::to_string(std::get<1>(one.param));
                         });

TEST(MosaicCompressedProducts, are_recognised_by_what_is_computed) {
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16})
    for (const int64_t rows : kRows)
      for (const Case& one : cases_of(dtype, rows))
        EXPECT_THAT(print(plan_of(one.graph)), HasSubstr("weights are int")) << one.text;
  const LazyTensor x = given("x", {3, 64}), codes = integers("w", {32, 64}, DType::uint8);
  // Blocks of 16 terms, as a program writes them itself: (code - 8) * scale.
  const LazyTensor scale = reshape(weight("s", {32, 4}, 0.01), {32, 4, 1}),
                   blocks = reshape(to(codes, DType::float32), {32, 4, 16});
  EXPECT_EQ(
      differences({case_of("blocks", {linear(x, reshape((blocks - 128.0) * scale, {32, 64}))}),
                   case_of("no scale", {linear(x, to(codes, DType::float32))}),
                   case_of("other side", {matmul(x, transpose(to(codes, DType::float32), 0, 1))})}),
      "");
  const Case blocked = case_of("", {linear(x, reshape((blocks - 128.0) * scale, {32, 64}))});
  EXPECT_THAT(print(plan_of(blocked.graph)), HasSubstr("weights are int8 in groups of 16"));
}

// Bytes of blocks whose scales, two bytes at each of `places`, are small numbers of float16.
LazyTensor blocks(int64_t rows, int64_t count, int64_t size, const std::vector<int64_t>& places) {
  std::vector<double> bytes;
  for (int64_t i = 0; i < rows * count * size; ++i)
    bytes.push_back(static_cast<double>(i * 37 % 256));
  for (int64_t block = 0; block < rows * count; ++block)
    for (const int64_t place : places) {
      bytes[static_cast<size_t>(block * size + place)] = static_cast<double>(block * 11 % 256);
      bytes[static_cast<size_t>(block * size + place + 1)] = 0x1c + static_cast<double>(block % 8);
    }
  return held_input("w", array_of(tensor_type(DType::uint8, {rows, count * size}), bytes),
                    InputKind::buffer);
}

TEST(MosaicCompressedProducts, read_blocks_of_gguf_files) {
  struct Format {
    const char* row;
    int64_t columns, size;
    std::vector<int64_t> scales;
    const char* text;
  };
  const Format formats[] = {
      {"gguf::dequantize_q4_0", 32, 18, {0}, "int4 in groups of 32"},
      {"gguf::dequantize_q4_1", 32, 20, {0, 2}, "int4 in groups of 32 with"},
      {"gguf::dequantize_q5_0", 32, 22, {0}, "int8 in groups of 32"},
      {"gguf::dequantize_q5_1", 32, 24, {0, 2}, "int8 in groups of 32 with"},
      {"gguf::dequantize_q8_0", 32, 34, {0}, "int8 in groups of 32"},
      {"gguf::dequantize_q4_K", 256, 144, {0, 2}, "int4 in groups of 32 with"},
      {"gguf::dequantize_q5_K", 256, 176, {0, 2}, "int8 in groups of 32 with"},
      {"gguf::dequantize_q6_K", 256, 210, {208}, "int8 in groups of 16"},
      {"gguf::dequantize_q2_K", 256, 84, {80, 82}, "int4 in groups of 16 with"},
      {"gguf::dequantize_q3_K", 256, 110, {108}, "int4 in groups of 16"},
      {"gguf::dequantize_iq4_nl", 32, 18, {0}, "int8 in groups of 32"},
      {"gguf::dequantize_iq4_xs", 256, 136, {0}, "int8 in groups of 32"}};
  std::vector<Case> cases;
  for (const Format& format : formats) {
    const LazyTensor w = blocks(40, 768 / format.columns, format.size, format.scales);
    cases.push_back(case_of(format.row, {apply_one("aten::linear", {given("x", {2, 768}),
                                                                    apply_one(format.row, {w})})}));
    EXPECT_THAT(print(plan_of(cases.back().graph)),
                HasSubstr(std::string("weights are ") + format.text))
        << format.row;
  }
  EXPECT_EQ(differences(cases), "");
}

// Weights as LibTorch packs them, for each processor it knows, and as torchao keeps them. The rows
// themselves are compared with torch in quantization_test.py.
TEST(MosaicCompressedProducts, read_weights_of_torch_and_torchao) {
  std::vector<Case> cases;
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    const LazyTensor x = given("x", {3, 128}, 1, dtype);
    const auto add = [&](const std::string& text, const LazyTensor& y, const std::string& plan) {
      cases.push_back(case_of(text + " of " + std::string(name(dtype)), {y}));
      EXPECT_THAT(print(plan_of(cases.back().graph)), HasSubstr(plan)) << cases.back().text;
    };
    for (const char* const processor : {"AVX512", "AVX2", "DEFAULT"})
      add(std::string("4 bits for ") + processor,
          apply_one("aten::_weight_int4pack_mm_for_cpu",
                    {x, integers("w4", {112, 64}, DType::uint8), 32,
                     weight("s", {4, 112, 2}, 0.1, dtype), processor}),
          "weights are int4 in groups of 32 with");
    add("8 bits",
        apply_one("aten::_weight_int8pack_mm",
                  {x, integers("w8", {48, 128}, DType::int8), weight("s", {48}, 0.01, dtype)}),
        "weights are int8");
    add("torchao",
        linear(x,
               to(apply_one("torchao::dequantize_affine",
                            {small_integers("w", {48, 128}, DType::int8), Ints{1, 32},
                             weight("s", {48, 4}, 0.1), small_integers("z", {48, 4}, DType::int8),
                             DType::int8, Scalar(int64_t{-8}), Scalar(int64_t{7})}),
                  dtype)),
        "weights are int8 in groups of 32");
  }
  EXPECT_EQ(differences(cases), "");
}

// Both sides against the same graph in float64.
TEST(MosaicCompressedProducts, are_near_float64) {
  for (const int64_t rows : {1, 20}) {
    const LazyTensor x = given("x", {rows, 1024});
    const Case compressed = case_of("", {linear(x, by_group(64, 1024, 32, false, DType::float32))}),
               exact = case_of(
                   "",
                   {to(apply_one("aten::linear",
                                 {to(x, DType::float64),
                                  to(by_group(64, 1024, 32, false, DType::float32), DType::float64),
                                  to(weight("b", {64}), DType::float64)}),
                       DType::float32)});
    const Array expected = evaluate(exact.graph, exact.values)[0];
    const Array received =
        test::compiled(compressed.graph, compressed.values)(compressed.values)[0];
    EXPECT_EQ(difference(received, expected), "");
  }
}

// What is no integer with a scale for several terms is a matrix of numbers.
TEST(MosaicCompressedProducts, others_are_numbers) {
  const LazyTensor x = given("x", {3, 64}), codes = integers("w", {32, 64}, DType::int8);
  const LazyTensor real = to(codes, DType::float32);
  const std::vector<std::pair<std::string, LazyTensor>> weights = {
      {"a scale per element", real * weight("s", {32, 64})},
      {"a scale per term", real * weight("s", {64})},
      {"integers of 32 bits", to(integers("w", {32, 64}, DType::int32), DType::float32)},
      {"a difference that wraps around",
       to(codes - integers("z", {32, 1}, DType::int8), DType::float32)},
      {"a difference that a cast wraps around",
       to(to(to(codes, DType::int32) - integers("z", {32, 1}, DType::int32), DType::int8),
          DType::float32)},
      {"a function", relu(real)},
      {"floats", weight("w", {32, 64})}};
  std::vector<Case> cases;
  for (const auto& [text, w] : weights) {
    cases.push_back(case_of(text, {apply_one("aten::linear", {x, w})}));
    EXPECT_THAT(print(plan_of(cases.back().graph)), Not(HasSubstr("weights are int"))) << text;
  }
  EXPECT_EQ(differences(cases), "");
}

// A group that is odd ends within a pair of bfloat16.
TEST(MosaicCompressedProducts, have_odd_groups) {
  std::vector<Case> cases;
  for (const DType dtype : {DType::float32, DType::bfloat16})
    for (const int64_t rows : {1, 9})
      cases.push_back(
          case_of(std::string(name(dtype)),
                  {linear(given("x", {rows, 101}, 1, dtype), by_channel(70, 101, false, dtype))}));
  EXPECT_EQ(differences(cases), "");
}

// The numbers of the weight are no value in memory, neither prepared nor before.
TEST(MosaicCompressedProducts, take_the_memory_of_their_codes) {
  constexpr int64_t kOut = 512, kIn = 1024;
  const Case one =
      case_of("", {linear(given("x", {1, kIn}),
                          by_group(kOut, kIn, 32, false, DType::float32, DType::float16))});
  const Plan plan = plan_of(one.graph);
  constexpr int64_t kCodes = kOut * kIn / 2, kScales = kOut * kIn / 32 * 2;
  EXPECT_EQ(plan.prepared_bytes, kCodes + kScales);
  // Codes as bytes, and scales, before they are packed.
  EXPECT_EQ(plan.preparation_bytes, plan.prepared_bytes + 2 * kCodes + kScales);
}

}  // namespace
}  // namespace flashlight::mosaic
