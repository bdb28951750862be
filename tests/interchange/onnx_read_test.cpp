// ONNX models made by hand, as graphs: what they hold, and what is said of those that are none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "composit/eval/evaluate.h"
#include "composit/family/saved_family.h"
#include "composit/interchange/onnx.h"
#include "composit/interchange/onnx_read/rows.h"
#include "composit/ir/print.h"
#include "composit/ir/verify.h"
#include "composit/ops/native.h"
#include "tests/interchange/onnx_models.h"
#include "tests/io/temporary_folder.h"
#include "tests/user_error.h"

namespace composit::onnx::test {
namespace {

using composit::test::MemoryFile;
using composit::test::message_of;
using composit::test::TemporaryFolder;
using composit::test::write_file;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

SavedCapture read(const std::string& bytes, const OnnxReadOptions& options = {}) {
  const MemoryFile file;
  file.write(bytes);
  return load_onnx(file.path(), options);
}
std::string refusal(const std::string& bytes, const OnnxReadOptions& options = {}) {
  return message_of([&] { read(bytes, options); });
}

Array floats(const Dims& sizes, const std::vector<double>& values) {
  return array_of(tensor_type(DType::float32, sizes), values);
}
// The first result for arguments, which the weights follow.
std::vector<double> result_of(const SavedCapture& capture, std::vector<Array> arguments) {
  for (const LazyTensor& input : capture.graph.inputs())
    if (input.node->held().defined())
      arguments.push_back(capture.weights.at(input_name(*input.node)));
  return elements<double>(evaluate(capture.graph, arguments).at(0));
}

Parts relu() { return {{node("Relu", {"x"}, {"y"})}, {x_of({2, 3})}, {y_of({2, 3})}}; }

TEST(onnx_read, nodes_become_operators_of_aten) {
  const SavedCapture capture = read(model(relu()));
  EXPECT_EQ(
      print(capture.graph),
      "graph(%x: float32[2, 3]) {\n  %relu: float32[2, 3] = aten::relu(%x)\n  return %relu\n}\n");
  EXPECT_EQ(capture.producer, "ONNX of a test");
  EXPECT_EQ(capture.properties.at("results"), R"({"map":[["y","tensor"]]})");
  EXPECT_EQ(capture.properties.at("arguments"), R"({"tuple":[{"tuple":["tensor"]},{"map":[]}]})");
  EXPECT_TRUE(capture.schemas.empty());  // composit's own, whose text is not LibTorch's
}

TEST(onnx_read, initializers_are_weights_and_inputs_that_have_one_are_none) {
  Parts parts{{node("MatMul", {"x", "w"}, {"h"}), node("Add", {"h", "b"}, {"y"})},
              {x_of({1, 2}), value_info("w", DType::float32, {2, 2})},
              {y_of({1, 2})},
              {tensor<float>("w", DType::float32, {2, 2}, {1, 2, 3, 4}),
               tensor<float>("b", DType::float32, {2}, {10, 20}),
               tensor<float>("unused", DType::float32, {1}, {0})}};
  const SavedCapture capture = read(model(parts));
  EXPECT_EQ(capture.graph.inputs().size(), 3U);
  EXPECT_EQ(capture.weights.size(), 2U);
  EXPECT_EQ(input_kind(*capture.graph.inputs()[1].node), InputKind::parameter);
  EXPECT_THAT(result_of(capture, {floats({1, 2}, {1, 1})}), ElementsAre(14, 26));
}

// As exporters write them that have no initializers: a matrix, and numbers of the program.
TEST(onnx_read, constants_that_are_matrices_are_weights) {
  const auto constant = [](const char* name, const Message& value) {
    return node("Constant", {}, {name}, {tensor_attribute("value", value)});
  };
  Parts parts{{constant("w", tensor<float>("", DType::float32, {2, 2}, {1, 2, 3, 4})),
               constant("b", tensor<float>("", DType::float32, {1, 2}, {10, 20})),
               constant("n", tensor<int64_t>("", DType::int64, {2, 2}, {1, 1, 1, 1})),
               node("MatMul", {"x", "w"}, {"h"}), node("Add", {"h", "b"}, {"s"}),
               node("Cast", {"n"}, {"f"}, {attribute("to", data_type_of(DType::float32))}),
               node("Add", {"s", "f"}, {"y"})},
              {x_of({2, 2})},
              {y_of({2, 2})}};
  const SavedCapture capture = read(model(parts));
  ASSERT_EQ(capture.weights.size(), 1U);
  EXPECT_EQ(capture.weights.begin()->first, "w");
  EXPECT_EQ(input_kind(*capture.graph.inputs()[1].node), InputKind::parameter);
  EXPECT_THAT(result_of(capture, {floats({2, 2}, {1, 1, 0, 2})}), ElementsAre(15, 27, 17, 29));
}

// The branch is not known, so that its graph is a function, which weights lie outside of.
TEST(onnx_read, constants_of_branches_are_weights_too) {
  const auto branch = [](float factor) {
    const Message value = tensor<float>("", DType::float32, {2, 2}, {factor, 0, 0, factor});
    return graph({{node("Constant", {}, {"w"}, {tensor_attribute("value", value)}),
                   node("MatMul", {"x", "w"}, {"h"})},
                  {},
                  {value_info("h", DType::float32, {1, 2})}});
  };
  Parts parts{{node("If", {"c"}, {"y"},
                    {attribute("then_branch", branch(2)), attribute("else_branch", branch(3))})},
              {x_of({1, 2}), value_info("c", DType::bool_, {})},
              {y_of({1, 2})}};
  const SavedCapture capture = read(model(parts));
  EXPECT_EQ(capture.weights.size(), 2U);
  const Array x = floats({1, 2}, {1, 5});
  const auto known = [](int64_t value) {
    return array_of(tensor_type(DType::bool_, {}), std::vector<int64_t>{value});
  };
  EXPECT_THAT(result_of(capture, {x, known(1)}), ElementsAre(2, 10));
  EXPECT_THAT(result_of(capture, {x, known(0)}), ElementsAre(3, 15));
}

TEST(onnx_read, elements_stand_in_fields_of_their_type_as_well) {
  Message numbers;
  numbers.integer(field::dims, 3);
  numbers.integer(field::data_type, data_type_of(DType::float32));
  numbers.text(field::tensor_name, "w");
  for (const float value : {0.5F, -1.5F, 2.5F}) numbers.real(field::float_data, value);
  Parts parts = relu();
  parts.nodes = {node("Add", {"x", "w"}, {"y"})};
  parts.initializers = {numbers};
  EXPECT_THAT(result_of(read(model(parts)), {floats({2, 3}, {1, 1, 1, 2, 2, 2})}),
              ElementsAre(1.5, -0.5, 3.5, 2.5, 0.5, 4.5));
}

TEST(onnx_read, sizes_that_are_open_have_to_be_given) {
  Parts parts{
      {node("Relu", {"x"}, {"y"})}, {x_of({"batch", "tokens", 3})}, {y_of({"batch", "tokens", 3})}};
  EXPECT_THAT(refusal(model(parts)), AllOf(HasSubstr("leaves these sizes open: 'batch', 'tokens'"),
                                           HasSubstr("--size batch=2")));
  const SavedCapture capture = read(model(parts), {.sizes = {{"batch", 2}, {"x.1", 5}}});
  EXPECT_EQ(capture.graph.inputs()[0].sizes(), (Dims{2, 5, 3}));
  EXPECT_THAT(refusal(model(parts), {.sizes = {{"batch", 2}, {"tokens", 3}, {"words", 1}}}),
              HasSubstr("no open size 'words'; it has 'batch', 'tokens'"));
  EXPECT_THAT(refusal(model(parts), {.sizes = {{"batch", -2}, {"tokens", 3}}}), HasSubstr("-2"));
}

TEST(onnx_read, an_integer_may_be_given_as_well) {
  Parts parts{{node("Unsqueeze", {"n", "axis"}, {"s"}), node("Expand", {"x", "s"}, {"y"})},
              {x_of({1}), value_info("n", DType::int64, {})},
              {y_of({3})},
              {tensor<int64_t>("axis", DType::int64, {1}, {0})}};
  EXPECT_THAT(refusal(model(parts)), HasSubstr("has to be known"));
  const SavedCapture capture = read(model(parts), {.sizes = {{"n", 3}}});
  EXPECT_EQ(capture.graph.inputs().size(), 1U);
  EXPECT_EQ(capture.graph.outputs()[0].sizes(), (Dims{3}));
}

TEST(onnx_read, what_is_computed_of_sizes_becomes_numbers) {
  // y = reshape(x, [shape(x)[0], -1])
  Parts parts{{node("Shape", {"x"}, {"s"}), node("Gather", {"s", "zero"}, {"n"}),
               node("Unsqueeze", {"n", "axis"}, {"m"}),
               node("Concat", {"m", "rest"}, {"sizes"}, {attribute("axis", 0)}),
               node("Reshape", {"x", "sizes"}, {"y"})},
              {x_of({"batch", 2, 3})},
              {y_of({"batch", 6})},
              {tensor<int64_t>("zero", DType::int64, {}, {0}),
               tensor<int64_t>("axis", DType::int64, {1}, {0}),
               tensor<int64_t>("rest", DType::int64, {1}, {-1})}};
  const SavedCapture capture = read(model(parts), {.sizes = {{"batch", 4}}});
  EXPECT_EQ(capture.graph.outputs()[0].sizes(), (Dims{4, 6}));
  EXPECT_EQ(capture.graph.size(), 2U) << print(capture.graph);
}

// y = reshape(x, [shape(x)[0], -1]) + range(0, tokens, 1), an example's elements in a row.
Parts of_open_sizes() {
  const auto place = [](const std::string& name, int64_t value) {
    return tensor<int64_t>(name, DType::int64, {}, {value});
  };
  return {
      {node("Shape", {"x"}, {"s"}), node("Gather", {"s", "zero"}, {"n"}),
       node("Gather", {"s", "one"}, {"t"}), node("Unsqueeze", {"n", "axis"}, {"m"}),
       node("Concat", {"m", "rest"}, {"sizes"}, {attribute("axis", 0)}),
       node("Reshape", {"x", "sizes"}, {"flat"}), node("Range", {"zero", "t", "one"}, {"places"}),
       node("Cast", {"places"}, {"steps"}, {attribute("to", 1)}),
       node("Add", {"flat", "steps"}, {"y"})},
      {x_of({"batch", "tokens"})},
      {y_of({"batch", "tokens"})},
      {place("zero", 0), place("one", 1), tensor<int64_t>("axis", DType::int64, {1}, {0}),
       tensor<int64_t>("rest", DType::int64, {1}, {-1})}};
}

TEST(onnx_read, sizes_in_ranges_make_a_family) {
  const std::string bytes = model(of_open_sizes());
  const SavedCapture saved = read(bytes, {.ranges = {{"batch", 2, 9}, {"tokens", 2, 40}}});
  ASSERT_TRUE(is_family(saved));
  const Cases family = family_of(saved);
  for (const auto& [batch, tokens] :
       std::vector<std::pair<int64_t, int64_t>>{{2, 2}, {3, 17}, {9, 40}, {9, 2}}) {
    std::vector<double> values(static_cast<size_t>(batch * tokens));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i * i % 7);
    std::vector<double> expected = values;
    for (size_t i = 0; i < values.size(); ++i)
      expected[i] += static_cast<double>(i % static_cast<size_t>(tokens));
    const Graph graph = graph_at(family, {{"batch", batch}, {"tokens", tokens}});
    EXPECT_EQ(elements<double>(evaluate(graph, {floats({batch, tokens}, values)}).at(0)), expected)
        << batch << "x" << tokens;
  }
  EXPECT_THAT(message_of([&] {
                graph_at(family, {{"batch", 10}, {"tokens", 4}});
              }),
              HasSubstr("batch"));
  // One of them may be a number.
  const SavedCapture rows =
      read(bytes, {.sizes = {{"batch", 3}}, .ranges = {{"tokens", 4, 12, 2}}});
  EXPECT_EQ(family_of(rows).cases.at(0).sizes.size(), 1U);
}

TEST(onnx_read, ranges_that_no_family_has_are_refused) {
  const std::string bytes = model(of_open_sizes());
  EXPECT_THAT(refusal(bytes, {.ranges = {{"batch", 2, 9}}}),
              HasSubstr("leaves these sizes open: 'tokens'"));
  EXPECT_THAT(refusal(bytes, {.ranges = {{"batch", 2, 9}, {"tokens", 4, 5}}}),
              HasSubstr("at least 3 sizes from 2 on in the range of 'tokens'"));
  EXPECT_THAT(refusal(bytes, {.ranges = {{"batch", 2, 9}, {"tokens", 2, 9}, {"words", 2, 9}}}),
              HasSubstr("no open size 'words'"));
  // A number that follows from a size, and multiplies.
  Parts scaled = of_open_sizes();
  scaled.nodes.push_back(node("Cast", {"t"}, {"count"}, {attribute("to", 1)}));
  scaled.nodes.push_back(node("Mul", {"y", "count"}, {"z"}));
  scaled.outputs = {value_info("z", DType::float32, {"batch", "tokens"})};
  EXPECT_THAT(refusal(model(scaled), {.ranges = {{"batch", 2, 9}, {"tokens", 2, 40}}}),
              HasSubstr("constant"));
}

TEST(onnx_read, values_that_follow_from_inputs_are_no_sizes) {
  Parts parts{{node("Reshape", {"x", "s"}, {"y"})},
              {x_of({6}), value_info("s", DType::int64, {2})},
              {y_of({2, 3})}};
  EXPECT_THAT(refusal(model(parts)), AllOf(HasSubstr("Reshape: operand 1, 's', has to be known")));
}

TEST(onnx_read, all_operators_that_are_not_known_are_listed) {
  Parts parts = relu();
  parts.nodes = {node("Mystery", {"x"}, {"a"}), node("Relu", {"a"}, {"b"}),
                 node("NGram", {"b"}, {"y"}, {}, "com.microsoft")};
  parts.domains = {"com.microsoft"};
  EXPECT_THAT(refusal(model(parts)),
              AllOf(HasSubstr("these operators are not known:"), HasSubstr("\n  Mystery: "),
                    HasSubstr("\n  com.microsoft::NGram: ")));
}

TEST(onnx_read, versions_that_are_not_known_are_refused) {
  for (const int64_t opset : {5, 29}) {
    Parts parts = relu();
    parts.opset = opset;
    EXPECT_THAT(refusal(model(parts)), HasSubstr("versions 6 to 28 are read"));
  }
}

// twice(a; by) = a + a, or a function of its own that it calls
TEST(onnx_read, functions_of_the_model_are_written_out) {
  Message twice;
  twice.text(field::function_name, "Twice");
  twice.text(field::function_domain, "mine");
  twice.text(field::function_input, "a");
  twice.text(field::function_output, "b");
  twice.message(field::function_node, node("Add", {"a", "a"}, {"b"}));
  twice.message(field::function_opset_import, import("", 20));
  Parts parts = relu();
  parts.nodes = {node("Twice", {"x"}, {"h"}, {}, "mine"), node("Twice", {"h"}, {"y"}, {}, "mine")};
  parts.functions = {twice};
  parts.domains = {"mine"};
  EXPECT_THAT(result_of(read(model(parts)), {floats({2, 3}, {1, 2, 3, 4, 5, 6})}),
              ElementsAre(4, 8, 12, 16, 20, 24));
}

TEST(onnx_read, functions_that_call_themselves_are_refused) {
  Message loop;
  loop.text(field::function_name, "Loops");
  loop.text(field::function_domain, "mine");
  loop.text(field::function_input, "a");
  loop.text(field::function_output, "b");
  for (const char* result : {"c", "b"})
    loop.message(field::function_node, node("Loops", {"a"}, {result}, {}, "mine"));
  loop.message(field::function_opset_import, import("mine", 1));
  Parts parts = relu();
  parts.nodes = {node("Loops", {"x"}, {"y"}, {}, "mine")};
  parts.functions = {loop};
  EXPECT_THAT(refusal(model(parts)), HasSubstr("more than 32 levels deep"));
}

Parts choice(const Message& condition_node) {
  const auto branch = [](const char* op) {
    return graph({{node(op, {"x"}, {"r"})}, {}, {value_info("r", DType::float32, {2, 3})}});
  };
  return {{condition_node, node("If", {"c"}, {"y"},
                                {attribute("then_branch", branch("Relu")),
                                 attribute("else_branch", branch("Neg"))})},
          {x_of({2, 3}), value_info("flag", DType::bool_, {})},
          {y_of({2, 3})}};
}

TEST(onnx_read, branches_are_taken_where_the_condition_is_known) {
  const Message yes = tensor("", DType::bool_, {}, std::string_view("\1", 1));
  const SavedCapture known =
      read(model(choice(node("Constant", {}, {"c"}, {tensor_attribute("value", yes)}))));
  EXPECT_THAT(print(known.graph), AllOf(HasSubstr("aten::relu"), Not(HasSubstr("aten::neg"))));
  const SavedCapture open = read(model(choice(node("Identity", {"flag"}, {"c"}))));
  EXPECT_THAT(print(open.graph), HasSubstr("composit::cond"));
  const Array x = floats({2, 3}, {-1, 1, -1, 1, -1, 1});
  const auto flag = [](int64_t value) {
    return array_of(tensor_type(DType::bool_, {}), std::vector<int64_t>{value});
  };
  EXPECT_THAT(result_of(open, {x, flag(1)}), ElementsAre(0, 1, 0, 1, 0, 1));
  EXPECT_THAT(result_of(open, {x, flag(0)}), ElementsAre(1, -1, 1, -1, 1, -1));
}

// ---- files of weights ---------------------------------------------------------------------------

Message external(const std::string& location, const std::string& offset = "0") {
  Message message;
  message.integer(field::dims, 3);
  message.integer(field::data_type, data_type_of(DType::float32));
  message.text(field::tensor_name, "w");
  for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{
           {"location", location}, {"offset", offset}}) {
    Message entry;
    entry.text(field::entry_key, key);
    entry.text(field::entry_value, value);
    message.message(field::external_data, entry);
  }
  message.integer(field::data_location, 1);
  return message;
}

