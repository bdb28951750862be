// Graphs by a plugin of PJRT, beside the interpreter of their definitions: the one that the
// variable FLASHLIGHT_PJRT_PLUGIN names, or that the environment of `./dev interchange` has.
// Without one, what needs one is skipped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "composit/eval/evaluate.h"
#include "composit/ir/parse.h"
#include "composit/ops/native.h"
#include "flashlight/backends/registry.h"
#include "tests/user_error.h"

namespace flashlight {
namespace {

using composit::Array;
using composit::Graph;
using composit::tensor_type;
using composit::user_error;
using testing::HasSubstr;

std::string plugin() {
  namespace fs = std::filesystem;
  if (const char* path = std::getenv("FLASHLIGHT_PJRT_PLUGIN")) return path;
  std::error_code none;
  for (const auto& python :
       fs::directory_iterator(std::string(FLASHLIGHT_SOURCE_DIR) + "/build/interchange/lib", none))
    for (const auto& package : fs::directory_iterator(python.path() / "site-packages", none))
      if (const fs::path file = package.path() / "libpjrt_cpu.so"; fs::exists(file, none))
        return file.string();
  return "";
}

composit::Compiled compiled(const Graph& graph, const std::string& path, int64_t device = 0) {
  return backend_named("pjrt").compile(
      graph, {.name = "program", .options = {{"pjrt", path}, {"device", device}}});
}

std::string error_of(const std::function<void()>& action) {
  return user_error(action).value_or("no error");
}

const char* const kLayer = R"(
graph(%x: float32[3, 4], %w: float32[5, 4] parameter "w", %b: float32[5] parameter "b") {
  %y: float32[3, 5] = aten::linear(%x, %w, %b)
  %z: float32[3, 5] = aten::gelu(%y, approximate="none")
  %t: float32[5, 3] = aten::permute(%z, dims=[1, 0])
  %s: float32[] = aten::sum(%z, dtype=none)
  return %t, %s
})";

Array floats(const composit::Dims& sizes, double start) {
  const composit::Type type = tensor_type(composit::DType::float32, sizes);
  std::vector<double> values(static_cast<size_t>(type.numel()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(start + static_cast<double>(i));
  return composit::array_of(type, values);
}

class Pjrt : public testing::Test {
 protected:
  void SetUp() override {
    if (plugin().empty())
      GTEST_SKIP() << "there is no plugin of PJRT: ./dev interchange installs one";
  }
};

TEST_F(Pjrt, GivesWhatDefinitionsSay) {
  const Graph graph = composit::parse(kLayer);
  const composit::Compiled layer = compiled(graph, plugin());
  EXPECT_THAT(layer->source(), HasSubstr("stablehlo.dot_general"));
  for (const double start : {0.5, 2.0}) {
    const std::vector<Array> inputs = {floats({3, 4}, start), floats({5, 4}, 7), floats({5}, 3)};
    const std::vector<Array> expected = composit::evaluate(graph, inputs);
    const std::vector<Array> received = layer(inputs);
    ASSERT_EQ(received.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(received[i].type().sizes, expected[i].type().sizes);
      const auto ours = composit::elements<double>(received[i]);
      const auto theirs = composit::elements<double>(expected[i]);
      for (size_t k = 0; k < theirs.size(); ++k) EXPECT_NEAR(ours[k], theirs[k], 1e-5) << i;
    }
  }
}

TEST_F(Pjrt, ElementsOfAllKinds) {
  const Graph graph = composit::parse(R"(
graph(%x: int64[4], %y: float64[4], %p: bool[4]) {
  %a: int64[4] = aten::mul.Tensor(%x, %x)
  %b: float64[4] = aten::exp(%y)
  %c: bool[4] = aten::logical_not(%p)
  return %a, %b, %c
})");
  const auto of = [](composit::DType dtype, const std::vector<double>& values) {
    return composit::array_of(tensor_type(dtype, {4}), values);
  };
  const std::vector<Array> inputs = {of(composit::DType::int64, {1, -2, 3'000'000'000, 4}),
                                     of(composit::DType::float64, {0, 1, -2, 0.25}),
                                     of(composit::DType::bool_, {1, 0, 0, 1})};
  const std::vector<Array> expected = composit::evaluate(graph, inputs);
  const std::vector<Array> received = compiled(graph, plugin())(inputs);
  EXPECT_EQ(received[0], expected[0]);
  EXPECT_EQ(received[2], expected[2]);
  const auto ours = composit::elements<double>(received[1]);
  const auto theirs = composit::elements<double>(expected[1]);
  for (size_t k = 0; k < theirs.size(); ++k) EXPECT_NEAR(ours[k], theirs[k], 1e-12 * theirs[k]);
}

TEST_F(Pjrt, AGuardThatDoesNotHoldIsAnError) {
  const Graph graph = composit::parse(R"(
graph(%x: float32[2], %i: int64[3]) {
  %y: float32[3] = aten::index_select(%x, %i, dim=0)
  return %y
})");
  const composit::Compiled program = compiled(graph, plugin());
  const Array x = floats({2}, 1);
  const auto indices = [](std::vector<double> values) {
    return composit::array_of(tensor_type(composit::DType::int64, {3}), values);
  };
  EXPECT_EQ(program({x, indices({1, 0, 1})}), composit::evaluate(graph, {x, indices({1, 0, 1})}));
  EXPECT_THAT(error_of([&] { program({x, indices({1, 2, 1})}); }), HasSubstr("does not hold"));
}

TEST_F(Pjrt, CallsMayRunAtTheSameTime) {
  const Graph graph = composit::parse(kLayer);
  const composit::Compiled layer = compiled(graph, plugin());
  std::vector<std::thread> threads;
  std::vector<std::vector<Array>> received(4);
  const auto inputs = [](size_t i) {
    return std::vector<Array>{floats({3, 4}, static_cast<double>(i)), floats({5, 4}, 7),
                              floats({5}, 3)};
  };
  for (size_t i = 0; i < received.size(); ++i)
    threads.emplace_back([&, i] {
      for (int n = 0; n < 20; ++n) received[i] = layer(inputs(i));
    });
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < received.size(); ++i) EXPECT_EQ(received[i], layer(inputs(i)));
}

TEST_F(Pjrt, SaysWhichDevicesThereAre) {
  EXPECT_THAT(error_of([] { compiled(composit::parse(kLayer), plugin(), 99); }),
              HasSubstr("expected a device from 0 to"));
}

TEST(PjrtPlugins, AreRefusedWithAReason) {
  const Graph graph = composit::parse(kLayer);
  EXPECT_THAT(error_of([&] { compiled(graph, ""); }),
              HasSubstr("[pjrt] expected the path of a plugin of PJRT"));
  EXPECT_THAT(
      error_of([&] { compiled(graph, "/nowhere/plugin.so"); }),
      HasSubstr("[pjrt] /nowhere/plugin.so: expected a library that this program can load"));
  EXPECT_THAT(error_of([&] { compiled(graph, FLASHLIGHT_OLD_PJRT_PLUGIN); }),
              HasSubstr("a later one of 0, received version 9.3"));
  EXPECT_THAT(error_of([&] { compiled(graph, "libm.so.6"); }), HasSubstr("[pjrt] "));
}

}  // namespace
}  // namespace flashlight
