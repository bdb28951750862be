#include "examples/models/ddim.h"

#include <cmath>

namespace models {
namespace {

int64_t checked_stride(int64_t steps, const DdimConfig& config) {
  TORCH_CHECK(steps >= 1, "a DDIM loop needs at least 1 step, received ", steps);
  const int64_t stride = config.train_timesteps / steps;
  const int64_t first = (steps - 1) * stride + config.steps_offset;
  TORCH_CHECK(stride >= 1 && first < config.train_timesteps, "a DDIM loop of ", steps,
              " steps does not fit into ", config.train_timesteps, " training timesteps");
  return stride;
}

/// "scaled_linear": the square roots of the betas are equally spaced.
torch::Tensor cumulative_alphas(const DdimConfig& config) {
  const torch::Tensor roots =
      torch::linspace(std::sqrt(config.beta_start), std::sqrt(config.beta_end),
                      config.train_timesteps, torch::kFloat32);
  return torch::cumprod(1.0 - roots.square(), 0);
}

}  // namespace

DdimScheduler::DdimScheduler(int64_t steps, const DdimConfig& config)
    : config_(config),
      stride_(checked_stride(steps, config)),
      alphas_cumprod_(cumulative_alphas(config)) {
  for (int64_t i = steps; i-- > 0;) timesteps_.push_back(i * stride_ + config.steps_offset);
}

torch::Tensor DdimScheduler::step(const torch::Tensor& noise, int64_t timestep,
                                  const torch::Tensor& sample) const {
  const torch::Tensor alpha = alpha_product(timestep);
  const torch::Tensor next_alpha = alpha_product(timestep - stride_);
  const torch::Tensor clean = (sample - (1.0 - alpha).sqrt() * noise) / alpha.sqrt();
  return next_alpha.sqrt() * clean + (1.0 - next_alpha).sqrt() * noise;
}

torch::Tensor DdimScheduler::alpha_product(int64_t timestep) const {
  if (timestep >= 0) return alphas_cumprod_[timestep];
  return config_.set_alpha_to_one ? torch::ones({}) : alphas_cumprod_[0];
}

}  // namespace models
