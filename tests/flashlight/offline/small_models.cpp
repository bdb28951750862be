#include "tests/flashlight/offline/small_models.h"

#include "composit/ad/chain_rule.h"
#include "composit/eval/evaluate.h"
#include "tests/flashlight/mosaic/layers.h"

namespace flashlight::test {
namespace {

using namespace composit;  // NOLINT
using mosaic::test::conv3x3;
using mosaic::test::convolution;
using mosaic::test::given;
using mosaic::test::linear;
using mosaic::test::weight;

SavedCapture captured(Graph::Parts parts) {
  SavedCapture capture;
  const mosaic::test::Case one = mosaic::test::case_of("", parts.outputs);
  parts.inputs = one.graph.inputs();
  for (size_t i = 0; i < parts.inputs.size(); ++i) {
    const Node& node = *parts.inputs[i].node;
    if (input_kind(node) == InputKind::user_input)
      capture.example_inputs.push_back(one.values[i]);
    else
      capture.weights[input_name(node)] = one.values[i];
  }
  capture.example_outputs = evaluate(one.graph, one.values);
  capture.graph = Graph(std::move(parts));
  return capture;
}

LazyTensor batch_norm(const LazyTensor& x, const std::string& name) {
  const Dims sizes = {x.sizes()[1]};
  return apply_one(
      "aten::batch_norm",
      {x, weight(name + "w", sizes), weight(name + "b", sizes), weight(name + "m", sizes),
       square(weight(name + "v", sizes)) + 0.5, false, 0.1, 1e-5, true});
}

LazyTensor block(const LazyTensor& x, const std::string& name, int64_t out, int64_t stride) {
  const LazyTensor first = relu(batch_norm(conv3x3(x, name + "1", out, stride), name + "n")),
                   second = batch_norm(conv3x3(first, name + "2", out), name + "o");
  if (stride == 1) return relu(second + x);
  const LazyTensor w = weight(name + "d", {out, x.sizes()[1], 1, 1}, 0.1);
  return relu(second + convolution(x, w, {.stride = {stride, stride}}));
}

LazyTensor group_norm(const LazyTensor& x, const std::string& name) {
  const Dims sizes = {x.sizes()[1]};
  return apply_one("aten::group_norm",
                   {x, 4, weight(name + "w", sizes), weight(name + "b", sizes)});
}

LazyTensor attention(const LazyTensor& image, const std::string& name) {
  const Ints sizes = image.sizes();
  const int64_t pixels = sizes[2] * sizes[3];
  const LazyTensor x = permute(reshape(image, {sizes[0], sizes[1], pixels}), {0, 2, 1});
  const auto heads = [&](const char* part) {
    const LazyTensor all = linear(x, name + part, sizes[1]);
    return permute(reshape(all, {sizes[0], pixels, 4, sizes[1] / 4}), {0, 2, 1, 3});
  };
  const LazyTensor mixed =
      apply_one("aten::scaled_dot_product_attention", {heads("q"), heads("k"), heads("v")});
  const LazyTensor joined = reshape(permute(mixed, {0, 2, 1, 3}), {sizes[0], pixels, sizes[1]});
  return image + reshape(permute(linear(joined, name + "o", sizes[1]), {0, 2, 1}), sizes);
}

}  // namespace

SavedCapture small_resnet() {
  const LazyTensor stem =
      convolution(given("image", {2, 3, 37, 35}), weight("stem", {32, 3, 7, 7}, 0.1),
                  {.stride = {2, 2}, .padding = {3, 3}});
  LazyTensor x = apply_one("aten::max_pool2d",
                           {relu(batch_norm(stem, "s")), Ints{3, 3}, Ints{2, 2}, Ints{1, 1}});
  x = block(block(x, "a", 32, 1), "b", 40, 2);
  return captured({.outputs = {softmax(linear(mean(x, {2, 3}), "fc", 11), -1)}});
}

SavedCapture small_unet() {
  const auto norm = [](const LazyTensor& x, const std::string& name) {
    return apply_one("aten::silu", {group_norm(x, name)});
  };
  const LazyTensor top = conv3x3(given("latent", {1, 4, 10, 13}), "in", 32);
  const LazyTensor kept = conv3x3(norm(top, "a"), "b", 32) + top;
  const LazyTensor small = attention(conv3x3(kept, "down", 32, 2), "c");
  const auto none = ArgumentValue();
  const LazyTensor up = apply_one("aten::upsample_nearest2d", {small, Ints{10, 13}, none, none});
  const LazyTensor joined = conv3x3(norm(cat({up, kept}, 1), "d"), "e", 32);
  return captured({.outputs = {conv3x3(norm(joined, "f"), "out", 4)}});
}

SavedCapture small_training_step() {
  const LazyTensor image = given("image", {3, 3, 9, 8}), target = given("target", {3, 5});
  const LazyTensor hidden = relu(group_norm(conv3x3(image, "a", 8), "n"));
  const LazyTensor loss = mean(square(linear(mean(hidden, {2, 3}), "fc", 5) - target));
  Graph::Parts parts = {.outputs = {loss}};
  LazyTensors parameters;
  const mosaic::test::Case forward = mosaic::test::case_of("", parts.outputs);
  for (const LazyTensor& input : forward.graph.inputs())
    if (input_kind(*input.node) == InputKind::parameter) parameters.push_back(input);
  const LazyTensors gradients = grad(loss, parameters);
  for (size_t i = 0; i < parameters.size(); ++i) {
    parts.outputs.push_back(gradients[i]);
    parts.mutations.push_back({parameters[i], (parameters[i] - gradients[i] * 0.1)});
  }
  return captured(std::move(parts));
}

}  // namespace flashlight::test
