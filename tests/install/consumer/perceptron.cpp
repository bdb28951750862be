// Captures a model that knows nothing of Flashlight, and replays the capture on other inputs.
#include <flashlight/flashlight.h>
#include <torch/torch.h>

#include <iostream>

struct PerceptronImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) {
    return output->forward(torch::relu(hidden->forward(x)));
  }

  torch::nn::Linear hidden = register_module("hidden", torch::nn::Linear(4, 8));
  torch::nn::Linear output = register_module("output", torch::nn::Linear(8, 2));
};
TORCH_MODULE(Perceptron);

int main() {
  Perceptron model;
  auto captured = flashlight::trace(model, torch::rand({3, 4}));
  const at::Tensor x = torch::rand({3, 4});
  const bool equal = torch::equal(captured(x), model->forward(x));
  std::cout << (equal ? "replay equals eager\n" : "replay differs from eager\n");
  return equal ? 0 : 1;
}
