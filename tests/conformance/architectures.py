"""Architectures of `transformers` and `diffusers`, built from configurations at small widths with
random weights:

    original = architectures.make("llama")
    arguments, keywords = original.inputs(seed=1)
    original.call(*arguments, **keywords)
    original.inputs(1, batch=3, length=20)      # sizes(name) has their names and ranges
"""

import inspect
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples/models"))

import diffusers
import torch
import transformers
from originals import Original

# Every configuration is given those of these sizes that it has.
_SMALL = {
    "vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 64, "max_position_embeddings": 64,
    "embedding_size": 32, "head_dim": 8,
    # encoder and decoder
    "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64,
    # images
    "image_size": 32, "patch_size": 8,
    # ids of words that are there
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1,
    "use_cache": False,
}  # fmt: skip

_TEXT = """
albert bert big_bird camembert convbert deberta deberta-v2 distilbert electra ernie esm fnet
funnel ibert layoutlm longformer megatron-bert mobilebert modernbert mpnet nystromformer rembert
roberta roformer splinter squeezebert xlm-roberta xlnet xmod yoso
""".split()
_DECODERS = """
biogpt bloom codegen cohere ctrl deepseek_v3 falcon gemma gemma2 gemma3_text glm gpt2
gpt_bigcode gpt_neo gpt_neox gptj gpt_oss granite llama mamba mamba2 mistral mixtral mpt
nemotron olmo olmo2 olmoe opt persimmon phi phi3 qwen2 qwen3 qwen3_moe recurrent_gemma smollm3
stablelm starcoder2 xglm
""".split()
_TEXT_TO_TEXT = """
bart bigbird_pegasus blenderbot fsmt led longt5 m2m_100 marian mbart mt5 pegasus plbart
prophetnet switch_transformers t5 umt5
""".split()
_IMAGES = """
beit bit clip_vision_model convnext convnextv2 cvt data2vec-vision deit dinov2
dinov2_with_registers dpt efficientnet focalnet glpn hiera levit mobilenet_v1 mobilenet_v2
mobilevit mobilevitv2 poolformer pvt pvt_v2 regnet resnet segformer siglip_vision_model
swiftformer swin swinv2 vit vit_msn yolos
""".split()
_SOUNDS = """
data2vec-audio hubert sew unispeech unispeech-sat wav2vec2 wavlm
""".split()

_WAV2VEC = {"conv_dim": (16, 16), "conv_stride": (5, 4), "conv_kernel": (10, 8),
            "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 4,
            "num_feat_extract_layers": 2}  # fmt: skip
_T5 = {"d_kv": 8, "d_ff": 64, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 4}
_SWIN = {"embed_dim": 8, "depths": [1, 1], "num_heads": [2, 2], "window_size": 2, "patch_size": 4}
_EXPERTS = {"num_local_experts": 4, "num_experts": 4, "num_experts_per_tok": 2,
            "moe_intermediate_size": 32}  # fmt: skip
