// Models with bytes that are not what was written: refused as UserError, or legal graphs.
#include <gtest/gtest.h>

#include "composit/interchange/onnx.h"
#include "composit/ir/parse.h"
#include "tests/interchange/onnx_changes.h"
#include "tests/io/temporary_folder.h"

namespace composit::onnx::test {
namespace {

using composit::test::read_file;
using composit::test::TemporaryFolder;

TEST(onnx_fuzz, pictures) {
  const std::vector<Message> windows = {list("kernel_shape", {2, 2}), list("strides", {2, 2}),
                                        list("pads", {0, 1, 0, 1})};
  survives_changes(model(
      {{node("Conv", {"x", "w", "b"}, {"a"}, {list("pads", {1, 1, 1, 1})}),
        node("MaxPool", {"a"}, {"c"}, windows), node("AveragePool", {"c"}, {"d"}, windows),
        node("Resize", {"d", "", "", "sizes"}, {"e"}), node("Pad", {"e", "pads"}, {"f"}),
        node("ConvTranspose", {"f", "w"}, {"g"}, {list("output_shape", {9, 9})}),
        node("Slice", {"g", "zero", "three"}, {"h"}), node("GlobalAveragePool", {"h"}, {"y"})},
       {x_of({1, 2, 4, 4})},
       {y_of({1, 2, 1, 1})},
       {weight("w", {2, 2, 3, 3}), weight("b", {2}), ints("sizes", {1, 2, 4, 4}),
        ints("pads", {0, 0, 1, 1, 0, 0, 1, 1}), ints("zero", {0, 0, 0, 0}),
        ints("three", {1, 2, 3, 3})}}));
}

TEST(onnx_fuzz, sizes) {
  survives_changes(model(
      {{node("Shape", {"x"}, {"s"}), node("ConstantOfShape", {"s"}, {"z"}),
        node("Expand", {"z", "more"}, {"e"}), node("Tile", {"e", "times"}, {"t"}),
        node("Range", {"from", "to", "by"}, {"r"}), node("OneHot", {"r", "to", "values"}, {"o"}),
        node("Reshape", {"t", "flat"}, {"f"}), node("Gather", {"f", "r"}, {"g"}),
        node("Unsqueeze", {"g", "axis"}, {"u"}), node("Mul", {"o", "u"}, {"m"}),
        node("TopK", {"m", "axis1"}, {"k", ""}), node("CumSum", {"k", "from"}, {"c"}),
        node("Trilu", {"c"}, {"d"}), node("ScatterND", {"d", "places", "updates"}, {"y"})},
       {x_of({2, 3})},
       {y_of({4, 1})},
       {ints("more", {2, 2, 3}), ints("times", {1, 2, 1}),
        tensor<int64_t>("from", DType::int64, {}, {0}),
        tensor<int64_t>("to", DType::int64, {}, {4}), tensor<int64_t>("by", DType::int64, {}, {1}),
        tensor<float>("values", DType::float32, {2}, {0, 1}), ints("flat", {-1}), ints("axis", {1}),
        ints("axis1", {1}), tensor<int64_t>("places", DType::int64, {1, 2}, {3, 0}),
        tensor<float>("updates", DType::float32, {1}, {7})}}));
}

TEST(onnx_fuzz, sequences) {
  survives_changes(model(
      {{node("LSTM", {"x", "w", "r", "b"}, {"h"}, {attribute("hidden_size", 2)}),
        node("Squeeze", {"h", "one"}, {"s"}), node("LayerNormalization", {"s", "scale"}, {"n"}),
        node("GRU", {"x", "gw", "gr"}, {"g"}, {attribute("hidden_size", 2)}),
        node("Squeeze", {"g", "one"}, {"q"}),
        node(
            "Attention", {"n", "q", "s"}, {"a"},
            {attribute("q_num_heads", 1), attribute("kv_num_heads", 1), attribute("is_causal", 1)}),
        node("QuantizeLinear", {"a", "step"}, {"u"}),
        node("DequantizeLinear", {"u", "step"}, {"d"}),
        node("Softmax", {"d"}, {"y"}, {attribute("axis", -1)})},
       {x_of({3, 1, 2})},
       {y_of({3, 1, 2})},
       {weight("w", {1, 8, 2}), weight("r", {1, 8, 2}), weight("b", {1, 16}), weight("scale", {2}),
        weight("gw", {1, 6, 2}), weight("gr", {1, 6, 2}), weight("step", {}), ints("one", {1})},
       {},
       24}));
}

TEST(onnx_fuzz, graphs_in_nodes) {
  const auto flag = [](std::string_view name) { return value_info(name, DType::bool_, {}); };
  const auto branch = [](const char* op) {
    return graph({{node(op, {"x"}, {"r"})}, {}, {value_info("r", DType::float32, {2})}});
  };
  const Message body =
      graph({{node("Identity", {"go"}, {"on"}), node("Add", {"v", "f"}, {"next"})},
             {value_info("i", DType::int64, {}), flag("go"), value_info("v", DType::float32, {2})},
             {flag("on"), value_info("next", DType::float32, {2})}});
  Message twice;
  twice.text(field::function_name, "Twice");
  twice.text(field::function_domain, "mine");
  twice.text(field::function_input, "a");
  twice.text(field::function_output, "b");
  twice.message(field::function_node, node("Add", {"a", "a"}, {"b"}));
  twice.message(field::function_opset_import, import("", 20));
  survives_changes(model(
      {{node("Twice", {"x"}, {"t"}, {}, "mine"),
        node("If", {"flag"}, {"f"},
             {attribute("then_branch", branch("Relu")), attribute("else_branch", branch("Neg"))}),
        node("Loop", {"three", "", "t"}, {"l"}, {attribute("body", body)}),
        node("Loop", {"many", "flag", "l"}, {"y"}, {attribute("body", body)})},
       {x_of({2}), flag("flag")},
       {y_of({2})},
       {tensor<int64_t>("three", DType::int64, {}, {3}),
        tensor<int64_t>("many", DType::int64, {}, {100})},
       {twice},
       20,
       {"mine"}}));
}

TEST(onnx_fuzz, models_that_we_write) {
  const TemporaryFolder folder;
  SavedCapture capture;
  capture.graph = parse(R"(
    graph(%x: float32[2, 3], %y: float32[3]) {
      %a: float32[2, 3] = aten::mul.Tensor(%x, %y)
      %s: float32[2, 3] = aten::softmax.int(%a, dim=1, dtype=none)
      %t: float32[3, 2] = aten::permute(%s, dims=[1, 0])
      return %t
    })");
  save_onnx(capture, folder / "m.onnx");
  survives_changes(read_file(folder / "m.onnx"));
}

}  // namespace
}  // namespace composit::onnx::test
