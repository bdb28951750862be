#include "composit/ir/print.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "composit/ir/error.h"
#include "composit/ir/parse.h"
#include "tests/ir/random_graph.h"

namespace composit {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

// Text as a person would write it, in the form in which it is printed.
constexpr std::string_view kText = R"(graph(
  %x: float32[2, 3],
  %fc1_weight: float32[4, 3] parameter "fc1.weight" (requires_grad=true),  # note="first layer"
  %m: float32[4] buffer "bn.running_mean",
  %s: float32[]
) {
  %linear: float32[2, 4] = aten::linear(%x, %fc1_weight, none) {grad=true}  # scope=fc1 source=main.cpp:12 1.note="the \"edge\""
  %max, %max_1: float32[2], int64[2] strides=[2] = aten::max.dim(%linear, dim=1, keepdim=false)
  %gelu: float32[2, 4] = aten::gelu(%linear, approximate="none") {body=region(%0: float32[2, 4]) {
    %erf: float32[2, 4] = aten::erf(%0)  # scope=inner
    %rand_like: float32[2, 4] = aten::rand_like(%erf) {effect=0}
    %mul: float32[2, 4] = aten::mul.Tensor(%0, %erf)
    return %mul
  }, effect=1}  # scope=act
  aten::_assert_async(%max) {effect=3}
  %cat, %cat_1: float32[4, 4], none = aten::cat([%linear, none, %gelu], [], dim=0)
  %detach: float32[4] = aten::detach(%m)
  mutate %m = %detach
  return %cat, none, %max_1, %cat
}
)";

TEST(Print, ReadsBackToTheSameText) {
  const Graph graph = parse(kText);
  std::string text = print(graph);
  // Names come from operations and inputs, not from the text that was read.
  EXPECT_THAT(text, HasSubstr("%bn_running_mean: float32[4] buffer \"bn.running_mean\","));
  for (size_t at; (at = text.find("%bn_running_mean")) != std::string::npos;)
    text.replace(at, std::string_view("%bn_running_mean").size(), "%m");
  EXPECT_EQ(text, kText);
  EXPECT_EQ(parse(text), graph);
}

TEST(Print, ToAStream) {
  const Graph graph = parse(kText);
  std::ostringstream out;
  print(out, graph);
  EXPECT_EQ(out.str(), print(graph));
}

TEST(Print, StructureOfWhatWasParsed) {
  const Graph graph = parse(kText);
  ASSERT_EQ(graph.inputs().size(), 4U);
  EXPECT_EQ(input_kind(*graph.inputs()[1].node), InputKind::parameter);
  EXPECT_EQ(input_name(*graph.inputs()[2].node), "bn.running_mean");
  EXPECT_TRUE(graph.inputs()[1].node->attribute("requires_grad").as<bool>());
  EXPECT_EQ(graph.inputs()[1].node->annotation("note"), "first layer");
  ASSERT_EQ(graph.effects().size(), 2U);
  EXPECT_EQ(graph.effects()[0]->op().str(), "aten::gelu");
  EXPECT_EQ(graph.effects()[1]->effect(), 3);
  ASSERT_EQ(graph.outputs().size(), 4U);
  EXPECT_FALSE(graph.outputs()[1]);
  EXPECT_EQ(graph.outputs()[2].index, 1U);
  EXPECT_EQ(graph.outputs()[2].type().strides, std::vector<int64_t>{2});
  ASSERT_EQ(graph.mutations().size(), 1U);
  EXPECT_EQ(graph.mutations()[0].target, graph.inputs()[2]);

  const Node& linear = *graph.nodes().at(4);
  ASSERT_EQ(linear.arguments().size(), 3U);
  EXPECT_EQ(linear.arguments()[2].kind, Argument::Kind::absent);
  EXPECT_TRUE(linear.find_run("grad")->as<bool>());
  ASSERT_EQ(linear.annotations().size(), 3U);
  EXPECT_EQ(linear.annotations()[2].operand, 1);
  EXPECT_EQ(linear.annotations()[2].value, "the \"edge\"");
  const Node& cat = *graph.outputs()[0].node;
  ASSERT_EQ(cat.arguments().size(), 2U);
  EXPECT_EQ(cat.arguments()[0], (Argument{Argument::Kind::list, 0, 3}));
  EXPECT_EQ(cat.arguments()[1], (Argument{Argument::Kind::list, 3, 0}));
  EXPECT_FALSE(is_defined(cat.outputs()[1]));
}

