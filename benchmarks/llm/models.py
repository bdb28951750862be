"""Decoding of language models as plain torch: what `./dev bench llm` captures, and what torch.compile gets.

    step = Step(CONFIGURATIONS["llama_1b"], batch=1, position=512, tokens=1)
    logits = step(torch.tensor([[17]]))        # [1, vocabulary]: of the last token

The weights are random. The cache is two buffers per layer, of [batch, key heads, LONGEST, width], and a call writes the
keys and values of its tokens at `position` and reads those up to there.
"""

from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional

LONGEST = 2048
SEED = 5


class Configuration(NamedTuple):
    """A model of Llama's structure; Qwen2's differs by the biases of queries, keys and values, and shares the head."""

    vocabulary: int
    width: int
    hidden: int  # of the feed-forward layers
    layers: int
    heads: int
    key_heads: int
    head_width: int
    theta: float
    bias: bool = False
    shares_head: bool = False

    def weights(self):
        """By kind, numbers of weights that a token reads: of products, and of vectors."""
        queries, keys = self.heads * self.head_width, self.key_heads * self.head_width
        layer = self.width * (2 * queries + 2 * keys + 3 * self.hidden)
        vectors = 2 * self.width + (queries + 2 * keys if self.bias else 0)
        return self.layers * layer + self.vocabulary * self.width, self.layers * vectors + self.width

    def cached(self, position):
        """Numbers of the cache that a token at `position` reads or writes, of one sequence."""
        return 2 * self.layers * self.key_heads * self.head_width * (position + 1)


CONFIGURATIONS = {
    "llama_1b": Configuration(32000, 2048, 5632, 22, 32, 4, 64, 1e4),  # TinyLlama 1.1B
    "qwen_05b": Configuration(151936, 896, 4864, 24, 14, 2, 64, 1e6, bias=True, shares_head=True),  # Qwen2.5 0.5B
}


def rotary(configuration, positions):
    """Cosines and sines, [positions, head width]."""
    width = configuration.head_width
    frequencies = configuration.theta ** (-torch.arange(0, width, 2, dtype=torch.float32) / width)
    angles = torch.outer(positions.float(), frequencies)
    angles = torch.cat([angles, angles], -1)
    return angles.cos(), angles.sin()


def rotate(x, cosines, sines):
    low, high = x.chunk(2, -1)
    return x * cosines + torch.cat([-high, low], -1) * sines


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        wide = x.float()
        scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-5)
        return self.weight * (wide * scale).to(x.dtype)


class Layer(nn.Module):
    def __init__(self, of, batch, position):
        super().__init__()
        self.of, self.position = of, position
        queries, keys = of.heads * of.head_width, of.key_heads * of.head_width
        self.before, self.after = Norm(of.width), Norm(of.width)
        self.q, self.k, self.v = (nn.Linear(of.width, n, bias=of.bias) for n in (queries, keys, keys))
        self.o = nn.Linear(queries, of.width, bias=False)
        self.gate, self.up = (nn.Linear(of.width, of.hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(of.hidden, of.width, bias=False)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.randn(batch, of.key_heads, LONGEST, of.head_width))

    def attend(self, x, cosines, sines):
        of, (batch, tokens, _) = self.of, x.shape
        heads = lambda y: y.view(batch, tokens, -1, of.head_width).transpose(1, 2)
        q, k = (rotate(heads(y), cosines, sines) for y in (self.q(x), self.k(x)))
        end = self.position + tokens
        self.keys[:, :, self.position:end] = k
        self.values[:, :, self.position:end] = heads(self.v(x))
        y = functional.scaled_dot_product_attention(q, self.keys[:, :, :end], self.values[:, :, :end],
                                                    is_causal=tokens > 1, enable_gqa=True)
        return self.o(y.transpose(1, 2).reshape(batch, tokens, -1))

    def forward(self, x, cosines, sines):
        x = x + self.attend(self.before(x), cosines, sines)
        y = self.after(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Step(nn.Module):
    """Token numbers [batch, tokens] to the logits [batch, vocabulary] of the last of them.

    Several tokens are a prompt: they start at position 0.
    """

    def __init__(self, of, batch=1, position=0, tokens=1):
        super().__init__()
        assert tokens == 1 or position == 0
        torch.manual_seed(SEED)
        self.embedding = nn.Embedding(of.vocabulary, of.width)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.layers = nn.ModuleList(Layer(of, batch, position) for _ in range(of.layers))
        self.norm = Norm(of.width)
        self.head = nn.Linear(of.width, of.vocabulary, bias=False)
        if of.shares_head:
            self.head.weight = self.embedding.weight
        cosines, sines = rotary(of, torch.arange(position, position + tokens))
        self.register_buffer("cosines", cosines)
        self.register_buffer("sines", sines)
        self.requires_grad_(False)
        self.eval()

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, self.cosines, self.sines)
        return self.head(self.norm(x[:, -1]))


class Exportable(nn.Module):
    """The same weights as functions of a cache that is given and returned, for engines that make states of it.

    (tokens [batch, n], positions [n], keys and values of each layer) to (logits, keys and values of each layer).
    """

    def __init__(self, step):
        super().__init__()
        self.step = step

    def forward(self, tokens, positions, *cache):
        step, x, made = self.step, self.step.embedding(tokens), []
        cosines, sines = rotary(step.layers[0].of, positions)
        for i, layer in enumerate(step.layers):
            of, y = layer.of, layer.before(x)
            heads = lambda z: z.view(z.shape[0], z.shape[1], -1, of.head_width).transpose(1, 2)
            q, k = (rotate(heads(z), cosines, sines) for z in (layer.q(y), layer.k(y)))
            k, v = torch.cat([cache[2 * i], k], 2), torch.cat([cache[2 * i + 1], heads(layer.v(y))], 2)
            made += [k, v]
            seen = torch.arange(k.shape[2])[None, :] <= positions[:, None]
            repeated = [z[:, :, None].expand(-1, -1, of.heads // of.key_heads, -1, -1).flatten(1, 2) for z in (k, v)]
            z = functional.scaled_dot_product_attention(q, *repeated, attn_mask=seen)
            x = x + layer.o(z.transpose(1, 2).flatten(2))
            y = layer.after(x)
            x = x + layer.down(functional.silu(layer.gate(y)) * layer.up(y))
        return (step.head(step.norm(x[:, -1])), *made)


def exported(of, format, batch):
    """A model of OpenVINO whose cache is its state; weights in 16 bits unless the format is f32."""
    import openvino as ov
    from openvino._offline_transformations import apply_make_stateful_transformation, compress_model_transformation

    tokens = 2
    cache = [torch.zeros(batch, of.key_heads, 3, of.head_width) for _ in range(2 * of.layers)]
    example = (torch.zeros(batch, tokens, dtype=torch.int64), torch.arange(3, 3 + tokens), *cache)
    with torch.no_grad():
        model = ov.convert_model(Exportable(Step(of)), example_input=example)
    names = {}
    for i, port in enumerate(model.inputs):
        name = ("tokens", "positions")[i] if i < 2 else f"past.{i - 2}"
        port.get_tensor().set_names({name})
        shape = [batch, -1] if i == 0 else [-1] if i == 1 else [batch, of.key_heads, -1, of.head_width]
        port.get_node().set_partial_shape(ov.PartialShape(shape))
        if i >= 2:
            model.outputs[i - 1].get_tensor().set_names({f"present.{i - 2}"})
            names[name] = f"present.{i - 2}"
    model.validate_nodes_and_infer_types()
    apply_make_stateful_transformation(model, names)
    if format != "f32":
        compress_model_transformation(model)  # to 16 bits
    return model
