#include "examples/models/stable_diffusion.h"

#include <array>
#include <utility>

#include "examples/models/safetensors.h"

namespace models {
namespace {

/// The published text encoder also holds a table of positions, which is no weight.
std::string text_encoder_name(const std::string& published) {
  return published.ends_with("position_ids") ? "" : published;
}

/// The published VAE names the projections of its attentions as early versions of diffusers did.
std::string vae_name(const std::string& published) {
  static const std::array<std::pair<std::string, std::string>, 4> kRenamed = {{
      {".attentions.0.query.", ".attentions.0.to_q."},
      {".attentions.0.key.", ".attentions.0.to_k."},
      {".attentions.0.value.", ".attentions.0.to_v."},
      {".attentions.0.proj_attn.", ".attentions.0.to_out.0."},
  }};
  for (const auto& [early, current] : kRenamed) {
    const size_t position = published.find(early);
    if (position == std::string::npos) continue;
    return std::string(published).replace(position, early.size(), current);
  }
  return published;
}

}  // namespace

StableDiffusionImpl::StableDiffusionImpl(const StableDiffusionConfig& config)
    : config(config),
      text_encoder(register_module("text_encoder", ClipTextModel(config.text_encoder))),
      unet(register_module("unet", UNet2DConditionModel(config.unet))),
      vae(register_module("vae", AutoencoderKL(config.vae))) {}

torch::Tensor StableDiffusionImpl::generate(const torch::Tensor& prompt_ids,
                                            const torch::Tensor& negative_prompt_ids,
                                            const torch::Tensor& noise,
                                            const SamplingOptions& options) {
  const torch::Tensor text = encode_prompts(prompt_ids, negative_prompt_ids);
  return decode_latents(denoise(noise, text, options));
}

torch::Tensor StableDiffusionImpl::encode_prompts(const torch::Tensor& prompt_ids,
                                                  const torch::Tensor& negative_prompt_ids) {
  return text_encoder(torch::cat({negative_prompt_ids, prompt_ids})).last_hidden_state;
}

torch::Tensor StableDiffusionImpl::denoise(const torch::Tensor& noise, const torch::Tensor& text,
                                           const SamplingOptions& options) {
  const DdimScheduler scheduler(options.steps, config.scheduler);
  torch::Tensor latents = noise;
  for (const int64_t timestep : scheduler.timesteps()) {
    const torch::Tensor predicted = predict_noise(latents, timestep, text, options.guidance);
    latents = scheduler.step(predicted, timestep, latents);
  }
  return latents;
}

torch::Tensor StableDiffusionImpl::predict_noise(const torch::Tensor& latents, int64_t timestep,
                                                 const torch::Tensor& text, double guidance) {
  const torch::Tensor twice = torch::cat({latents, latents});
  const torch::Tensor time = torch::tensor(timestep, latents.device());
  const auto noise = unet(twice, time, text).chunk(2);  // without and with the prompt
  return noise[0] + guidance * (noise[1] - noise[0]);
}

torch::Tensor StableDiffusionImpl::encode_images(const torch::Tensor& images) {
  return vae->encode(2.0 * images - 1.0).mode() * config.vae.scaling_factor;
}

torch::Tensor StableDiffusionImpl::decode_latents(const torch::Tensor& latents) {
  const torch::Tensor decoded = vae->decode(latents / config.vae.scaling_factor);
  return (decoded / 2.0 + 0.5).clamp(0.0, 1.0);
}

void load_stable_diffusion(StableDiffusionImpl& pipeline, const std::string& folder) {
  load_safetensors(*pipeline.text_encoder, folder + "/text_encoder/model.safetensors",
                   text_encoder_name);
  load_safetensors(*pipeline.unet, folder + "/unet/diffusion_pytorch_model.safetensors");
  load_safetensors(*pipeline.vae, folder + "/vae/diffusion_pytorch_model.safetensors", vae_name);
}

}  // namespace models
