"""Writes what the Python originals compute, for the tests to compare with.

    python make_reference.py OUTPUT_FOLDER

Every model is built by `transformers` or `diffusers` from a configuration, gets random weights from
a fixed seed (normalisation statistics included, so that nothing cancels), and runs in evaluation
mode in float32 and again in float64. The folder receives, per case, NAME/weights.safetensors and
NAME/io.safetensors, which holds the tensors `input.*`, `float32.*` and `float64.*`. ResNets are
full size; the others keep their architecture at a reduced width.
"""

import functools
import os
import shutil
import sys
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from diffusers import AutoencoderKL, DDIMScheduler, StableDiffusionPipeline, UNet2DConditionModel
from diffusers.utils import logging as diffusers_logging
from safetensors.torch import save_file
from transformers import (BertConfig, BertModel, CLIPTextConfig, CLIPTextModel, LlamaConfig, LlamaForCausalLM,
                          MistralConfig, MistralForCausalLM, Qwen2Config, Qwen2ForCausalLM, ResNetConfig,
                          ResNetForImageClassification)

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples/models"))
from names import torchvision_name

SEED = 20
PRECISIONS = {"float32": torch.float32, "float64": torch.float64}


class Random:
    """Random tensors from one generator per case, so that cases do not depend on each other."""

    def __init__(self, offset):
        self.generator = torch.Generator().manual_seed(SEED + offset)

    def normal(self, *shape, scale=1.0):
        return scale * torch.randn(shape, generator=self.generator)

    def uniform(self, *shape, low=0.0, high=1.0):
        return low + (high - low) * torch.rand(shape, generator=self.generator)

    def integers(self, limit, *shape):
        return torch.randint(limit, shape, generator=self.generator)

    def fill(self, model):
        """Kernels with variance 1 / fan_in; scales and variances between 0.5 and 1.5."""
        for name, tensor in sorted(model.state_dict().items()):
            if not tensor.is_floating_point():
                continue
            if tensor.dim() > 1:
                tensor.copy_(self.normal(*tensor.shape, scale=tensor[0].numel() ** -0.5))
            elif name.endswith(("weight", "running_var")):
                tensor.copy_(self.uniform(*tensor.shape, low=0.5, high=1.5))
            else:
                tensor.copy_(self.normal(*tensor.shape, scale=0.1))
        return model.eval()


def save(path, tensors):
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file({name: tensor.contiguous().clone() for name, tensor in tensors.items()}, path)


def cast(inputs, dtype):
    return {name: tensor.to(dtype) if tensor.is_floating_point() else tensor
            for name, tensor in inputs.items()}


def save_io(folder, inputs, run):
    """`run(dtype, inputs)` gives the outputs, by name, of the original in that precision."""
    tensors = {f"input.{name}": tensor for name, tensor in inputs.items()}
    for precision, dtype in PRECISIONS.items():
        torch.set_default_dtype(dtype)  # CLIP builds its causal mask in the default type
        for name, tensor in run(dtype, cast(inputs, dtype)).items():
            tensors[f"{precision}.{name}"] = tensor
    torch.set_default_dtype(torch.float32)
    save(folder / "io.safetensors", tensors)


def write_resnet(folder, depths, layer_type):
    random = Random(sum(depths))
    widths = [64, 128, 256, 512] if layer_type == "basic" else [256, 512, 1024, 2048]
    # downsample_in_bottleneck=False puts the stride into the 3x3 convolution, as torchvision does.
    config = ResNetConfig(depths=depths, layer_type=layer_type, hidden_sizes=widths,
                          num_labels=1000, downsample_in_bottleneck=False,
                          downsample_in_first_stage=False)
    model = random.fill(ResNetForImageClassification(config))
    weights = {torchvision_name(name): tensor for name, tensor in model.state_dict().items()}
    save(folder / "weights.safetensors", weights)

    def run(dtype, given):
        return {"logits": model.to(dtype)(given["images"]).logits}

    save_io(folder, {"images": random.normal(2, 3, 64, 96)}, run)


def write_bert(folder):
    random = Random(1)
    config = BertConfig(vocab_size=1000, hidden_size=192, num_hidden_layers=12,
                        num_attention_heads=12, intermediate_size=768, max_position_embeddings=64)
    model = random.fill(BertModel(config))
    save(folder / "weights.safetensors", model.state_dict())
    lengths = torch.tensor([[24], [17], [5]])
    inputs = {
        "input_ids": random.integers(1000, 3, 24),
        "attention_mask": (torch.arange(24) < lengths).long(),
        "token_type_ids": random.integers(2, 3, 24),
    }

    def run(dtype, given):
        model.to(dtype)
        padded = model(**given)
        plain = model(given["input_ids"])
        return {"padded": padded.last_hidden_state, "padded_pooled": padded.pooler_output,
                "plain": plain.last_hidden_state, "plain_pooled": plain.pooler_output}

    save_io(folder, inputs, run)


