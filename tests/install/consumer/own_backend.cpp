// A backend of one's own is linked, registered, and reached by its name: with arrays, with
// LibTorch's tensors and through autograd.
#include <flashlight/backends/registry.h>
#include <flashlight/compile.h>
#include <stack/stack.h>
#include <torch/torch.h>

#include <iostream>

static const StackBackend kStack;
static const flashlight::BackendRegistration kRegistration(kStack);

int main() {
  const auto program = [](const at::Tensor& x, const at::Tensor& y) { return (x * y).sin() + x; };
  const auto inputs = [] {
    return torch::rand({3, 4}, torch::dtype(torch::kDouble)).requires_grad_();
  };
  const at::Tensor x = inputs(), y = inputs();
  const auto compiled = flashlight::compile(flashlight::trace(program, x, y),
                                            {.backend = {"stack", {{"comment", "as by hand"}}}});
  std::cout << compiled.source();
  const at::Tensor ours = compiled(x, y), theirs = program(x, y);
  bool equal = torch::allclose(ours, theirs) && compiled.profile({x, y}).size() == 1 &&
               compiled.source().find("# as by hand\ninput_0 input_1 mul sin input_0 add\n") == 0;
  const auto gradients = torch::autograd::grad({ours.sum()}, {x, y});
  const auto expected = torch::autograd::grad({theirs.sum()}, {x, y});
  for (size_t i = 0; i < 2; ++i) equal = equal && torch::allclose(gradients[i], expected[i]);
  std::cout << (equal ? "as LibTorch\n" : "differs from LibTorch\n");
  return equal ? 0 : 1;
}
