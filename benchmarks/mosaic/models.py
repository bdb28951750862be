"""The models that are measured, as their Python originals, with the weights of a capture.

    model = load("bert_base", Path("build/mosaic/bert_base_b8"))
    last_hidden_state, pooler_output = model(input_ids, attention_mask)
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import load_file

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples/models"))
from names import torchvision_name


def resnet50():
    from transformers import ResNetConfig, ResNetForImageClassification

    model = ResNetForImageClassification(ResNetConfig(num_labels=1000))
    return model, lambda x: (model(x).logits,), torchvision_name


def bert_base():
    from transformers import BertConfig, BertModel

    model = BertModel(BertConfig())
    return model, lambda ids, mask: tuple(model(ids, mask, return_dict=False)), str


def clip_text():
    from transformers import CLIPTextConfig, CLIPTextModel

    model = CLIPTextModel(CLIPTextConfig(hidden_size=768, intermediate_size=3072, num_hidden_layers=12,
                                         num_attention_heads=12, eos_token_id=2))
    # transformers 5 has dropped the prefix that the published weights have.
    return model, lambda ids: (model(ids).last_hidden_state,), lambda name: f"text_model.{name}"


def sd_unet():
    from diffusers import UNet2DConditionModel

    model = UNet2DConditionModel(cross_attention_dim=768)
    return model, lambda x, t, text: (model(x, t, text, return_dict=False)[0],), str


def sd_vae_decoder():
    from diffusers import AutoencoderKL

    model = AutoencoderKL(block_out_channels=(128, 256, 512, 512), latent_channels=4, layers_per_block=2,
                          down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4)
    return model, lambda x: (model.decode(x, return_dict=False)[0],), str


def resnet18_step():
    from transformers import ResNetConfig, ResNetForImageClassification

    model = ResNetForImageClassification(ResNetConfig(depths=[2, 2, 2, 2], hidden_sizes=[64, 128, 256, 512],
                                                      layer_type="basic", num_labels=1000))
    cross_entropy = torch.nn.functional.cross_entropy
    return model, lambda x, target: (cross_entropy(model(x).logits, target),), torchvision_name


def bert_step():
    from transformers import BertConfig, BertModel

    model = BertModel(BertConfig(vocab_size=1000, hidden_size=256, num_hidden_layers=4, num_attention_heads=4,
                                 intermediate_size=1024))
    mse_loss = torch.nn.functional.mse_loss
    return model, lambda ids, mask, target: (mse_loss(model(ids, mask, return_dict=False)[1], target),), str


MAKERS = {f.__name__: f for f in (resnet50, bert_base, clip_text, sd_unet, sd_vae_decoder, resnet18_step, bert_step)}
MOMENTUM = ".momentum"  # of a parameter
PADDING = "__padding__"  # between tensors of a file (composit/io/safetensors.h)


class Model(torch.nn.Module):
    """What is captured: tensors to a tuple of tensors."""

    def __init__(self, original, run):
        super().__init__()
        self.original, self.run = original, run

    def forward(self, *inputs):
        return self.run(*inputs)


def fill(original, weights, name_of):
    """Every weight has to find its place; what has none in the capture is not used by what is captured."""
    left = dict(weights)
    # Buffers that are no part of a state dict, and all names of what is shared.
    tensors = [*original.named_parameters(remove_duplicate=False), *original.named_buffers(remove_duplicate=False)]
    for name, tensor in tensors:
        if name_of(name) in left:
            tensor.copy_(left.pop(name_of(name)))
    if left:
        raise ValueError(f"weights that the original does not have: {sorted(left)[:5]}")


def weights_of(capture):
    tensors = load_file(capture / "weights.safetensors")
    return {name: tensor for name, tensor in tensors.items() if not name.startswith(PADDING)}


def load(name, capture: Path):
    """In evaluation mode: tensors to a tuple of tensors, in the order in which the capture has them."""
    original, run, name_of = MAKERS[name]()
    with torch.no_grad():
        fill(original, weights_of(capture), name_of)
    return Model(original, run).eval()


class Training:
    """A model in the middle of a training by SGD with momentum, in the state of a captured step.

    training = Training("bert_step", Path("build/mosaic/bert_step"))
    training.model(*inputs)[0].backward()      # the loss
    training.optimizer().step()
    training.state()["pooler.dense.bias.momentum"]
    """

    def __init__(self, name, capture: Path):
        original, run, name_of = MAKERS[name]()
        weights = weights_of(capture)
        with torch.no_grad():
            fill(original, {key: value for key, value in weights.items() if not key.endswith(MOMENTUM)}, name_of)
        self.model = Model(original, run).train()
        self.momenta = {name_of(key) + MOMENTUM: (parameter, weights[name_of(key) + MOMENTUM])
                        for key, parameter in original.named_parameters() if name_of(key) + MOMENTUM in weights}
        self.tensors = {name_of(key): tensor for key, tensor in original.state_dict().items()}

    def optimizer(self, **settings):
        sgd = torch.optim.SGD((parameter for parameter, _ in self.momenta.values()), 0.01, momentum=0.9, **settings)
        for parameter, momentum in self.momenta.values():
            sgd.state[parameter]["momentum_buffer"] = momentum
        return sgd

    def state(self):
        return {**self.tensors, **{key: momentum for key, (_, momentum) in self.momenta.items()}}