struct Case {
  Attribute attribute;
  std::string_view text;
};

TEST(Print, EveryKindOfAttribute) {
  const std::array<float, 2> floats{1.5, -0.0F};
  const std::array<uint8_t, 2> bools{1, 0};
  const std::array<std::complex<double>, 1> complexes{std::complex<double>(1, -2)};
  const std::array<int16_t, 2> shorts{7, 8};
  Type column = tensor_type(DType::int16, {2, 2});
  column.strides = {1, 0};
  const auto copy = [](DType dtype, Dims sizes, const auto& values) {
    return Array::copy_of(tensor_type(dtype, std::move(sizes)), values.data());
  };
  const std::vector<Case> cases = {
      {{}, "none"},
      {true, "true"},
      {-3, "-3"},
      {3.0, "3.0"},
      {std::complex<double>(1, -0.0), "complex(1.0, -0.0)"},
      {"a \"b\"\n", R"("a \"b\"\n")"},
      {DType::bfloat16, "bfloat16"},
      {DType::bool_, "bool"},
      {Device{}, "device(cpu)"},
      {Device{1, 2}, "device(cuda:2)"},
      {Layout::strided, "strided"},
      {Layout::mkldnn, "mkldnn"},
      {MemoryFormat::channels_last, "channels_last"},
      {Generator{"default"}, "generator(\"default\")"},
      {Scalar(1.5), "scalar(1.5)"},
      {Scalar(int64_t{2}, true), "scalar(2, wrapped)"},
      {Scalar(true), "scalar(true)"},
      {Scalar(std::complex<double>(0, 1)), "scalar(complex(0.0, 1.0))"},
      {int_list({1, -2}), "[1, -2]"},
      {int_list({}), "int[]"},
      {float_list({}), "float[]"},
      {bool_list({true}), "[true]"},
      {List{AttributeKind::dim, {Attribute(), 1}}, "[none, 1]"},
      {List{AttributeKind::dim, {Attribute()}}, "int[none]"},
      {List{AttributeKind::float_, {1}}, "float[1]"},
      {List{AttributeKind::none, {}}, "any[]"},
      {List{AttributeKind::none, {1, DType::int8, int_list({2})}}, "any[1, int8, [2]]"},
      {List{AttributeKind::list, {int_list({}), int_list({1})}}, "[int[], [1]]"},
      {copy(DType::float32, {2}, floats), "array(float32[2], [1.5, -0])"},
      {copy(DType::bool_, {2, 1}, bools), "array(bool[2, 1], [true, false])"},
      {copy(DType::complex128, {}, complexes), "array(complex128[], [complex(1, -2)])"},
      {Array(column, nullptr, shorts.data()), "array(int16[2, 2] strides=[1, 0], [7, 8])"},
      {copy(DType::int64, {0, 3}, floats), "array(int64[0, 3], [])"},
  };
  for (const auto& [attribute, text] : cases) {
    EXPECT_EQ(print(attribute), text);
    const Graph graph =
        parse("graph() { %x: float32[] = aten::op(a=" + std::string(text) + ") return %x }");
    EXPECT_EQ(graph.outputs()[0].node->attribute("a"), attribute) << text;
  }
}

TEST(Print, Types) {
  Type type = tensor_type(DType::complex64, {2, 3});
  EXPECT_EQ(print(type), "complex64[2, 3]");
  EXPECT_EQ(print(tensor_type(DType::bool_, {})), "bool[]");
  EXPECT_EQ(print(undefined_type()), "none");
  type.strides = {1, 2};
  type.conj = type.neg = true;
  type.device = {1, 0};
  EXPECT_EQ(print(type), "complex64[2, 3] strides=[1, 2] device=cuda:0 conj neg");
  type.layout = Layout::sparse;
  type.strides.clear();
  EXPECT_EQ(print(type), "complex64[2, 3] layout=sparse device=cuda:0 conj neg");
}

