// Values of graphs whose parts run on several devices, compared with the interpreter's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "composit/eval/evaluate.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"
#include "flashlight/backends/devices.h"
#include "flashlight/devices/backend.h"
#include "flashlight/devices/placement.h"
#include "flashlight/runtime/profile.hpp"
#include "flashlight/runtime/random.hpp"
#include "tests/agreement.h"
#include "tests/passes/computable_graph.h"
#include "tests/user_error.h"

namespace flashlight::devices {
namespace {

using composit::Array;
using composit::array_of;
using composit::Compiled;
using composit::CompileOptions;
using composit::DType;
using composit::Graph;
using composit::LazyTensor;
using composit::tensor_type;
using composit::user_error;
using composit::test::differences;
using testing::HasSubstr;
using testing::Optional;

using Arrays = std::vector<Array>;

CompileOptions with(const std::string& choices) {
  return {.name = "f", .options = composit::BackendChoice(Devices{.choices = choices}).options};
}

// A device for each node by chance, another one after `length` nodes or so.
std::string random_choices(const Graph& graph, const std::string& devices,
                           const std::vector<std::string>& names, uint64_t seed, uint64_t length) {
  std::mt19937_64 random(seed);
  std::string name = names[0];
  const NodeNames nodes(graph);
  std::string text = devices + "*: on " + names[0] + "\n";
  for (const composit::NodePtr& node : graph.nodes()) {
    if (!is_computed(*node)) continue;
    if (random() % length == 0) name = names[random() % names.size()];
    text += nodes.name(*node) + ": on " + name + "\n";
  }
  return text;
}

void expect_values(uint64_t seed, const std::string& devices, const std::vector<std::string>& names,
                   uint64_t length) {
  const Graph graph = composit::test::ComputableGraph(seed).make();
  const Arrays inputs = composit::test::random_inputs(graph, seed);
  const std::string choices = random_choices(graph, devices, names, seed, length);
  const Compiled code = backend().compile(graph, with(choices));
  EXPECT_EQ(differences(code(inputs), composit::evaluate(graph, inputs), 16), "")
      << "ComputableGraph(" << seed << "), choices:\n"
      << choices;
}

TEST(Code, OfRandomGraphsAndPlacementsGivesTheirValues) {
  for (uint64_t seed = 0; seed < 150; ++seed)
    expect_values(seed,
                  "device a: reference\ndevice b: reference\ndevice c: reference, memory far\n",
                  {"a", "b", "c", "reference"}, 1 + seed % 4);
}

TEST(Code, OfSeveralBackendsGivesTheirValues) {
  for (uint64_t seed = 0; seed < 2; ++seed)
    expect_values(seed, "device far: mosaic, threads 1, memory far\n",
                  {"cpp", "mosaic", "reference", "far"}, 12);
}

// ---- what goes in and comes out -----------------------------------------------------------------

const composit::Type kPair = tensor_type(DType::float32, {2});
Array pair(float a, float b) { return array_of(kPair, std::vector<double>{a, b}); }

TEST(Code, GivesInputsConstantsAndTwiceTheSame) {
  const LazyTensor x = composit::input("x", kPair), c = composit::constant(pair(3, 4)), y = -x;
  const Graph graph({.inputs = {x}, .outputs = {x, c, y, LazyTensor(), y}});
  for (const char* choices : {"*: on reference", "device far: reference, memory far\n*: on far"}) {
    const Arrays results = backend().compile(graph, with(choices))({pair(1, 2)});
    ASSERT_EQ(results.size(), 5U);
    EXPECT_EQ(results[0], pair(1, 2));
    EXPECT_EQ(results[1], pair(3, 4));
    EXPECT_EQ(results[2], pair(-1, -2));
    EXPECT_FALSE(results[3].defined());
    EXPECT_EQ(results[4], pair(-1, -2));
  }
  const Graph nothing({.inputs = {x}, .outputs = {c}});
  EXPECT_EQ(backend().compile(nothing, with(""))({pair(1, 2)})[0], pair(3, 4));
}

TEST(Code, GivesWhatMutationsBecome) {
  const LazyTensor x = composit::input("x", kPair, composit::InputKind::buffer), y = -x, z = y * y;
  const Graph graph({.inputs = {x}, .outputs = {z}, .mutations = {{x, z}}});
  const Arrays results = backend().compile(graph, with("neg: on mosaic\n*: on cpp"))({pair(1, 2)});
  EXPECT_EQ(results[0], pair(1, 4));
  EXPECT_EQ(results[1], pair(1, 4));
}

// New values of inputs are written to their memory when all parts have ended: they read what inputs
// were, and a guard of the last one refuses before anything is written.
TEST(Code, UpdatesInputsInPlaceWhenAllHasHeld) {
  const LazyTensor x = composit::input("x", kPair, composit::InputKind::buffer),
                   y = composit::input("y", kPair, composit::InputKind::buffer),
                   z = composit::input("z", kPair);
  const LazyTensor next = x * z, later = composit::exp(x + y);
  composit::NodeSpec guard("aten::_assert_async.msg");
  guard.tensor(composit::apply_one("aten::any", {later > 0.5}))
      .attribute("assert_msg", std::string("too small"))
      .run("effect", int64_t{0});
  const Graph graph({.inputs = {x, y, z},
                     .outputs = {later, x},
                     .mutations = {{x, next}, {y, x}},
                     .effects = {std::move(guard).make_node()}});
  CompileOptions options =
      with("device far: cpp, memory far\nmul: on mosaic\nadd: on far\n*: on cpp");
  options.may_update = true;
  const Compiled code = backend().compile(graph, options);
  EXPECT_FALSE(code->may_update(1));
  EXPECT_TRUE(code->may_update(2));   // x
  EXPECT_FALSE(code->may_update(3));  // y becomes what x was
  const auto run = [&](std::vector<float>& first, const std::vector<float>& second) {
    const std::vector<float> factor = {3, 4};
    std::vector<std::vector<float>> results(3, std::vector<float>(2));
    const std::vector<composit::InputBuffer> from = {first.data(), second.data(), factor.data()};
    const std::vector<composit::Buffer> to = {results[0].data(), results[1].data(), first.data(),
                                              results[2].data()};
    code->run(from, to, nullptr);
    return results;
  };
  std::vector<float> values = {.5, -1};
  const auto results = run(values, {1, 2});
  EXPECT_THAT(values, testing::ElementsAre(1.5, -4));
  EXPECT_THAT(results[1], testing::ElementsAre(.5, -1));
  EXPECT_THAT(results[2], testing::ElementsAre(.5, -1));
  EXPECT_THAT(user_error([&] { run(values, {-100, -100}); }), Optional(HasSubstr("too small")));
  EXPECT_THAT(values, testing::ElementsAre(1.5, -4));
}

// A weight that one device packs, one reads as it is, and one has in another memory.
TEST(Code, TakesWeightsOnce) {
  const composit::Type square = tensor_type(DType::float32, {32, 32});
  const LazyTensor x = composit::input("x", square),
                   w = composit::input("w", square, composit::InputKind::parameter);
  const LazyTensor a = composit::matmul(x, w), b = composit::matmul(a, w),
                   c = composit::matmul(b, w);
  const Graph graph({.inputs = {x, w}, .outputs = {c}});
  CompileOptions options = with(
      "device far: cpp, memory far\n"
      "matmul: on mosaic\nmatmul_2: on cpp\nmatmul_3: on far");
  options.may_prepare = true;
  const Compiled code = backend().compile(graph, options);
  EXPECT_FALSE(code->is_frozen(0));
  EXPECT_TRUE(code->is_frozen(1));
  Arrays inputs = composit::test::random_inputs(graph, 7);
  const Arrays expected = composit::evaluate(graph, inputs);
  const Compiled prepared = code->prepare({Array(), inputs[1]});
  inputs[1] = Array();
  EXPECT_EQ(differences(prepared(inputs), expected, 16), "");
}

// ---- effects ------------------------------------------------------------------------------------

TEST(Code, DrawsInTheOrderOfTheProgram) {
  const LazyTensor x = composit::input("x", tensor_type(DType::float32, {40}));
  const auto noise = [&](int64_t effect) {
    composit::NodeSpec spec("aten::rand_like");
    spec.tensor(x).run("effect", effect).output(x.type());
    return std::move(spec).make();
  };
  const LazyTensor a = noise(0), b = noise(1), c = noise(2);
  const Graph graph({.inputs = {x}, .outputs = {a, b, c}, .effects = {a.node, b.node, c.node}});
  const Arrays inputs = composit::test::random_inputs(graph, 1);
  const Compiled one = backend().compile(graph, with("*: on cpp")),
                 several = backend().compile(graph, with("rand_like_2: on mosaic\n*: on cpp"));
  EXPECT_TRUE(several->draws());
  const Arrays first = one(inputs, fl::Generator(3)), second = several(inputs, fl::Generator(3));
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(first[i], second[i]) << i;
  EXPECT_FALSE(first[0] == first[1]);
  EXPECT_THAT(
      user_error([&] { backend().compile(graph, with("rand_like_2: on reference\n*: on cpp")); }),
      testing::Ne(std::nullopt));
}

// ---- times, text, refusals ----------------------------------------------------------------------

TEST(Code, TellsTheTimeOfPartsAndCopies) {
  const LazyTensor x = composit::input("x", kPair), y = -composit::exp(x);
  const Graph graph({.inputs = {x}, .outputs = {y}});
  const Compiled code = backend().compile(
      graph, with("device far: reference, memory far\nexp: on reference\nneg: on far"));
  const Array value = pair(1, 2);
  std::vector<float> result(2);
  const std::vector<composit::InputBuffer> from = {value.data()};
  const std::vector<composit::Buffer> to = {result.data()};
  std::vector<std::string> names;
  for (const fl::TimedKernel& one : code->profile(from, to, nullptr)) names.push_back(one.name);
  EXPECT_THAT(names, testing::ElementsAre("part 0 on reference", "copy to far", "part 1 on far",
                                          "copy to cpu"));
}

TEST(Code, HasTheSourcesOfAllParts) {
  const LazyTensor x = composit::input("x", kPair), y = -composit::exp(x);
  const Graph graph({.inputs = {x}, .outputs = {y}});
  const std::string source = backend().source(graph, with("exp: on cpp\nneg: on mosaic"));
  EXPECT_THAT(source, AllOf(HasSubstr("// ---- part 0 on cpp"),
                            HasSubstr("// ---- part 1 on mosaic"), HasSubstr("f_1")));
  // A backend without a text runs operations.
  EXPECT_THAT(backend().source(graph, with("exp: on cpp\nneg: on reference")),
              HasSubstr("// ---- part 1 on reference\n\n// graph(%exp: float32[2]) {\n"
                        "//   %neg: float32[2] = aten::neg(%exp)\n"));
}

TEST(Code, IsRefusedWithWhoCouldRunIt) {
  composit::add_operation({.schema = "test::strange(Tensor x) -> Tensor",
                           .infer = [](LazyTensor x) { return std::vector{x.type()}; },
                           .native = [](Array x) { return std::vector{x}; }});
  const LazyTensor x = composit::input("x", tensor_type(DType::float32, {3, 3}));
  const LazyTensor y = composit::apply("test::strange", {x})[0];
  const Graph graph({.inputs = {x}, .outputs = {y}});
  EXPECT_THAT(user_error([&] { backend().compile(graph, with("*: on mosaic")); }),
              Optional(AllOf(HasSubstr("[devices] part 0 on 'mosaic': "),
                             HasSubstr("\n  test::strange: reference could run it"))));
}

}  // namespace
}  // namespace flashlight::devices