def prompt_ids(random, vocab_size, lengths, total):
    """Token ids as of CLIP's tokenizer: the end-of-text token, the largest id, fills the rest."""
    ids = random.integers(vocab_size - 1, len(lengths), total)
    return torch.where(torch.arange(total) < torch.tensor(lengths)[:, None], ids, vocab_size - 1)


def make_clip(random):
    # eos_token_id=2 is what the published Stable Diffusion 1.5 says; it selects the largest id.
    return random.fill(CLIPTextModel(CLIPTextConfig(
        vocab_size=1000, hidden_size=96, intermediate_size=384, num_hidden_layers=12,
        num_attention_heads=12, hidden_act="quick_gelu", eos_token_id=2)))


def norm_in_any_precision(norm, hidden):
    """Like the originals, which compute in float32 whatever the model is."""
    scale = torch.rsqrt(hidden.square().mean(-1, keepdim=True) + norm.variance_epsilon)
    return norm.weight * (hidden * scale)


def write_llama(folder, Config, Model, offset, **options):
    random = Random(offset)
    config = Config(vocab_size=1000, hidden_size=96, intermediate_size=160, num_hidden_layers=3, num_attention_heads=6,
                    num_key_value_heads=2, max_position_embeddings=64, **options)
    model = random.fill(Model(config))
    weights = dict(model.state_dict())
    if config.tie_word_embeddings:
        del weights["lm_head.weight"]
    save(folder / "weights.safetensors", weights)

    def run(dtype, given):
        model.to(dtype)
        for module in model.modules():
            if dtype == torch.float64 and hasattr(module, "variance_epsilon"):
                module.forward = functools.partial(norm_in_any_precision, module)
        logits = model(given["input_ids"]).logits
        return {"logits": logits, "decoded": logits}

    save_io(folder, {"input_ids": random.integers(1000, 2, 20)}, run)


def make_unet(random):
    return random.fill(UNet2DConditionModel(
        sample_size=16, block_out_channels=(32, 64, 128, 128), cross_attention_dim=96,
        attention_head_dim=8, layers_per_block=2, norm_num_groups=16))


def make_vae(random):
    return random.fill(AutoencoderKL(
        down_block_types=["DownEncoderBlock2D"] * 4, up_block_types=["UpDecoderBlock2D"] * 4,
        block_out_channels=(32, 64, 128, 128), layers_per_block=2, latent_channels=4,
        norm_num_groups=16, scaling_factor=0.18215))


def make_scheduler():
    return DDIMScheduler(beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear",
                         clip_sample=False, set_alpha_to_one=False, steps_offset=1)


def write_clip(folder):
    random = Random(2)
    model = make_clip(random)
    save(folder / "weights.safetensors", model.state_dict())

    def run(dtype, given):
        out = model.to(dtype)(given["input_ids"])
        return {"hidden": out.last_hidden_state, "pooled": out.pooler_output}

    save_io(folder, {"input_ids": prompt_ids(random, 1000, [9, 77 - 1], 77)}, run)


def write_unet(folder):
    random = Random(3)
    model = make_unet(random)
    save(folder / "weights.safetensors", model.state_dict())
    inputs = {
        "sample": random.normal(2, 4, 16, 24),
        "odd_sample": random.normal(2, 4, 13, 18),  # halving and doubling do not restore it
        "timesteps": torch.tensor([981, 21]),
        "timestep": torch.tensor(500),
        "text": random.normal(2, 77, 96),
    }

    def run(dtype, given):
        model.to(dtype)
        return {"noise": model(given["sample"], given["timesteps"], given["text"]).sample,
                "odd_noise": model(given["odd_sample"], given["timestep"], given["text"]).sample}

    save_io(folder, inputs, run)


def write_vae(folder):
    random = Random(4)
    model = make_vae(random)
    save(folder / "weights.safetensors", model.state_dict())
    inputs = {
        "images": random.uniform(2, 3, 64, 96, low=-1.0),
        "latents": random.normal(2, 4, 8, 12),
    }

    def run(dtype, given):
        model.to(dtype)
        latents = model.encode(given["images"]).latent_dist
        return {"mean": latents.mean, "standard_deviation": latents.std,
                "decoded": model.decode(given["latents"]).sample}

    save_io(folder, inputs, run)


