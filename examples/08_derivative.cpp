// The derivative of a loss: of a lambda over a module, whose parameters it goes by.
#include <composit/ir/print.h>
#include <flashlight/trace.h>
#include <torch/torch.h>

#include <iostream>

int main() {
  torch::nn::Sequential model(torch::nn::Linear(4, 16), torch::nn::Tanh(),
                              torch::nn::Linear(16, 1));
  const at::Tensor x = torch::rand({32, 4}), target = x.sum(1, true).sin();
  const at::Tensor x2 = torch::rand({32, 4}), target2 = x2.sum(1, true).sin();

  // [derivative]
  auto loss_of_model = [&](at::Tensor x, at::Tensor target) {
    return torch::mse_loss(model->forward(x), target);
  };
  flashlight::TraceSettings settings;
  settings.named = flashlight::named_tensors(model);  // a lambda has no names for what it uses
  auto captured = flashlight::trace(settings, loss_of_model, x, target);

  flashlight::Gradient gradient = captured.grad();   // by all parameters; or grad(0, {"0.weight"})
  auto [loss, gradients] = gradient({x2, target2});  // gradients[i] is of gradient.names()[i]
  std::cout << composit::print(gradient.graph());    // a graph like any other

  auto report = captured.check_grad({x2, target2});  // against autograd, or your own backward()
  // [derivative]
  for (size_t i = 0; i < gradients.size(); ++i)
    std::cout << gradient.names()[i] << ": " << gradients[i].norm().item<float>() << '\n';
  std::cout << "loss " << loss.item<float>() << '\n' << str(report);
  return report ? 0 : 1;
}
