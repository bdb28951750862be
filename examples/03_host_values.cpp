// Values that a tracer cannot see, and how they are found: Adam counts its steps in a number of the
// host.
#include <flashlight/check.h>
#include <flashlight/trace.h>
#include <torch/torch.h>

#include <iostream>

int main() {
  torch::nn::Linear model(4, 1);
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(0.01));
  auto step = [&](at::Tensor x) {
    optimizer.zero_grad();
    at::Tensor loss = model->forward(x).pow(2).mean();
    loss.backward();
    optimizer.step();
    return loss.detach();
  };
  const at::Tensor x = torch::rand({8, 4});
  step(x);  // makes the optimizer's state
  flashlight::TraceSettings settings;
  settings.named = flashlight::named_tensors(model, "model");
  auto captured = flashlight::trace(settings, step, x);
  const flashlight::CheckReport report = captured.check(x);
  std::cout << str(report);
  return report.graph_differences.empty() ? 1 : 0;  // the step count has changed, and check says so
}