std::string with_weight(const Message& weight) {
  Parts parts = relu();
  parts.nodes = {node("Add", {"x", "w"}, {"y"})};
  parts.initializers = {weight};
  return model(parts);
}

TEST(onnx_read, weights_lie_in_files_beside_the_model_only) {
  const TemporaryFolder folder;
  const std::vector<float> values = {0, 1, 2, 3};
  const std::string_view bytes(reinterpret_cast<const char*>(values.data()), 16);
  std::filesystem::create_directory(folder / "model");
  write_file(folder / "outside", bytes);
  write_file(folder / "model/inside", bytes);
  std::filesystem::create_symlink(folder / "outside", folder / "model/link");
  const auto load = [&](const Message& weight) {
    write_file(folder / "model/m.onnx", with_weight(weight));
    return load_onnx(folder / "model/m.onnx");
  };
  EXPECT_THAT(elements<double>(load(external("inside", "4")).weights.at("w")),
              ElementsAre(1, 2, 3));
  for (const std::string& location :
       {std::string("../outside"), (folder / "outside").string(), std::string("link"),
        std::string("."), std::string(), std::string("absent"), std::string("inside\0x", 8)})
    EXPECT_THAT(message_of([&] { load(external(location)); }), HasSubstr("tensor 'w'")) << location;
  for (const std::string offset : {"8", "-4", "18446744073709551615", "x", "9223372036854775807"})
    EXPECT_THAT(message_of([&] { load(external("inside", offset)); }), HasSubstr("tensor 'w'"));
}

