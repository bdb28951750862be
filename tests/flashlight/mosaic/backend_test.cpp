// Calls of compiled graphs: what they are given, what is kept from one to the next.
#include "flashlight/mosaic/backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "composit/eval/evaluate.h"
#include "composit/ir/parse.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"
#include "flashlight/backends/profile.h"
#include "flashlight/cpp/backend.h"
#include "flashlight/runtime/random.hpp"
#include "tests/agreement.h"
#include "tests/flashlight/mosaic/compare.h"
#include "tests/user_error.h"

namespace flashlight::mosaic {
namespace {

using namespace composit;  // NOLINT
using composit::test::difference;
using test::Case;
using test::case_of;
using test::given;
using test::weight;
using testing::HasSubstr;
using testing::Optional;

Case classifier() {
  const LazyTensor x = given("x", {9, 65}), w = weight("w", {33, 65}, 0.1), b = weight("b", {33});
  return case_of("classifier", {softmax(apply_one("aten::linear", {x, w, b}), -1)});
}

TEST(MosaicBackend, weights_are_read_in_each_call_unless_frozen) {
  const Case one = classifier();
  EXPECT_EQ(test::differences({one}, {.freeze = false}), "");
  const Compiled anew = test::compiled(one.graph, {}, {.freeze = false});
  std::vector<Array> values = one.values;
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = evaluate({held_input("v", values[i]) * 1.5}, {})[0];
    EXPECT_EQ(difference(anew(values)[0], evaluate(one.graph, values)[0], 4), "");
  }
}

TEST(MosaicBackend, frozen_weights_need_not_be_given) {
  const Case one = classifier();
  const Compiled compiled = test::compiled(one.graph, one.values, {}, 2);
  std::vector<Array> values = one.values;
  for (size_t i = 0; i < values.size(); ++i)
    if (input_kind(*one.graph.inputs()[i].node) == InputKind::parameter) values[i] = Array();
  EXPECT_EQ(difference(compiled(values)[0], evaluate(one.graph, one.values)[0], 4), "");
}

// Weights that calls read as they are stay shared with the caller; the others are panels.
TEST(MosaicBackend, packed_weights_are_not_kept) {
  const Case one = classifier();
  std::vector<Array> weights(one.values.size()), inputs = one.values;
  std::map<std::string, std::weak_ptr<const void>> owners;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (input_kind(*one.graph.inputs()[i].node) != InputKind::parameter) continue;
    weights[i] = Array::copy_of(one.values[i].type(), one.values[i].data());
    owners[input_name(*one.graph.inputs()[i].node)] = weights[i].owner();
    inputs[i] = Array();
  }
  const Compiled compiled = test::compiled(one.graph, weights, {}, 2);
  weights.clear();
  EXPECT_TRUE(owners.at("w").expired());
  EXPECT_FALSE(owners.at("b").expired());
  EXPECT_EQ(difference(compiled(inputs)[0], evaluate(one.graph, one.values)[0], 4), "");
}

TEST(MosaicBackend, errors_of_the_caller) {
  const Case one = classifier();
  const PlanOptions options = {.name = "classifier"};
  const Compiled compiled = test::compiled(one.graph, one.values, options);
  const auto call = [&](const std::vector<Array>& values) {
    return user_error([&] { compiled(values); });
  };
  EXPECT_THAT(call({}), Optional(HasSubstr("[classifier] expected 3 inputs, received 0")));
  std::vector<Array> values = one.values;
  size_t x = 0;
  while (input_name(*one.graph.inputs()[x].node) != "x") ++x;
  values[x] = array_of(tensor_type(DType::float32, {9, 64}), std::vector<double>(9 * 64));
  EXPECT_THAT(call(values), Optional(HasSubstr("input 'x': expected float32[9, 65], received "
                                               "float32[9, 64]")));
  values[x] = array_of(tensor_type(DType::float64, {9, 65}), std::vector<double>(9 * 65));
  EXPECT_THAT(call(values), Optional(HasSubstr("received float64[9, 65]")));
  values[x] = Array();
  EXPECT_THAT(call(values), Optional(HasSubstr("input 'x' has no value")));
  EXPECT_THAT(user_error([&] { test::compiled(one.graph, {}, options); }),
              Optional(HasSubstr("has no value to be compiled with")));
  std::vector<Array> wrong(one.values.size(), values[x == 0 ? 1 : 0]);
  EXPECT_THAT(user_error([&] { test::compiled(one.graph, wrong, options); }),
              Optional(HasSubstr("[classifier] input '")));
}

TEST(MosaicBackend, errors_of_generated_code) {
  const Graph graph = parse(R"(graph(%x: float32[5, 300], %i: int64[7]) {
    %y: float32[7, 300] = aten::index_select(%x, %i, dim=0)
    %z: float32[7, 300] = aten::tanh(%y)
    return %z
  })");
  for (const int threads : {1, 2, 3}) {
    const Compiled compiled = test::compiled(graph, {}, {.name = "pick"}, threads);
    const Array x = array_of(tensor_type(DType::float32, {5, 300}), std::vector<double>(1500, 0.5));
    const auto indices = [](int64_t last) {
      return array_of(tensor_type(DType::int64, {7}),
                      std::vector<double>{0, 1, 2, 3, 4, 0, static_cast<double>(last)});
    };
    EXPECT_THAT(user_error([&] {
                  compiled({x, indices(5)});
                }),
                Optional(HasSubstr("out of range")));
    EXPECT_EQ(difference(compiled({x, indices(4)})[0], evaluate(graph, {x, indices(4)})[0]), "");
  }
}

