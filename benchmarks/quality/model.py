"""The small language model of `./dev bench quality`: Llama's structure over bytes, as plain torch.

    model = Decoder()
    losses = per_sequence(model, tokens)      # [sequences]: mean negative log-likelihood of a byte, in nats

A sequence is `LENGTH + 1` bytes: the model reads all but the last and predicts all but the first.
"""

import torch
from torch import nn
from torch.nn import functional

VOCABULARY, LENGTH = 256, 128
BATCH = 32  # sequences of a call


class Layer(nn.Module):
    def __init__(self, width, hidden, heads):
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.RMSNorm(width), nn.RMSNorm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        y = self.before(x)
        split = lambda z: z.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        y = functional.scaled_dot_product_attention(split(self.q(y)), split(self.k(y)), split(self.v(y)),
                                                    is_causal=True)
        x = x + self.o(y.transpose(1, 2).flatten(2))
        y = self.after(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Decoder(nn.Module):
    """Bytes [sequences, LENGTH] to logits [sequences, LENGTH, VOCABULARY]."""

    def __init__(self, layers=4, width=256, hidden=768, heads=4):
        super().__init__()
        self.embedding, self.positions = nn.Embedding(VOCABULARY, width), nn.Embedding(LENGTH, width)
        self.layers = nn.ModuleList(Layer(width, hidden, heads) for _ in range(layers))
        self.norm = nn.RMSNorm(width)
        self.head = nn.Linear(width, VOCABULARY, bias=False)
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear):  # what a layer adds is small at first
                nn.init.normal_(module.weight, std=0.01 if name.endswith((".o", ".down")) else 0.04)
        nn.init.normal_(self.embedding.weight, std=0.5)
        nn.init.normal_(self.positions.weight, std=0.05)

    def forward(self, tokens):
        x = self.embedding(tokens) + self.positions.weight
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))

    def weights(self):
        """Names of the weights that are quantized: those of all products."""
        return [f"{name}.weight" for name, module in self.named_modules() if isinstance(module, nn.Linear)]


def loss_of(logits, tokens):
    return functional.cross_entropy(logits.transpose(1, 2), tokens[:, 1:], reduction="none").mean(1)


@torch.no_grad()
def per_sequence(model, tokens):
    return torch.cat([loss_of(model(batch[:, :-1]).float(), batch) for batch in tokens.split(BATCH)])
