#pragma once

// Random weights for models without a file of trained ones: equal on every run, whatever the state
// of the global generator, and scaled so that activations stay finite. The 860 million parameters
// of Stable Diffusion's UNet take a few seconds.
//
//   models::UnetConfig config;
//   auto unet = models::make_with_random_weights<models::UNet2DConditionModel>(config);

#include <torch/torch.h>

#include <cstdint>

namespace models {

/// Overwrites all floating-point parameters and buffers: matrices and kernels with variance
/// 1 / fan_in, scales and variances of normalisations around 1, biases and means around 0.
void fill_random_weights(torch::nn::Module& module, uint64_t seed = 0);

/// A model for inference: constructed from `config`, filled, and in evaluation mode.
template <typename Model, typename Config>
Model make_with_random_weights(const Config& config, uint64_t seed = 0) {
  Model model(config);
  fill_random_weights(*model, seed);
  model->eval();
  return model;
}

}  // namespace models
