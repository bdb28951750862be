// Models at any sizes, for tests of plans and code that serve several of them.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "composit/eval/evaluate.h"
#include "composit/nn/layers.h"
#include "composit/nn/nn.h"
#include "composit/ops/native.h"
#include "tests/agreement.h"
#include "tests/flashlight/mosaic/compare.h"
#include "tests/flashlight/mosaic/layers.h"
#include "tests/held_graph.h"

namespace flashlight::mosaic::test {

using namespace composit;  // NOLINT

using Sizes = std::vector<int64_t>;
using Model = std::function<LazyTensor(const Sizes& sizes)>;

// Numbers of rows of a table, all below `rows`.
inline LazyTensor row_numbers(const std::string& name, const Dims& sizes, int64_t rows) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < tensor_type(DType::int64, sizes).numel(); ++i)
    numbers.push_back(static_cast<double>(i * 7 % rows));
  return held_input(name, array_of(tensor_type(DType::int64, sizes), numbers));
}

// Words and their places, two encoder layers that do not see all of them, and a pooler.
inline LazyTensor encoder(const Sizes& batch_and_tokens) {
  const int64_t batch = batch_and_tokens[0], tokens = batch_and_tokens[1], size = 32;
  nn::Initializer init(1);
  const LazyTensor words = init.normal("words", {50, size}, 0, 1),
                   places = init.normal("places", {64, size}, 0, 1);
  LazyTensor x =
      nn::embedding(row_numbers("ids", {batch, tokens}, 50), words) + slice(places, 0, 0, tokens);
  const LazyTensor mask = given("mask", {batch, 1, 1, tokens}, 3);
  x = nn::layer_norm(x, nn::norm_layer(init, "norm", size));
  for (const char* name : {"layer.0", "layer.1"})
    x = nn::transformer_encoder_layer(
        x, nn::encoder_layer(init, name, size, 64),
        {.head_size = 8, .attn_mask = mask, .activation = [](const LazyTensor& y) {
           return nn::gelu(y);
         }});
  return tanh(nn::linear(apply_one("aten::select.int", {x, 1, 0}),
                         nn::linear_layer(init, "pooler", size, size)));
}
inline LazyTensor encoder_of_one(const Sizes& tokens) { return encoder({1, tokens[0]}); }

// Residual blocks, the second one with half as many pixels.
inline LazyTensor residual_network(const Sizes& batch) {
  nn::Initializer init(1);
  LazyTensor x = given("x", {batch[0], 3, 28, 28});
  x = nn::relu(
      nn::conv2d(x, init.kaiming_normal("stem", {16, 3, 7, 7}), {.stride = {2}, .padding = {3}}));
  x = nn::max_pool2d(x, {3}, {.stride = {2}, .padding = {1}});
  x = nn::resnet_module(
      x,
      {nn::resnet_block(init, "block.0", 16, 16, 1), nn::resnet_block(init, "block.1", 16, 32, 2)},
      {1, 2});
  return nn::linear(mean(x, {2, 3}), nn::linear_layer(init, "head", 32, 10));
}

// Images of any size: convolutions that keep it.
inline LazyTensor image_filter(const Sizes& pixels) {
  const LazyTensor x = relu(conv3x3(given("x", {1, 3, pixels[0], pixels[1]}), "first", 32));
  return conv3x3(relu(conv3x3(x, "second", 32)) + x, "third", 3);
}

// The code gives the values of the definitions.
inline void expect_right(const Compiled& compiled, const Case& one) {
  const std::vector<Array> expected = evaluate(one.graph, one.values),
                           results = compiled(one.values);
  ASSERT_EQ(results.size(), expected.size());
  for (size_t i = 0; i < results.size(); ++i)
    EXPECT_EQ(composit::test::difference(results[i], expected[i], 4), "");
}

inline Graph graph_at(const Model& model, const Sizes& sizes) {
  return case_of("", {model(sizes)}).graph;
}

}  // namespace flashlight::mosaic::test