// An element is never stored beside the array.
TEST(MosaicBackend, stores_to_loaded_indices_are_checked) {
  for (const char* scattered : {"aten::index_add(%z, %i, %x, dim=0, alpha=scalar(1))",
                                "aten::index_put(%z, [%i], %x, accumulate=true)",
                                "aten::index_put(%z, [%i], %x, accumulate=false)"}) {
    const Graph graph = parse(R"(graph(%x: float32[7, 300], %i: int64[7]) {
      %z: float32[5, 300] = aten::zeros(size=[5, 300], dtype=float32, layout=none, device=none, pin_memory=none)
      %y: float32[5, 300] = )" +
                              std::string(scattered) + "\n return %y\n}");
    const Array x = array_of(tensor_type(DType::float32, {7, 300}), std::vector<double>(2100, 0.5));
    const auto indices = [](double last) {
      return array_of(tensor_type(DType::int64, {7}), std::vector<double>{0, 1, 2, 3, 4, 0, last});
    };
    for (const Compiled& compiled : {test::compiled(graph, {}, {.name = "scatter"}, 2),
                                     cpp::compile(graph, {.name = "scatter"})}) {
      for (const double out_of_range : {5., 1e9, -6.})
        EXPECT_THAT(user_error([&] {
                      compiled({x, indices(out_of_range)});
                    }),
                    Optional(HasSubstr("out of range")));
      EXPECT_EQ(difference(compiled({x, indices(4)})[0], evaluate(graph, {x, indices(4)})[0]), "");
    }
  }
}

TEST(MosaicBackend, mutations) {
  const LazyTensor x = given("x", {9, 65}), w = weight("w", {33, 65}, 0.1), m = weight("m", {33});
  const LazyTensor y = apply_one("aten::linear", {x, w}), next = m * 0.9 + mean(y, {0}) * 0.1;
  Case one = case_of("running mean", {(y - next)});
  Graph::Parts parts = {.inputs = {one.graph.inputs().begin(), one.graph.inputs().end()},
                        .outputs = {(y - next)},
                        .mutations = {{m, next}, {x, (x * 2.0)}}};
  one.graph = Graph(std::move(parts));
  EXPECT_EQ(test::differences({one}), "");
}

TEST(MosaicBackend, results_that_are_inputs_or_absent) {
  const LazyTensor x = given("x", {9, 5}), w = weight("w", {3, 4});
  const LazyTensor y = tanh(x);
  EXPECT_EQ(
      test::differences({case_of("several", {x, y, y, w, {}, (w * 2.0), transpose(x, 0, 1)})}), "");
}

TEST(MosaicBackend, calls_at_the_same_time) {
  const Case one = classifier();
  const Array expected = evaluate(one.graph, one.values)[0];
  const Compiled compiled = test::compiled(one.graph, one.values, {}, 2);
  std::vector<std::string> found(2);
  std::vector<std::thread> threads;
  for (std::string& text : found)
    threads.emplace_back([&] {
      for (int i = 0; i < 50 && text.empty(); ++i)
        text = difference(compiled(one.values)[0], expected, 4);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(found[0], "");
  EXPECT_EQ(found[1], "");
}

// Steps that one thread does alone: order, factors, draws.
TEST(MosaicBackend, draws_are_those_of_the_cpp_backend) {
  const Graph graph = parse(R"(graph(%x: float32[5, 30]) {
    %noise: float32[5, 30] = aten::randn_like(%x)
    %sum: float32[5, 30] = aten::add.Tensor(%x, %noise)
    %more: float32[5, 30] = aten::rand_like(%sum)
    %y: float32[5, 30] = aten::mul.Tensor(%sum, %more)
    return %y
  })");
  const Array x = array_of(tensor_type(DType::float32, {5, 30}), std::vector<double>(150, 0.5));
  const Compiled plain = cpp::compile(graph, {.name = "noise", .flags = {"-O1"}});
  const Compiled compiled = test::compiled(graph, {}, {.name = "noise"}, 2);
  for (const uint64_t seed : {1, 2})
    EXPECT_EQ(difference(compiled({x}, fl::Generator(seed))[0], plain({x}, fl::Generator(seed))[0]),
              "");
  EXPECT_NE(difference(compiled({x}, fl::Generator(1))[0], compiled({x}, fl::Generator(2))[0]), "");
}

TEST(MosaicBackend, kernels_are_timed) {
  const Case one = classifier();
  const Compiled compiled = test::compiled(one.graph, one.values, {}, 2);
  std::vector<InputBuffer> inputs;
  for (const Array& value : one.values) inputs.emplace_back(value.data());
  std::vector<float> result(9 * 33);
  const Buffer results[] = {result.data()};
  const Profile profile = compiled->profile(inputs, results, nullptr);
  ASSERT_EQ(profile.size(), plan_of(*compiled).run.size());
  for (const TimedKernel& kernel : profile) EXPECT_LE(kernel.start, kernel.end) << kernel.name;
  EXPECT_THAT(table(profile), HasSubstr("linear"));
  EXPECT_THAT(chrome_trace(profile), HasSubstr("traceEvents"));
}

}  // namespace
}  // namespace flashlight::mosaic
