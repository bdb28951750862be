// An activation of your own: written for one number, compiled to C++, trained with by LibTorch.
//
//   example_06_activation examples/data/digits.safetensors [PICTURE.svg]
//
// relu3 and the network are those of the Knossos page: 784-256-128-64-10, relu3 three times. Draws
// relu3 and its derivative. Fails if fewer than 90 of 100 digits that the network was not trained
// with are read correctly, or if the compiled activation has other gradients than LibTorch's masks.
#include <flashlight/compile.h>
#include <torch/torch.h>

#include <iostream>

#include "composit/io/safetensors.h"
#include "examples/plot.h"
#include "tracer/convert.h"

namespace {

flashlight::CompiledFunction relu3() {
  return flashlight::compile(flashlight::scalar([](auto x) {
                               if (x < 0.0) return 0.0 * x;
                               if (x < 1.0) return 1.0 / 3.0 * x * x * x;
                               return x - 2.0 / 3.0;
                             }),
                             {.name = "relu3", .arguments = {"x"}});
}

// The same as LibTorch has it: every branch of every element, and eight tensors on the way.
at::Tensor relu3_by_masks(const at::Tensor& x) {
  return at::where(x < 0, 0 * x, at::where(x < 1, x.pow(3) / 3, x - 2.0 / 3));
}

void draw(const flashlight::CompiledFunction& f, const char* file) {
  const at::Tensor x = at::linspace(-1, 2.5, 351, at::kDouble);
  const auto list = [](const at::Tensor& t) {
    return std::vector<double>(t.data_ptr<double>(), t.data_ptr<double>() + t.numel());
  };
  examples::Plot plot("relu3, from its compiled code", "x");
  plot.line("relu3(x)", list(x), list(f(x)));
  plot.line("its derivative", list(x), list(f.vjp(x, at::ones_like(x))));
  plot.save(file);
}

torch::nn::Sequential network(const flashlight::CompiledFunction& activation) {
  namespace nn = torch::nn;
  return nn::Sequential(nn::Linear(784, 256), nn::Functional(activation),  //
                        nn::Linear(256, 128), nn::BatchNorm1d(128),        //
                        nn::Functional(activation), nn::Dropout(0.3),      //
                        nn::Linear(128, 64), nn::BatchNorm1d(64),          //
                        nn::Functional(activation), nn::Linear(64, 10),    //
                        nn::LogSoftmax(1));
}

struct Digits {
  at::Tensor images, labels;
};

// 8x8 pixels from 0 to 16, in the middle of 28x28.
Digits read(const char* file) {
  const auto stored = composit::read_safetensors(file).tensors;
  const at::Tensor images = flashlight::tracer::to_tensor(stored.at("images")).to(at::kFloat) / 16;
  return {at::constant_pad_nd(images, {10, 10, 10, 10}).flatten(1),
          flashlight::tracer::to_tensor(stored.at("labels")).to(at::kLong)};
}

double train(torch::nn::Sequential& model, const Digits& digits) {
  constexpr int kEpochs = 8;
  constexpr int64_t kBatch = 64;
  const int64_t count = digits.labels.size(0), held_out = count / 5;
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(3e-3));
  for (int epoch = 1; epoch <= kEpochs; ++epoch) {
    model->train();
    double total = 0;
    int64_t batches = 0;
    for (const at::Tensor& batch :
         (held_out + at::randperm(count - held_out, at::kLong)).split(kBatch)) {
      if (batch.size(0) < kBatch) continue;
      optimizer.zero_grad();
      const at::Tensor loss = torch::nll_loss(model->forward(digits.images.index({batch})),
                                              digits.labels.index({batch}));
      loss.backward();
      optimizer.step();
      total += loss.item<double>();
      ++batches;
    }
    std::cout << "epoch " << epoch << ": loss " << total / static_cast<double>(batches) << '\n';
  }
  model->eval();
  const torch::NoGradGuard no_grad;
  const at::Tensor read = model->forward(digits.images.slice(0, 0, held_out)).argmax(1);
  return read.eq(digits.labels.slice(0, 0, held_out)).to(at::kDouble).mean().item<double>();
}

}  // namespace

int main(int argc, char** argv) {
  torch::manual_seed(1);
  at::set_num_threads(1);  // the matrices are small
  const flashlight::CompiledFunction f = relu3();
  std::cout << f.specialized({at::zeros({64, 256})}).source() << '\n';
  if (argc > 2) draw(f, argv[2]);

  const at::Tensor x = at::randn({64, 256}).requires_grad_(), dy = at::randn({64, 256});
  const at::Tensor ours = torch::autograd::grad({f(x)}, {x}, {dy})[0];
  const at::Tensor theirs = torch::autograd::grad({relu3_by_masks(x)}, {x}, {dy})[0];
  if (!at::allclose(ours, theirs)) {
    std::cerr << "gradients differ by " << (ours - theirs).abs().max().item<float>() << '\n';
    return 1;
  }

  torch::nn::Sequential model = network(f);
  const double accuracy = train(model, read(argc > 1 ? argv[1] : "data/digits.safetensors"));
  std::cout << 100 * accuracy << " % of the digits held out are read correctly\n";
  return accuracy >= 0.9 ? 0 : 1;
}
