// A whole training step as one graph: forward, backward, clipped gradients, optimizer. A replay
// trains.
#include <flashlight/check.h>
#include <flashlight/trace.h>
#include <torch/torch.h>

#include <iostream>

// LibTorch's torch::nn::utils::clip_grad_norm_ returns the norm as a number, for which alone a
// capture would hold; this one keeps it in a tensor.
// [clip]
at::Tensor clip_grad_norm(const std::vector<at::Tensor>& parameters, double max_norm) {
  std::vector<at::Tensor> norms;
  for (const at::Tensor& parameter : parameters)
    if (parameter.grad().defined()) norms.push_back(parameter.grad().data().norm(2.0));
  const at::Tensor norm = torch::stack(norms).norm(2.0);
  const at::Tensor factor = torch::clamp_max(max_norm / (norm + 1e-6), 1.0);
  for (const at::Tensor& parameter : parameters)
    if (parameter.grad().defined()) parameter.grad().data().mul_(factor);
  return norm;
}
// [clip]

int main() {
  torch::nn::Sequential model(torch::nn::Linear(4, 16), torch::nn::Tanh(),
                              torch::nn::Linear(16, 1));
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.05));
  auto step = [&](at::Tensor x, at::Tensor target) {
    optimizer.zero_grad();
    at::Tensor loss = torch::mse_loss(model->forward(x), target);
    loss.backward();
    clip_grad_norm(model->parameters(), 1.0);
    optimizer.step();
    return loss.detach();
  };

  const at::Tensor x = torch::rand({32, 4}), target = x.sum(1, true).sin();
  flashlight::TraceSettings settings;
  settings.named =
      flashlight::named_tensors(model, "model");  // a lambda has no names for what it uses
  auto captured = flashlight::trace(settings, step, x, target);
  for (const std::string& line : captured.assumptions()) std::cout << line << '\n';

  const float before = captured(x, target).item<float>();
  for (int i = 0; i < 200; ++i) captured(x, target);  // writes the model's parameters, as step does
  const float after = step(x, target).item<float>();
  std::cout << "loss " << before << " -> " << after << '\n';
  return after < before ? 0 : 1;
}
