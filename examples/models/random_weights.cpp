#include "examples/models/random_weights.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace models {
namespace {

constexpr int64_t kPoolSize = 1 << 20;

/// An endless sequence of normal numbers that repeats a pool of a million: drawing 860 million
/// would take most of a minute, copying them a second.
class NormalNumbers {
 public:
  explicit NormalNumbers(uint64_t seed)
      : pool_(torch::randn({kPoolSize}, torch::make_generator<at::CPUGeneratorImpl>(seed))) {}

  /// Fills `tensor`, which is contiguous, with the next numbers, scaled.
  void fill(torch::Tensor& tensor, double scale) {
    const torch::Tensor flat = tensor.view(-1);
    for (int64_t done = 0; done < flat.numel();) {
      const int64_t count = std::min(flat.numel() - done, kPoolSize - position_);
      torch::Tensor target = flat.narrow(0, done, count);
      torch::mul_out(target, pool_.narrow(0, position_, count), torch::scalar_tensor(scale));
      done += count;
      position_ = (position_ + count) % kPoolSize;
    }
  }

 private:
  torch::Tensor pool_;
  int64_t position_ = 0;
};

void fill_tensor(const std::string& name, torch::Tensor tensor, NormalNumbers& numbers) {
  if (!tensor.is_floating_point()) return;
  if (tensor.dim() > 1) {
    const double fan_in = static_cast<double>(tensor.numel()) / static_cast<double>(tensor.size(0));
    numbers.fill(tensor, 1.0 / std::sqrt(fan_in));
    return;
  }
  numbers.fill(tensor, 0.1);
  if (name.ends_with("weight")) tensor.add_(1.0);
  if (name.ends_with("running_var")) tensor.add_(1.0).abs_();
}

}  // namespace

void fill_random_weights(torch::nn::Module& module, uint64_t seed) {
  const torch::NoGradGuard no_grad;
  NormalNumbers numbers(seed);
  for (auto& item : module.named_parameters()) fill_tensor(item.key(), item.value(), numbers);
  for (auto& item : module.named_buffers()) fill_tensor(item.key(), item.value(), numbers);
}

}  // namespace models
