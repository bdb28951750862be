#pragma once

// Stable Diffusion 1.5: text to image by denoising latents under classifier-free guidance, and
// images to latents. The submodules carry the folder names of the published model; prompts come as
// token ids.
//
//   models::StableDiffusion pipeline;
//   models::load_stable_diffusion(*pipeline, "stable-diffusion-v1-5");
//   pipeline->eval();
//   torch::NoGradGuard no_grad;
//   torch::Tensor noise = torch::randn({1, 4, 64, 64});
//   torch::Tensor image = pipeline->generate(prompt_ids, empty_prompt_ids, noise);  // (1, 3, 512,
//   512)

#include <torch/torch.h>

#include <cstdint>
#include <string>

#include "examples/models/clip_text.h"
#include "examples/models/ddim.h"
#include "examples/models/unet.h"
#include "examples/models/vae.h"

namespace models {

struct StableDiffusionConfig {
  ClipTextConfig text_encoder;
  UnetConfig unet;
  VaeConfig vae;
  DdimConfig scheduler;
};

struct SamplingOptions {
  int64_t steps = 50;
  double guidance = 7.5;  // 1: the prompt alone; more: away from the negative prompt
};

struct StableDiffusionImpl : torch::nn::Module {
  explicit StableDiffusionImpl(const StableDiffusionConfig& config = {});

  /// Images (N, 3, 8h, 8w) in [0, 1] from token ids (N, T) of the prompts, token ids (N, T) of the
  /// negative prompts, and Gaussian noise (N, 4, h, w).
  torch::Tensor generate(const torch::Tensor& prompt_ids, const torch::Tensor& negative_prompt_ids,
                         const torch::Tensor& noise, const SamplingOptions& options = {});

  /// Text embeddings (2N, T, C) for guidance: those of the negative prompts, then those of the
  /// prompts.
  torch::Tensor encode_prompts(const torch::Tensor& prompt_ids,
                               const torch::Tensor& negative_prompt_ids);

  /// Latents (N, 4, h, w) from noise of that shape and the text embeddings of `encode_prompts`.
  torch::Tensor denoise(const torch::Tensor& noise, const torch::Tensor& text,
                        const SamplingOptions& options = {});

  /// The noise (N, 4, h, w) that the UNet sees in `latents` at one timestep, guided.
  torch::Tensor predict_noise(const torch::Tensor& latents, int64_t timestep,
                              const torch::Tensor& text, double guidance);

  /// Images (N, 3, 8h, 8w) in [0, 1] to the mean of their latents (N, 4, h, w), and back.
  torch::Tensor encode_images(const torch::Tensor& images);
  torch::Tensor decode_latents(const torch::Tensor& latents);

  StableDiffusionConfig config;
  ClipTextModel text_encoder;
  UNet2DConditionModel unet;
  AutoencoderKL vae;
};
TORCH_MODULE(StableDiffusion);

/// Loads the folder of the published model: text_encoder/model.safetensors,
/// unet/diffusion_pytorch_model.safetensors and vae/diffusion_pytorch_model.safetensors, in
/// float32.
void load_stable_diffusion(StableDiffusionImpl& pipeline, const std::string& folder);

}  // namespace models
