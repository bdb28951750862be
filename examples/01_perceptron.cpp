// A first capture: trace, print, replay, check, save, load, draw.
#include <composit/io/visualize.h>
#include <composit/ir/print.h>
#include <flashlight/check.h>
#include <flashlight/trace.h>
#include <torch/torch.h>

#include <iostream>

// [model]
struct PerceptronImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) { return output(torch::relu(hidden(x))); }
  torch::nn::Linear hidden = register_module("hidden", torch::nn::Linear(4, 8));
  torch::nn::Linear output = register_module("output", torch::nn::Linear(8, 2));
};
// [model]
TORCH_MODULE(Perceptron);

int main() {
  Perceptron model;
  auto captured = flashlight::trace(model, torch::rand({3, 4}));
  std::cout << composit::print(captured.graph());

  const at::Tensor x = torch::rand({3, 4});
  std::cout << (torch::equal(captured(x), model->forward(x)) ? "replay equals eager\n"
                                                             : "replay differs\n");
  const flashlight::CheckReport report = captured.check(x);
  std::cout << str(report);

  captured.save("perceptron");
  auto again = flashlight::load<at::Tensor(at::Tensor)>("perceptron");
  std::cout << (torch::equal(again(x), captured(x)) ? "the saved capture is the same\n"
                                                    : "the saved capture differs\n");
  composit::visualize(captured.graph(), "perceptron.svg");
  return report.exit_code();
}