def write_ddim(folder, steps):
    random = Random(5)
    scheduler = make_scheduler()
    scheduler.set_timesteps(steps)
    inputs = {
        "timesteps": scheduler.timesteps,
        "noise": random.normal(steps, 2, 4, 8, 8),
        "sample": random.normal(2, 4, 8, 8),
    }

    def run(_dtype, given):
        samples = [given["sample"]]
        for noise, timestep in zip(given["noise"], given["timesteps"]):
            samples.append(scheduler.step(noise, timestep, samples[-1]).prev_sample)
        return {"samples": torch.stack(samples)}

    save_io(folder, inputs, run)


EARLY_NAMES = {"to_q": "query", "to_k": "key", "to_v": "value", "to_out.0": "proj_attn"}


def published_vae_name(name):
    """The published VAE still has the attention names of early versions of diffusers."""
    for current, early in EARLY_NAMES.items():
        name = name.replace(f"attentions.0.{current}.", f"attentions.0.{early}.")
    return name


def save_published_layout(folder, text_encoder, unet, vae):
    text_weights = dict(text_encoder.state_dict())
    text_weights["text_model.embeddings.position_ids"] = torch.arange(77)[None]
    save(folder / "text_encoder" / "model.safetensors", text_weights)
    save(folder / "unet" / "diffusion_pytorch_model.safetensors", unet.state_dict())
    save(folder / "vae" / "diffusion_pytorch_model.safetensors",
         {published_vae_name(name): tensor for name, tensor in vae.state_dict().items()})


def write_stable_diffusion(folder):
    random = Random(6)
    text_encoder, unet, vae = make_clip(random), make_unet(random), make_vae(random)
    save_published_layout(folder, text_encoder, unet, vae)
    pipeline = StableDiffusionPipeline(
        vae=vae, text_encoder=text_encoder, tokenizer=None, unet=unet, scheduler=make_scheduler(),
        safety_checker=None, feature_extractor=None, requires_safety_checker=False)
    pipeline.set_progress_bar_config(disable=True)
    inputs = {
        "prompt_ids": prompt_ids(random, 1000, [12, 30], 77),
        "negative_prompt_ids": prompt_ids(random, 1000, [1, 4], 77),
        "noise": random.normal(2, 4, 8, 12),
        "images": random.uniform(2, 3, 64, 96),
    }

    def run(dtype, given):
        pipeline.to(dtype)
        trajectory = []

        def record(_pipeline, _step, _timestep, tensors):
            trajectory.append(tensors["latents"])
            return tensors

        image = pipeline(prompt_embeds=text_encoder(given["prompt_ids"])[0],
                         negative_prompt_embeds=text_encoder(given["negative_prompt_ids"])[0],
                         latents=given["noise"], height=64, width=96, num_inference_steps=4,
                         guidance_scale=7.5, output_type="pt", callback_on_step_end=record).images
        latent_dist = vae.encode(pipeline.image_processor.preprocess(given["images"])).latent_dist
        return {"latents": trajectory[-1], "image": image,
                "image_latents": latent_dist.mode() * vae.config.scaling_factor}

    save_io(folder, inputs, run)


@torch.no_grad()
def write_all(folder):
    shutil.rmtree(folder, ignore_errors=True)
    write_resnet(folder / "resnet18", [2, 2, 2, 2], "basic")
    write_resnet(folder / "resnet34", [3, 4, 6, 3], "basic")
    write_resnet(folder / "resnet50", [3, 4, 6, 3], "bottleneck")
    write_resnet(folder / "resnet101", [3, 4, 23, 3], "bottleneck")
    write_bert(folder / "bert")
    write_clip(folder / "clip_text")
    write_llama(folder / "llama", LlamaConfig, LlamaForCausalLM, 7, rms_norm_eps=1e-5)
    write_llama(folder / "mistral", MistralConfig, MistralForCausalLM, 8, rms_norm_eps=1e-5, sliding_window=7)
    write_llama(folder / "qwen2", Qwen2Config, Qwen2ForCausalLM, 9, rope_theta=1e6, rms_norm_eps=1e-6,
                tie_word_embeddings=True)
    write_unet(folder / "unet")
    write_vae(folder / "vae")
    write_ddim(folder / "ddim", steps=30)
    write_stable_diffusion(folder / "stable_diffusion")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    diffusers_logging.set_verbosity_error()
    write_all(Path(sys.argv[1]))
