// Models of onnxruntime's own operators, com.microsoft, with bytes that are not what was written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <set>

#include "composit/interchange/onnx_read/rows.h"
#include "tests/interchange/onnx_changes.h"

namespace composit::onnx::test {
namespace {

// One model after the other; remembers the operators.
class Models {
 public:
  Models() = default;
  // With another value for one of the attributes, by its place among those of a model.
  Models(size_t place, int64_t value) : changed_(place), value_(value) {}

  std::string fused() {
    return made({{own("BiasGelu", {"x", "b"}, {"a"}), own("FastGelu", {"a", "b"}, {"c"}),
                  own("Gelu", {"c"}, {"d"}), own("QuickGelu", {"d"}, {"e"}),
                  own("SkipLayerNormalization", {"e", "x", "b", "b", "b"}, {"f", "", "", "sum"}),
                  own("SkipSimplifiedLayerNormalization", {"f", "sum", "b"}, {"g"}),
                  own("FusedMatMul", {"g", "x"}, {"y"}, {number("transB", 1)})},
                 {x_of({2, 3, 4})},
                 {y_of({2, 3, 3})},
                 {weight("b", {4})}});
  }

  std::string integers() {
    return made({{own("QuantizeLinear", {"x", "s", "z"}, {"a"}),
                  own("QLinearAdd", {"a", "s", "z", "a", "s", "z", "s", "z"}, {"b"}),
                  own("QLinearMul", {"b", "s", "z", "a", "s", "z", "s", "z"}, {"c"}),
                  own("QLinearSigmoid", {"c", "s", "z", "s", "z"}, {"d"}),
                  own("QLinearLeakyRelu", {"d", "s", "z", "s", "z"}, {"e"}),
                  own("QLinearConcat", {"s", "z", "e", "s", "z", "a", "s", "z"}, {"f"},
                      {number("axis", 1)}),
                  own("QLinearGlobalAveragePool", {"f", "s", "z", "s", "z"}, {"g"},
                      {number("channels_last", 0)}),
                  own("DequantizeLinear", {"g", "s", "z"}, {"y"})},
                 {x_of({1, 2, 2, 2})},
                 {y_of({1, 4, 1, 1})},
                 {weight("s", {}), tensor<uint8_t>("z", DType::uint8, {}, {9})}});
  }

  std::string products() {
    return made(
        {{own("MatMulNBits", {"x", "w", "scales"}, {"a"},
              {number("K", 32), number("N", 4), number("bits", 4), number("block_size", 16)}),
          own("DynamicQuantizeMatMul", {"a", "v", "s", "z"}, {"c"}),
          own("QuantizeLinear", {"c", "s", "z"}, {"d"}),
          own("MatMulIntegerToFloat", {"d", "u", "s", "s", "z", "z"}, {"y"})},
         {x_of({2, 32})},
         {y_of({2, 2})},
         {tensor("w", DType::uint8, {4, 2, 8}, std::vector<uint8_t>(64, 0x3a)),
          weight("scales", {4, 2}), tensor("v", DType::uint8, {4, 3}, std::vector<uint8_t>(12, 7)),
          tensor("u", DType::uint8, {3, 2}, std::vector<uint8_t>(6, 11)), weight("s", {}),
          tensor<uint8_t>("z", DType::uint8, {}, {9})}});
  }

  std::string attention() {
    const Message heads = number("num_heads", 2);
    return made({{own("RotaryEmbedding", {"x", "from", "table", "table"}, {"r"}, {heads}),
                  own("Attention", {"r", "w", "b", "mask"}, {"a"}, {heads}),
                  own("MultiHeadAttention", {"a", "x", "r"}, {"m"}, {heads}),
                  own("GroupQueryAttention",
                      {"m", "k", "k", "", "", "last", "all", "table", "table"}, {"y"},
                      {heads, number("kv_num_heads", 1), number("do_rotary", 1),
                       number("local_window_size", 2)})},
                 {x_of({1, 3, 4})},
                 {y_of({1, 3, 4})},
                 {weight("w", {4, 12}), weight("b", {12}), weight("k", {1, 3, 2}),
                  weight("table", {4, 1}), tensor<int64_t>("from", DType::int64, {1}, {0}),
                  tensor<int32_t>("mask", DType::int32, {1}, {2}),
                  tensor<int32_t>("last", DType::int32, {1}, {2}),
                  tensor<int32_t>("all", DType::int32, {}, {3})}});
  }

  size_t numbers() const { return numbers_; }
  const std::set<std::string>& operators() const { return operators_; }

 private:
  Message own(const std::string& op, const Texts& inputs, const Texts& outputs,
              const std::vector<Message>& attributes = {}) {
    operators_.insert(op);
    return node(op, inputs, outputs, attributes, kMicrosoft);
  }
  Message number(std::string_view name, int64_t value) {
    return attribute(name, changed_ == numbers_++ ? value_ : value);
  }
  static std::string made(Parts parts) {
    parts.domains = {std::string(kMicrosoft)};
    return model(parts);
  }

  std::set<std::string> operators_;
  size_t numbers_ = 0;
  std::optional<size_t> changed_ = {};
  int64_t value_ = 0;
};

TEST(onnx_microsoft_fuzz, fused) { survives_changes(Models().fused()); }
TEST(onnx_microsoft_fuzz, integers) { survives_changes(Models().integers()); }
TEST(onnx_microsoft_fuzz, products) { survives_changes(Models().products()); }
TEST(onnx_microsoft_fuzz, attention) { survives_changes(Models().attention()); }

TEST(onnx_microsoft_fuzz, attributes_at_their_limits) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  using Make = std::string (Models::*)();
  for (const Make make :
       {&Models::fused, &Models::integers, &Models::products, &Models::attention}) {
    Models shown;
    (shown.*make)();
    EXPECT_GT(shown.numbers(), 0U);
    for (size_t place = 0; place < shown.numbers(); ++place)
      for (const int64_t value : {-kMost - 1, -kMost, int64_t{-1}, int64_t{0}, int64_t{1},
                                  int64_t{1} << 31, int64_t{1} << 32, int64_t{1} << 62, kMost}) {
        SCOPED_TRACE("number " + std::to_string(place) + " is " + std::to_string(value));
        survives((Models(place, value).*make)(), true);
      }
  }
}

TEST(onnx_microsoft_fuzz, has_all_operators_that_are_read) {
  Models models;
  models.fused(), models.integers(), models.products(), models.attention();
  std::set<std::string> known;
  for (const onnx_read::Row& row : onnx_read::all_rows(kMicrosoft)) known.emplace(row.op);
  EXPECT_GT(known.size(), 0U);
  EXPECT_EQ(models.operators(), known);
}

}  // namespace
}  // namespace composit::onnx::test
