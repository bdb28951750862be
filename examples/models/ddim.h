#pragma once

// The DDIM sampler (Song et al., "Denoising Diffusion Implicit Models", 2020), deterministic
// (eta = 0), for models that predict the noise. The defaults are Stable Diffusion's: diffusers'
// `DDIMScheduler` with "scaled_linear" betas, "leading" timesteps and without clipping.
//
//   models::DdimScheduler scheduler(/*steps=*/50);
//   for (int64_t t : scheduler.timesteps()) {
//     sample = scheduler.step(predict_noise(sample, t), t, sample);
//   }

#include <torch/torch.h>

#include <cstdint>
#include <vector>

namespace models {

struct DdimConfig {
  int64_t train_timesteps = 1000;
  double beta_start = 0.00085;
  double beta_end = 0.012;
  int64_t steps_offset = 1;
  bool set_alpha_to_one = false;  // the last step ends without noise, or with that of timestep 0
};

class DdimScheduler {
 public:
  /// For a loop of `steps` steps; more than fit into the training timesteps are an error.
  explicit DdimScheduler(int64_t steps, const DdimConfig& config = {});

  /// The timesteps of the loop, from noisy to clean.
  const std::vector<int64_t>& timesteps() const { return timesteps_; }

  /// From the sample at `timestep` and the noise predicted in it, the sample one step later:
  /// formula (12) of the paper. `noise` and `sample` have one shape, any.
  torch::Tensor step(const torch::Tensor& noise, int64_t timestep,
                     const torch::Tensor& sample) const;

 private:
  torch::Tensor alpha_product(int64_t timestep) const;

  DdimConfig config_;
  int64_t stride_;
  std::vector<int64_t> timesteps_;
  torch::Tensor alphas_cumprod_;  // (train_timesteps), float32: the share of signal at each
};

}  // namespace models
