#include "examples/models/random_weights.h"

#include <cmath>
#include <string>

namespace models {
namespace {

void fill_tensor(const std::string& name, torch::Tensor& tensor,
                 const torch::Generator& generator) {
  if (!tensor.is_floating_point()) return;
  if (tensor.dim() > 1) {
    const double fan_in = static_cast<double>(tensor[0].numel());
    tensor.normal_(0.0, 1.0 / std::sqrt(fan_in), generator);
  } else if (name.ends_with("running_var")) {
    tensor.uniform_(0.5, 1.5, generator);
  } else {
    tensor.normal_(name.ends_with("weight") ? 1.0 : 0.0, 0.1, generator);
  }
}

}  // namespace

void fill_random_weights(torch::nn::Module& module, uint64_t seed) {
  const torch::NoGradGuard no_grad;
  const auto generator = torch::make_generator<torch::CPUGeneratorImpl>(seed);
  for (auto& item : module.named_parameters()) fill_tensor(item.key(), item.value(), generator);
  for (auto& item : module.named_buffers()) fill_tensor(item.key(), item.value(), generator);
}

}  // namespace models
