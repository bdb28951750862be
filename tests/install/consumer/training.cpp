// A network is trained on top of the installed package: exclusive or, which no linear layer can do.
#include <composit/ad/chain_rule.h>
#include <composit/nn/nn.h>
#include <composit/ops/native.h>

#include <iostream>

using namespace composit;

static LazyTensor held(const std::string& name, Type type, const std::vector<double>& values) {
  return held_input(name, array_of(type, values));
}

int main() {
  nn::Initializer init(1);
  const nn::Affine hidden = nn::linear_layer(init, "hidden", 2, 8);
  const nn::Affine output = nn::linear_layer(init, "output", 8, 1);
  const LazyTensor x = held("x", tensor_type(DType::float32, {4, 2}), {0, 0, 0, 1, 1, 0, 1, 1});
  const LazyTensor target = held("target", tensor_type(DType::float32, {4, 1}), {0, 1, 1, 0});
  const LazyTensor y = nn::linear(tanh(nn::linear(x, hidden)), output);
  const LazyTensor loss = nn::binary_cross_entropy_with_logits(y, target);

  const auto& weights = init.parameters();
  const nn::TrainingStep step(weights, grad(loss, weights), nn::adam({.learning_rate = 0.05}),
                              {.observed = {loss}});
  Values values;
  const double before = elements<double>(step(values)[0])[0];
  for (int i = 0; i < 200; ++i) step(values);
  const double after = elements<double>(step(values)[0])[0];
  std::cout << "loss " << before << " at first, " << after << " after 200 steps\n";
  return before > 0.5 && after < 0.02 ? 0 : 1;
}