TEST(Print, NamesAreUniqueWhateverInputsAreCalled) {
  const Type type = tensor_type(DType::float32, {1});
  const LazyTensor x = input("relu_1", type), y = input("relu.1", type), z = input("", type);
  LazyTensor last = x;
  LazyTensors outputs{x, y, z};
  for (int i = 0; i < 3; ++i) {
    NodeSpec spec("aten::relu");
    spec.tensor(last).output(type);
    outputs.push_back(last = std::move(spec).make());
  }
  const Graph graph({.inputs = {x, y, z}, .outputs = outputs});
  const Names names(graph);
  std::vector<std::string> given;
  for (const LazyTensor& output : outputs) given.push_back(names.of(output));
  EXPECT_EQ(given, (std::vector<std::string>{"%relu_1", "%relu_1_1", "%value", "%relu", "%relu_2",
                                             "%relu_3"}));
  EXPECT_EQ(names.of({}), "none");
  EXPECT_EQ(names.of(input("other", type)), "%?");
  EXPECT_EQ(parse(print(graph)), graph);
}

TEST(Print, WithoutAnnotations) {
  const std::string text = print(parse(kText), {.annotations = false});
  EXPECT_THAT(text, Not(HasSubstr("#")));
  EXPECT_EQ(parse(text), parse(kText));
}

TEST(Print, BriefLeavesOutRegionsAndLargeArrays) {
  const std::vector<float> zeros(1000);
  const Array array = Array::copy_of(tensor_type(DType::float32, {1000}), zeros.data());
  EXPECT_EQ(print(Attribute(array), {.brief = true}), "array(float32[1000], ...)");
  const std::string text = print(parse(kText), {.brief = true});
  EXPECT_THAT(text, HasSubstr("{body=region(...), effect=1}"));
  EXPECT_THROW(parse(text), UserError);
}

TEST(Print, OpaqueObjectsDoNotReadBack) {
  NodeSpec spec("user::op");
  spec.attribute("state", Opaque{"a \"class\"", std::make_shared<int>(1)});
  spec.output(tensor_type(DType::float32, {}));
  const std::string text = print(std::move(spec).make().graph());
  EXPECT_THAT(text, HasSubstr(R"(state=opaque("a \"class\""))"));
  EXPECT_THAT([&] { parse(text); }, ThrowsMessage<UserError>(HasSubstr("only the process knew")));
}

// ---- stores -------------------------------------------------------------------------------------

class MapStore : public ArrayStore {
 public:
  std::string put(const Array& array, std::string_view hint) override {
    std::string name(hint);
    while (!arrays.emplace(name, array).second) name += "'";
    return name;
  }
  Array get(std::string_view name, const Type& type) const override {
    const auto found = arrays.find(std::string(name));
    if (found == arrays.end()) throw UserError("there is no array '" + std::string(name) + "'");
    return found->second.with_strides(type.strides);
  }
  std::map<std::string, Array> arrays;
};

TEST(Print, LargeArraysGoToTheStore) {
  const std::vector<float> values(100, 1.5);
  const Array large = Array::copy_of(tensor_type(DType::float32, {10, 10}), values.data());
  const Array small = Array::copy_of(tensor_type(DType::float32, {3}), values.data());
  const LazyTensor a = constant(large.with_strides({1, 10}), "constant_3"), b = constant(small);
  const LazyTensor c = constant(large);
  const Graph graph({.outputs = {a, b, c}});
  MapStore store;
  const std::string text = print(graph, {.arrays = &store, .inline_elements = 4});
  EXPECT_THAT(text, HasSubstr(R"(array(float32[10, 10] strides=[1, 10] @ "constant_3"))"));
  EXPECT_THAT(text, HasSubstr(R"(array(float32[10, 10] @ "constant_2"))"));
  EXPECT_THAT(text, HasSubstr("array(float32[3], [1.5, 1.5, 1.5])"));
  EXPECT_EQ(store.arrays.size(), 2U);
  EXPECT_EQ(parse(text, &store), graph);
  EXPECT_THAT([&] { parse(text); },
              ThrowsMessage<UserError>(HasSubstr("expected no stored arrays")));
  store.arrays.erase("constant_3");
  EXPECT_THAT([&] { parse(text, &store); },
              ThrowsMessage<UserError>(HasSubstr("there is no array 'constant_3'")));
}

}  // namespace
}  // namespace composit
