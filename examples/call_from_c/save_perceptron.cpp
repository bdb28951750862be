// A perceptron and its loss as a saved capture, as Capture::save writes it of a LibTorch model.
//
//   save_perceptron FOLDER
#include <iostream>

#include "composit/io/saved_capture.h"
#include "composit/ir/error.h"
#include "composit/nn/nn.h"
#include "composit/ops/native.h"

using composit::Array;
using composit::DType;
using composit::Graph;
using composit::input;
using composit::InputKind;
using composit::LazyTensor;
using composit::SavedCapture;
using composit::tensor_type;

// Its results: the squared error against 1 and 0, and the outputs.
static SavedCapture perceptron() {
  SavedCapture capture;
  const auto weight = [&](const std::string& name, const composit::Dims& sizes,
                          const std::vector<double>& values) {
    const auto type = tensor_type(DType::float32, sizes);
    capture.weights[name] = composit::array_of(type, values);
    return input(name, type, InputKind::parameter);
  };
  const LazyTensor x = input("x", tensor_type(DType::float32, {1, 3}));
  const LazyTensor hidden_weight = weight("hidden.weight", {2, 3}, {0.5, -1, 0.25, 1, 0.5, -0.75}),
                   hidden_bias = weight("hidden.bias", {2}, {0.1, -0.2}),
                   out_weight = weight("out.weight", {2, 2}, {1, -1, 0.5, 2}),
                   out_bias = weight("out.bias", {2}, {0, 0.3});
  const LazyTensor hidden = tanh(composit::nn::linear(x, hidden_weight, hidden_bias));
  const LazyTensor y = sigmoid(composit::nn::linear(hidden, out_weight, out_bias));
  const LazyTensor target = composit::constant(
      composit::array_of(tensor_type(DType::float32, {1, 2}), std::vector<double>{1, 0}));
  capture.graph = Graph({.inputs = {x, hidden_weight, hidden_bias, out_weight, out_bias},
                         .outputs = {sum((y - target) * (y - target)), y}});
  capture.example_inputs = {
      composit::array_of(tensor_type(DType::float32, {1, 3}), std::vector<double>{1, 2, 3})};
  std::vector<Array> values = capture.example_inputs;
  for (size_t i = 1; i < capture.graph.inputs().size(); ++i)
    values.push_back(capture.weights[input_name(*capture.graph.inputs()[i].node)]);
  capture.example_outputs = composit::evaluate(capture.graph, values);
  return capture;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    composit::save(perceptron(), argv[1]);
  } catch (const composit::UserError& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
