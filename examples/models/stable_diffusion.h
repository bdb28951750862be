#pragma once

// Stable Diffusion 1.5: text to image by denoising latents under classifier-free guidance, and
// images to latents. Submodules are named like the folders of the published model; prompts are
// token ids, 77 each, as CLIP's tokenizer gives them.
//
//   models::StableDiffusion pipeline;
//   models::load_stable_diffusion(*pipeline, "stable-diffusion-v1-5");
//   pipeline->eval();
//   torch::NoGradGuard no_grad;
//   torch::Tensor noise = torch::randn({1, 4, 64, 64});
//   torch::Tensor image = pipeline->generate(ids, negative_ids, noise);  // (1, 3, 512, 512)

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

  /// Text embeddings (2N, T, C): those of the negative prompts, then those of the prompts.
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

/// Loads the folder of the published model: model.safetensors below text_encoder, and
/// diffusion_pytorch_model.safetensors below unet and vae. Their type must be that of the module.
void load_stable_diffusion(StableDiffusionImpl& pipeline, const std::string& folder);

}  // namespace models
