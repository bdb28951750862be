// Models of onnxruntime's own operators, com.microsoft, with bytes that are not what was written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "composit/interchange/onnx_read/rows.h"
#include "tests/interchange/onnx_changes.h"

namespace composit::onnx::test {
namespace {

// One model after the other; remembers the operators.
class Models {
 public:
  std::string fused() {
    return made({{own("BiasGelu", {"x", "b"}, {"a"}), own("FastGelu", {"a", "b"}, {"c"}),
                  own("Gelu", {"c"}, {"d"}), own("QuickGelu", {"d"}, {"e"}),
                  own("SkipLayerNormalization", {"e", "x", "b", "b", "b"}, {"f", "", "", "sum"}),
                  own("SkipSimplifiedLayerNormalization", {"f", "sum", "b"}, {"g"}),
                  own("FusedMatMul", {"g", "x"}, {"y"}, {attribute("transB", 1)})},
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
                      {attribute("axis", 1)}),
                  own("QLinearGlobalAveragePool", {"f", "s", "z", "s", "z"}, {"g"},
                      {attribute("channels_last", 0)}),
                  own("DequantizeLinear", {"g", "s", "z"}, {"y"})},
                 {x_of({1, 2, 2, 2})},
                 {y_of({1, 4, 1, 1})},
                 {weight("s", {}), tensor<uint8_t>("z", DType::uint8, {}, {9})}});
  }

  std::string products() {
    return made(
        {{own("MatMulNBits", {"x", "w", "scales"}, {"a"},
              {attribute("K", 32), attribute("N", 4), attribute("bits", 4),
               attribute("block_size", 16)}),
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
    const Message heads = attribute("num_heads", 2);
    return made({{own("RotaryEmbedding", {"x", "from", "table", "table"}, {"r"}, {heads}),
                  own("Attention", {"r", "w", "b", "mask"}, {"a"}, {heads}),
                  own("MultiHeadAttention", {"a", "x", "r"}, {"m"}, {heads}),
                  own("GroupQueryAttention",
                      {"m", "k", "k", "", "", "last", "all", "table", "table"}, {"y"},
                      {heads, attribute("kv_num_heads", 1), attribute("do_rotary", 1),
                       attribute("local_window_size", 2)})},
                 {x_of({1, 3, 8})},
                 {y_of({1, 3, 8})},
                 {weight("w", {8, 24}), weight("b", {24}), weight("k", {1, 3, 4}),
                  weight("table", {4, 2}), tensor<int64_t>("from", DType::int64, {1}, {0}),
                  tensor<int32_t>("mask", DType::int32, {1}, {2}),
                  tensor<int32_t>("last", DType::int32, {1}, {2}),
                  tensor<int32_t>("all", DType::int32, {}, {3})}});
  }

  const std::set<std::string>& operators() const { return operators_; }

 private:
  Message own(const std::string& op, const Texts& inputs, const Texts& outputs,
              const std::vector<Message>& attributes = {}) {
    operators_.insert(op);
    return node(op, inputs, outputs, attributes, kMicrosoft);
  }
  static std::string made(Parts parts) {
    parts.domains = {std::string(kMicrosoft)};
    return model(parts);
  }

  std::set<std::string> operators_;
};

TEST(onnx_microsoft_fuzz, fused) { survives_changes(Models().fused()); }
TEST(onnx_microsoft_fuzz, integers) { survives_changes(Models().integers()); }
TEST(onnx_microsoft_fuzz, products) { survives_changes(Models().products()); }
TEST(onnx_microsoft_fuzz, attention) { survives_changes(Models().attention()); }

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
