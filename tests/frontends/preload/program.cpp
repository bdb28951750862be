// A program that knows nothing of Flashlight. Its argument says what it does in the end.
#include <ATen/EmptyTensor.h>
#include <signal.h>
#include <torch/nn.h>
#include <torch/optim.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iostream>
#include <stdexcept>

struct Net : torch::nn::Module {
  Net() {
    register_module("hidden", hidden);
    register_module("out", out);
  }
  at::Tensor forward(const at::Tensor& x) {
    return out(torch::dropout(torch::relu(hidden(x)), 0.5, is_training()));
  }
  torch::nn::Linear hidden{8, 16}, out{16, 3};
};

void train(Net& net, const std::string& then) {
  torch::optim::SGD optimizer(net.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  for (int i = 0; i < 4; ++i) {
    const at::Tensor x = torch::randn({5, 8});
    const at::Tensor target = torch::randint(0, 3, {5}, at::kLong);
    optimizer.zero_grad();
    const at::Tensor loss = at::cross_entropy_loss(net.forward(x), target);
    loss.backward();
    if (then == "schedule")
      static_cast<torch::optim::SGDOptions&>(optimizer.param_groups()[0].options())
          .lr(0.1 / (i + 1));
    optimizer.step();
    std::cout << "step " << i << ", loss " << loss.item<float>() << std::endl;
    if (i < 2 || then == "train" || then == "schedule") continue;
    const at::Tensor again = net.forward(x);  // the next step has begun
    if (then == "fault") raise(SIGSEGV);
    if (then == "null") *reinterpret_cast<volatile int*>(again.size(0) - 5) = 1;
    if (then == "throw") throw std::runtime_error("the program's own mistake");
    if (then == "interrupt") raise(SIGINT);
    if (then == "_exit") _exit(7);
    if (then == "exit") exit(8);
  }
}

// `by_pointer`: the program reads and writes numbers itself in the middle of each call.
void infer(Net& net, bool by_pointer) {
  const at::NoGradGuard no_grad;
  net.eval();
  for (int i = 0; i < 3; ++i) {
    at::Tensor y = net.forward(torch::randn({5, 8}));
    if (by_pointer) y.data_ptr<float>()[0] = static_cast<float>(i);
    y = y * 2;
    std::cout << "result " << y.sum().item<float>() << std::endl;
  }
}

long resident_bytes() {
  long size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// Prints by how much its memory has grown since the hundredth step.
void train_for_long(Net& net) {
  torch::optim::Adam optimizer(net.parameters());
  long begin = 0;
  for (int i = 0; i < 600; ++i) {
    if (i == 100) begin = resident_bytes();
    optimizer.zero_grad();
    net.forward(torch::randn({5, 8})).sum().backward();
    optimizer.step();
  }
  std::cout << resident_bytes() - begin << std::endl;
}

// Memory that no operator makes.
void unseen(Net& net) {
  const at::Tensor y = net.forward(torch::ones({5, 8}));
  const at::Tensor hidden = at::detail::empty_cpu({3}, at::kFloat);  // asks no dispatcher
  std::memset(hidden.mutable_data_ptr(), 0, 12);
  std::cout << "unseen " << (y + hidden).numel() << std::endl;
}

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "train";
  torch::manual_seed(1);
  Net net;
  if (what == "infer")
    infer(net, false);
  else if (what == "pointer")
    infer(net, true);
  else if (what == "unseen")
    unseen(net);
  else if (what == "long")
    train_for_long(net);
  else
    train(net, what);
  std::cerr << "the program's own remark\n";
  return 3;
}
