#include "examples/programs/programs.h"

#include "composit/ad/chain_rule.h"
#include "composit/ir/annotation_scope.h"
#include "composit/nn/nn.h"
#include "composit/ops/control_flow.h"
#include "composit/ops/functions.h"
#include "composit/ops/vmap.h"
#include "examples/objectives/gmm.h"
#include "flashlight/scalar/scalar.h"

using composit::DType;
using composit::Graph;
using composit::input;
using composit::InputKind;
using composit::LazyTensor;
using composit::LazyTensors;
using composit::tensor_type;

namespace examples {
namespace {

// `y` of `inputs`, and its vjp: what flows back to `wanted` for `dy`.
std::vector<Program> with_gradient(const std::string& name, LazyTensors inputs, const LazyTensor& y,
                                   const LazyTensors& wanted) {
  std::vector<Program> programs = {{name, Graph({.inputs = inputs, .outputs = {y}}), {"y"}}};
  std::vector<std::string> names;
  for (const LazyTensor& input : wanted) names.push_back("d_" + composit::input_name(*input.node));
  const LazyTensor dy = input("dy", y.type());
  const auto gradients = composit::chain_rule({{y, dy}}, wanted);
  inputs.push_back(dy);
  programs.push_back({name + "_gradient", Graph({.inputs = inputs, .outputs = gradients}), names});
  return programs;
}

std::vector<Program> relu3() {
  const auto function = flashlight::scalar([](auto x) {
    if (x < 0.0) return 0.0 * x;
    if (x < 1.0) return 1.0 / 3.0 * x * x * x;
    return x - 2.0 / 3.0;
  });
  const LazyTensor x = input("x", tensor_type(DType::float32, {1024}));
  return with_gradient("relu3", {x}, function.tensor(x), {x});
}

// Which way a matrix goes depends on its sum.
std::vector<Program> sqrl() {
  const auto one = [](const LazyTensors& matrix) {
    const LazyTensor& x = matrix[0];
    const LazyTensors t = composit::cond(
        sum(x) < 0.0, [&](const LazyTensors&) { return LazyTensors{x * -0.125}; },
        [&](const LazyTensors&) { return LazyTensors{x * x * 0.5}; });
    return LazyTensors{mean(sin(t[0]) * t[0])};
  };
  const LazyTensor x = input("x", tensor_type(DType::float32, {1000, 16, 16}));
  return with_gradient("sqrl", {x}, composit::vmap(one)({x})[0], {x});
}

std::vector<Program> perceptron() {
  const auto parameter = [](const char* name, composit::Dims sizes) {
    return input(name, tensor_type(DType::float32, std::move(sizes)), InputKind::parameter);
  };
  const LazyTensor x = input("x", tensor_type(DType::float32, {64, 784})),
                   hidden_weight = parameter("hidden.weight", {128, 784}),
                   hidden_bias = parameter("hidden.bias", {128}),
                   output_weight = parameter("output.weight", {10, 128}),
                   output_bias = parameter("output.bias", {10});
  const LazyTensor hidden = relu(composit::nn::linear(x, hidden_weight, hidden_bias));
  const LazyTensor y = composit::nn::linear(hidden, output_weight, output_bias);
  return with_gradient("perceptron", {x, hidden_weight, hidden_bias, output_weight, output_bias}, y,
                       {hidden_weight, hidden_bias, output_weight, output_bias});
}

// Numbers of 16 bits are stored, and computed as floats.
std::vector<Program> rms_norm() {
  const LazyTensor x = input("x", tensor_type(DType::bfloat16, {64, 512})),
                   weight =
                       input("weight", tensor_type(DType::bfloat16, {512}), InputKind::parameter);
  const LazyTensor wide = to(x, DType::float32);
  const LazyTensor scale = rsqrt(mean(wide * wide, {1}, true) + 1e-6);
  return with_gradient("rms_norm", {x, weight}, to(wide * scale, DType::bfloat16) * weight,
                       {x, weight});
}

std::vector<Program> gmm() {
  const objectives::Problem problem = objectives::gmm_problem({.d = 64, .k = 200, .n = 1000});
  return {{"gmm", problem.objective, {"log_posterior"}},
          {"gmm_gradient", problem.gradient, {"log_posterior", "d_alphas", "d_means", "d_icf"}}};
}

}  // namespace

std::vector<Program> programs() {
  std::vector<Program> all;
  for (const std::vector<Program>& some : {relu3(), sqrl(), perceptron(), rms_norm(), gmm()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

}  // namespace examples
