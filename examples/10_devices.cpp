// One training step on three engines: modules are placed by name, values pass between them, and
// gradients go back over the same borders.
//
// Prints who computes what, and what is copied; fails if the step differs from LibTorch's.
#include <flashlight/flashlight.h>
#include <torch/torch.h>

#include <iostream>

int main() {
  torch::nn::Sequential model(torch::nn::Linear(8, 32), torch::nn::Tanh(),
                              torch::nn::Linear(32, 32), torch::nn::Tanh(),
                              torch::nn::Linear(32, 1));
  const auto loss_of = [&](at::Tensor x, at::Tensor y) {
    return torch::mse_loss(model->forward(x), y);
  };
  const at::Tensor x = torch::rand({16, 8}), y = x.sum(1, true).sin();
  flashlight::TraceSettings settings;
  settings.named = flashlight::named_tensors(model, "model");
  const auto captured = flashlight::trace(settings, loss_of, x, y);

  const flashlight::Devices devices{
      .choices =
          "device small: mosaic, threads 1, memory far   # its values are copied\n"
          "model.0: on cpp\n"
          "model.2: on small\n"
          "model.4: on aten\n"
          "*: on mosaic\n"};
  const composit::BackendChoice choice = devices;
  std::cout << flashlight::backend_named(choice.name)
                   .plan(captured.graph(), {.options = choice.options, .may_prepare = true});

  const auto compiled = flashlight::compile(captured, {.backend = devices});
  const at::Tensor loss = compiled(x, y), expected = loss_of(x, y);
  const auto gradients = torch::autograd::grad({loss}, model->parameters()),
             by_libtorch = torch::autograd::grad({expected}, model->parameters());
  double difference = (loss - expected).abs().item<double>();
  for (size_t i = 0; i < gradients.size(); ++i)
    difference = std::max(difference, (gradients[i] - by_libtorch[i]).abs().max().item<double>());
  std::cout << "largest difference: " << difference << '\n';
  return difference < 1e-5 ? 0 : 1;
}
