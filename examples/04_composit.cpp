// The array language: graphs written as one writes NumPy, evaluated when asked, an operation of
// one's own, and training. No LibTorch.
#include <cstdlib>
#include <iostream>

#include "composit/ad/chain_rule.h"
#include "composit/ir/print.h"
#include "composit/nn/optimize.h"
#include "composit/numpy/numpy.h"

using composit::Array;
using composit::DType;
namespace cnp = composit::numpy;
namespace nn = composit::nn;

static void expect(bool condition, const char* what) {
  if (condition) return;
  std::cerr << "not so: " << what << "\n";
  std::exit(1);
}

// Nothing is computed before `evaluate`.
static void simplest_example() {
  const cnp::NdArray input = cnp::ones({2, 3}, DType::float32);
  const cnp::NdArray output = cnp::exp(input);
  const Array value = cnp::evaluate(output);
  std::cout << "exp of ones: " << composit::print(value.type()) << "\n";
}

// Each tensor knows what leads to it, and no more.
static void several_inputs_and_outputs() {
  const cnp::NdArray input_a = cnp::ones({5, 10}, DType::float32);
  const cnp::NdArray input_b = cnp::random::random({10});
  const cnp::NdArray input_c = cnp::random::random({5, 1});
  const cnp::NdArray exp = cnp::exp(input_a + input_b);
  const cnp::NdArray tanh = cnp::tanh(input_a + input_c);

  expect(input_c.graph().size() == 1, "an input is one node");
  const Array c = cnp::evaluate(input_c);

  expect(exp.graph().size() == 4, "two inputs, their sum, exp");
  const Array exp_alone = cnp::evaluate(exp);

  const auto [exp_value, tanh_value] = cnp::evaluate(exp, tanh);  // input_a once for both
  expect(exp_value == exp_alone, "the same value alone and with others");
  std::cout << "graphs: input " << input_c.graph().size() << " node, exp " << exp.graph().size()
            << " nodes\n"
            << composit::print(exp.graph());
}

// A new operation is a function of arrays with a name; its derivative follows.
static void adding_a_new_operation() {
  const auto relu = cnp::wrap_as_operation("user::relu(Tensor x) -> Tensor",
                                           [](cnp::NdArray x) { return cnp::maximum(x, 0); });

  const cnp::NdArray input = cnp::random::random({2, 3});
  const cnp::NdArray output = relu(input);
  expect(output.graph().size() == 2, "an input and user::relu");

  const cnp::NdArray gradient = composit::grad(cnp::sum(output), {input})[0];
  const Array slopes = cnp::evaluate(gradient);
  std::cout << "relu: " << output.graph().size() << " nodes, gradient "
            << composit::print(slopes.type()) << "\n";
}

static cnp::NdArray random_input(const std::string& name, const composit::Ints& sizes) {
  return cnp::asarray(cnp::evaluate(cnp::random::random(sizes)), name);
}

// A loss maps to itself. `optimize` is the only place where something is evaluated.
static void training() {
  composit::LazyTensors weights = {random_input("weight", {32, 8})};
  std::vector<composit::Hash> steps;
  for (int iteration = 0; iteration < 3; ++iteration) {
    const cnp::NdArray input = random_input("input", {16, 32});
    const cnp::NdArray output = cnp::matmul(input, weights[0]);
    const cnp::NdArray loss = cnp::mean(output);

    const auto gradients = composit::chain_rule({{loss, loss}}, weights);
    steps.push_back(gradients[0].hash());
    weights = nn::optimize(weights, gradients, nn::sgd({.learning_rate = 1e-3}));
  }
  expect(steps[0] == steps[1] && steps[1] == steps[2], "each step has the graph of the first");
  std::cout << "training: '" << composit::input_name(*weights[0].node)
            << "' after three steps on one graph\n";
}

int main() {
  simplest_example();
  several_inputs_and_outputs();
  adding_a_new_operation();
  training();
}