# Further fields of configurations of small widths.
_SPECIAL = {
    "big_bird": {"attention_type": "original_full"},
    "bigbird_pegasus": {"attention_type": "original_full"},
    "bit": {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "num_groups": 4},
    "bloom": {"n_layer": 2, "n_head": 4},
    "codegen": {"n_embd": 32, "n_layer": 2, "n_head": 4, "rotary_dim": 4},
    "convnext": {"num_stages": 2, "hidden_sizes": [8, 16], "depths": [1, 1]},
    "convnextv2": {"num_stages": 2, "hidden_sizes": [8, 16], "depths": [1, 1]},
    "ctrl": {"n_embd": 32, "n_layer": 2, "n_head": 4, "dff": 64},
    "cvt": {"embed_dim": [8, 16, 16], "num_heads": [1, 2, 2], "depth": [1, 2, 3]},
    "data2vec-audio": _WAV2VEC,
    "deberta-v2": {"relative_attention": True, "position_buckets": 8,
                   "pos_att_type": ["p2c", "c2p"]},
    "deepseek_v3": {"n_routed_experts": 4, "n_group": 1, "topk_group": 1, "num_experts_per_tok": 2,
                    "moe_intermediate_size": 32, "q_lora_rank": 16, "kv_lora_rank": 16,
                    "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8,
                    "num_key_value_heads": 4, "first_k_dense_replace": 1},
    "distilbert": {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64},
    "dpt": {"neck_hidden_sizes": [8, 8, 8, 8], "fusion_hidden_size": 8,
            "backbone_out_indices": [0, 1, 1, 1]},
    "efficientnet": {"image_size": 64, "width_coefficient": 0.25, "depth_coefficient": 0.25,
                     "hidden_dim": 320},
    "esm": {"mask_token_id": 3, "position_embedding_type": "rotary"},
    "focalnet": {"embed_dim": 8, "depths": [1, 1], "focal_levels": [1, 1], "focal_windows": [3, 3],
                 "patch_size": 4, "hidden_sizes": [8, 16]},
    "fsmt": {"src_vocab_size": 99, "tgt_vocab_size": 99, "langs": ["en", "de"]},
    "funnel": {"block_sizes": [1, 1], "n_head": 4, "d_head": 8, "d_inner": 64,
               "architectures": ["FunnelModel"]},
    "glpn": {"hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 1, 1], "decoder_hidden_size": 8,
             "num_attention_heads": [1, 1, 2, 2]},
    "gpt_neo": {"num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]]},
    "gpt_oss": _EXPERTS,
    "gptj": {"n_embd": 32, "n_layer": 2, "n_head": 4, "rotary_dim": 4},
    "hiera": {"embed_dim": 8, "image_size": [32, 32], "depths": [1, 1], "num_heads": [1, 2],
              "patch_size": [7, 7], "patch_stride": [4, 4], "patch_padding": [3, 3],
              "query_stride": [2, 2], "masked_unit_size": [8, 8], "num_query_pool": 1},
    "hubert": _WAV2VEC,
    "led": {"attention_window": 8, "max_encoder_position_embeddings": 64,
            "max_decoder_position_embeddings": 64},
    "levit": {"hidden_sizes": [16, 24, 32], "num_attention_heads": [2, 2, 2], "depths": [1, 1, 1],
              "key_dim": [8, 8, 8], "image_size": 64, "patch_size": 16},
    "longformer": {"attention_window": 8},
    "longt5": _T5 | {"local_radius": 4},
    "mamba": {"state_size": 4},
    "mamba2": {"state_size": 4, "num_heads": 8, "head_dim": 8, "n_groups": 2, "chunk_size": 4},
    "mixtral": _EXPERTS,
    "mobilebert": {"true_hidden_size": 32, "intra_bottleneck_size": 32, "embedding_size": 32},
    "mobilenet_v1": {"image_size": 64, "depth_multiplier": 0.25},
    "mobilenet_v2": {"image_size": 64, "depth_multiplier": 0.25},
    "mobilevit": {"image_size": 64, "hidden_sizes": [16, 24, 32],
                  "neck_hidden_sizes": [8, 8, 16, 16, 24, 24, 32], "patch_size": 2},
    "mobilevitv2": {"image_size": 64, "width_multiplier": 0.25, "patch_size": 2},
    "modernbert": {"sep_token_id": 2, "cls_token_id": 1},
    "mpt": {"n_heads": 4, "n_layers": 2, "max_seq_len": 64},
    "mt5": _T5,
    "nystromformer": {"segment_means_seq_len": 16, "num_landmarks": 4},
    "olmoe": _EXPERTS,
    "opt": {"ffn_dim": 64, "word_embed_proj_dim": 32},
    "poolformer": {"hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 1, 1]},
    "prophetnet": {"num_encoder_layers": 2, "num_decoder_layers": 2,
                   "num_encoder_attention_heads": 4, "num_decoder_attention_heads": 4},
    "pvt": {"image_size": 64, "hidden_sizes": [8, 16, 16, 16], "depths": [1, 1, 1, 1],
            "num_attention_heads": [1, 1, 2, 2]},
    "pvt_v2": {"image_size": 64, "hidden_sizes": [8, 16, 16, 16], "depths": [1, 1, 1, 1],
               "num_attention_heads": [1, 1, 2, 2]},
    "qwen3_moe": _EXPERTS,
    "regnet": {"embedding_size": 8, "hidden_sizes": [8, 16, 16, 24], "depths": [1, 1, 1, 1],
               "groups_width": 8},
    "rembert": {"input_embedding_size": 32},
    "resnet": {"embedding_size": 8, "hidden_sizes": [8, 16, 16, 24], "depths": [1, 1, 1, 1]},
    "segformer": {"image_size": 64, "hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 1, 1],
                  "num_attention_heads": [1, 1, 2, 2]},
    "sew": _WAV2VEC,
    "swiftformer": {"image_size": 64, "embed_dims": [8, 8, 16, 16], "depths": [1, 1, 1, 1]},
    "swin": _SWIN,
    "swinv2": _SWIN | {"pretrained_window_sizes": [0, 0]},
    "switch_transformers": _T5 | {"num_experts": 2, "num_sparse_encoder_layers": 1,
                                  "num_sparse_decoder_layers": 1},
    "t5": _T5,
    "umt5": _T5,
    "unispeech": _WAV2VEC,
    "unispeech-sat": _WAV2VEC,
    "wav2vec2": _WAV2VEC,
    "wavlm": _WAV2VEC,
    "xglm": {"num_layers": 2, "attention_heads": 4, "ffn_dim": 64},
    "xlnet": {"n_layer": 2, "n_head": 4, "d_inner": 64},
    "xmod": {"default_language": "en_XX"},
    "yolos": {"image_size": [32, 32]},
    "yoso": {"use_expectation": True},
}  # fmt: skip
# By class: its configuration; shapes of its arguments, or numbers.
_DIFFUSERS = {
    "AutoencoderTiny": ({"encoder_block_out_channels": (8, 8),
                         "decoder_block_out_channels": (8, 8), "num_encoder_blocks": (1, 1),
                         "num_decoder_blocks": (1, 1)},
                        [(1, 3, 16, 16)]),
    "UNet2DModel": ({"block_out_channels": (8, 16), "down_block_types": ("DownBlock2D",
                     "AttnDownBlock2D"), "up_block_types": ("AttnUpBlock2D", "UpBlock2D"),
                     "norm_num_groups": 4, "attention_head_dim": 4, "layers_per_block": 1},
                    [(1, 3, 16, 16), 500]),
    "VQModel": ({"block_out_channels": (8,), "norm_num_groups": 4, "num_vq_embeddings": 16},
                [(1, 3, 16, 16)]),
    "DiTTransformer2DModel": ({"num_layers": 2, "attention_head_dim": 8, "num_attention_heads": 4,
                               "sample_size": 8, "norm_num_groups": 8, "num_embeds_ada_norm": 10},
                              [(1, 4, 8, 8), 500, "classes"]),
    "SD3Transformer2DModel": ({"sample_size": 8, "num_layers": 2, "attention_head_dim": 8,
                               "num_attention_heads": 4, "joint_attention_dim": 16,
                               "caption_projection_dim": 32, "pooled_projection_dim": 12,
                               "in_channels": 4, "out_channels": 4, "pos_embed_max_size": 8},
                              [(1, 4, 8, 8), (1, 5, 16), (1, 12), 500]),
    "PixArtTransformer2DModel": ({"num_layers": 2, "attention_head_dim": 8,
                                  "num_attention_heads": 4, "sample_size": 8, "norm_num_groups": 8,
                                  "cross_attention_dim": 32, "caption_channels": 16,
                                  "in_channels": 4, "out_channels": 8},
                                 [(1, 4, 8, 8), (1, 5, 16), 500]),
}  # fmt: skip

_LARGE = {
    "AutoencoderTiny": {"height": (16, 48, 8), "width": (16, 48, 8)},
    "UNet2DModel": {"height": (16, 48, 2), "width": (16, 48, 2)},
    "VQModel": {"height": (16, 41), "width": (16, 41)},
    "SD3Transformer2DModel": {"words": (4, 19)},
    "PixArtTransformer2DModel": {"words": (4, 19)},
}  # fmt: skip


def make(name):
    """An `Original`: the model in evaluation mode, and inputs for it."""
    if name in _DIFFUSERS:
        return _of_diffusers(name)
    for names, inputs in ((_TEXT, _words), (_DECODERS, _padded_left), (_TEXT_TO_TEXT, _two_texts),
                          (_IMAGES, _picture), (_SOUNDS, _sound)):  # fmt: skip
        if name in names:
            config = _configuration(name)
            model = transformers.AutoModel.from_config(config).eval()
            return Original(model, model, lambda seed, **sizes: (
                (), _known(model, inputs(config, seed, **sizes))))
    raise ValueError(f"no architecture '{name}'")


def sizes(name):
    """The sizes that inputs of a kind have, besides the batch, and their ranges: (low, high) or (low,
    high, step). A model need not take them, as the height of a picture."""
    if name in _DIFFUSERS:
        return _LARGE.get(name, {})
    if name in _TEXT + _DECODERS:
        return {"length": (8, 40)}
    if name in _TEXT_TO_TEXT:
        return {"length": (8, 40), "decoded": (5, 24)}
    if name in _SOUNDS:
        return {"samples": (800, 1203)}
    return {"height": (64, 97), "width": (64, 97)}


def _configuration(name):
    default = transformers.AutoConfig.for_model(name)
    sizes = {}
    for size, value in _SMALL.items():
        try:
            if hasattr(default, size):
                setattr(default, size, value)
                sizes[size] = value
        except (AttributeError, NotImplementedError):  # is made of others
            pass
    return transformers.AutoConfig.for_model(name, **(sizes | _SPECIAL.get(name, {})))


def _known(model, keywords):
    """Those that the model takes."""
    known = inspect.signature(model.forward).parameters
    return {name: value for name, value in keywords.items() if name in known}


def _random(seed):
    return torch.Generator().manual_seed(seed)


def _words(config, seed, batch=2, length=16):
    words = torch.randint(3, _SMALL["vocab_size"], (batch, length), generator=_random(seed))
    mask = torch.ones(batch, length, dtype=torch.long)
    mask[-1, -length // 4:] = 0
    return {"input_ids": words, "attention_mask": mask}


def _padded_left(config, seed, **sizes):
    keywords = _words(config, seed, **sizes)
    return keywords | {"attention_mask": keywords["attention_mask"].flip(-1)}


def _two_texts(config, seed, batch=2, length=16, decoded=9):
    decoder = _words(config, seed + 100, batch, decoded)
    return _words(config, seed, batch, length) | {"decoder_input_ids": decoder["input_ids"]}


def _picture(config, seed, batch=2, height=None, width=None):
    size = getattr(config, "image_size", 64)
    usual = size if isinstance(size, (list, tuple)) else (size, size)
    shape = (batch, 3, height or usual[0], width or usual[1])
    return {"pixel_values": torch.randn(shape, generator=_random(seed))}


def _sound(config, seed, batch=2, samples=800):
    return {"input_values": torch.randn(batch, samples, generator=_random(seed))}


def _of_diffusers(name):
    configuration, shapes = _DIFFUSERS[name]
    model = getattr(diffusers, name)(**configuration).eval()

    def inputs(seed, batch=1, **large):
        random = _random(seed)

        def argument(shape):
            if shape == "classes":
                return torch.full((batch,), seed)
            if isinstance(shape, int):
                return torch.full((batch,), shape + seed)
            shape = (batch, *shape[1:])
            if len(shape) == 4:
                shape = (*shape[:2], large.get("height", shape[2]), large.get("width", shape[3]))
            elif len(shape) == 3:
                shape = (batch, large.get("words", shape[1]), shape[2])
            return torch.randn(shape, generator=random)

        return tuple(argument(s) for s in shapes), {}

    return Original(model, model, inputs)


NAMES = [*_TEXT, *_DECODERS, *_TEXT_TO_TEXT, *_IMAGES, *_SOUNDS, *_DIFFUSERS]