// ---- what is no model ---------------------------------------------------------------------------

TEST(onnx_read, files_that_are_no_model_are_refused) {
  EXPECT_THAT(refusal(""), HasSubstr("there is no graph"));
  EXPECT_THAT(refusal("PK\3\4"), HasSubstr("at byte"));
  EXPECT_FALSE(is_onnx(""));
  EXPECT_FALSE(is_onnx("def f(x): return x"));
  EXPECT_FALSE(is_onnx(std::string(64, '\0')));
  EXPECT_TRUE(is_onnx(model(relu())));
}

TEST(onnx_read, sizes_at_their_limits_are_refused) {
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  for (const Dims& sizes : {Dims{kHuge}, Dims{kHuge, kHuge}, Dims{0, kHuge, kHuge}, Dims{-1},
                            Dims{int64_t{1} << 32, int64_t{1} << 32}, Dims{4}, Dims{2}}) {
    const std::string bytes = with_weight(tensor<float>("w", DType::float32, sizes, {1, 2, 3}));
    EXPECT_THAT(refusal(bytes), HasSubstr("tensor 'w'"));
  }
  Parts parts{{node("Expand", {"x", "s"}, {"y"})},
              {x_of({1})},
              {y_of({1})},
              {tensor<int64_t>("s", DType::int64, {2}, {kHuge, kHuge})}};
  EXPECT_THAT(refusal(model(parts)), HasSubstr("Expand: sizes ask for more than"));
  const Size many = int64_t{1} << 40;
  Parts product{{node("Mul", {"x", "z"}, {"y"})},
                {x_of({many, 1}), value_info("z", DType::float32, {1, many})},
                {y_of({1})}};
  EXPECT_THAT(refusal(model(product)), HasSubstr("Mul"));
}

