// One capture for all sizes: three examples, a call at sizes that nobody showed, a check, a
// refusal.
#include <composit/ir/error.h>
#include <flashlight/flashlight.h>
#include <torch/torch.h>

#include <iostream>

// [model]
struct AttentionImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) {  // (batch, tokens, 32)
    const at::Tensor heads = input(x).view({x.size(0), x.size(1), 4, 24}).transpose(1, 2);
    const auto parts = heads.chunk(3, -1);
    const at::Tensor mixed =
        torch::softmax(parts[0].matmul(parts[1].transpose(2, 3)), -1).matmul(parts[2]);
    return output(mixed.transpose(1, 2).reshape({x.size(0), x.size(1), 32}));
  }
  torch::nn::Linear input = register_module("input", torch::nn::Linear(32, 96));
  torch::nn::Linear output = register_module("output", torch::nn::Linear(32, 32));
};
// [model]
TORCH_MODULE(Attention);

int main() {
  torch::NoGradGuard no_grad;
  Attention model;
  // [family]
  using flashlight::example;
  auto family = flashlight::trace_family(
      {.names = {"batch", "tokens"}}, model, example(torch::rand({2, 16, 32})),
      example(torch::rand({3, 23, 32})), example(torch::rand({5, 12, 32})));

  const at::Tensor x = torch::rand({4, 21, 32});
  std::cout << (torch::equal(family(x), model->forward(x)) ? "equals eager\n" : "differs\n");
  // [family]
  std::cout << composit::print(family.family());
  for (const std::string& line : family.assumptions()) std::cout << line << '\n';

  const at::Tensor one = torch::rand({1, 9, 32});
  try {
    family(one);
  } catch (const composit::UserError& error) {
    std::cout << error.what() << '\n';
  }
  const flashlight::CheckReport report = family.check(one);  // runs the model there
  std::cout << str(report);
  std::cout << (torch::equal(family(one), model->forward(one)) ? "equals eager\n" : "differs\n");
  return report.exit_code();
}