TEST(onnx_read, values_are_named_once_and_before_they_are_used) {
  Parts parts = relu();
  parts.nodes = {node("Relu", {"z"}, {"y"})};
  EXPECT_THAT(refusal(model(parts)), HasSubstr("there is no value 'z' before it"));
  parts.nodes = {node("Relu", {"x"}, {"y"}), node("Relu", {"x"}, {"y"})};
  EXPECT_THAT(refusal(model(parts)), HasSubstr("two values are named 'y'"));
  parts.nodes = {node("Relu", {"x"}, {"y"})};
  parts.outputs = {value_info("y", DType::int64, {2, 3})};
  EXPECT_THAT(refusal(model(parts)),
              HasSubstr("output 'y' comes to be float32, the model says int64"));
}

TEST(onnx_read, rows_are_of_operators_of_their_own) {
  const auto& rows = onnx_read::all_rows();
  EXPECT_GT(rows.size(), 150U);
  EXPECT_NE(onnx_read::find_row("", "Conv"), nullptr);
  EXPECT_EQ(onnx_read::find_row("com.microsoft", "Conv"), nullptr);
  EXPECT_NE(onnx_read::find_row("com.microsoft", "MatMulNBits"), nullptr);
  EXPECT_EQ(onnx_read::find_row("", "MatMulNBits"), nullptr);
  EXPECT_EQ(onnx_read::find_row("com.example", "Gelu"), nullptr);
  EXPECT_EQ(onnx_read::find_row("", "Convolve"), nullptr);
  const std::string document =
      composit::test::read_file(FLASHLIGHT_SOURCE_DIR "/docs/interchange.md");
  for (const onnx_read::Row& row : rows)
    EXPECT_THAT(document, HasSubstr("`" + std::string(row.op) + "`"));
}

}  // namespace
}  // namespace composit::onnx::test
