"""Saves modules as TorchScript for modules_test.cpp.

    save_modules.py FOLDER

Each is saved as torch.jit.script makes it, and the first ones as torch.jit.trace does.
"""

import sys
import warnings
from pathlib import Path
from typing import Dict, Optional

import torch
import torch.nn as nn
import torch.nn.functional as F


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.layers = nn.ModuleList([nn.Linear(16, 16) for _ in range(3)])
        self.out = nn.Linear(16, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)
        x = torch.flatten(x, 1)
        for layer in self.layers:
            x = F.gelu(layer(x)) + x
        return F.log_softmax(self.out(x), dim=-1)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inputs = nn.Linear(8, 24)
        self.register_buffer("mask", torch.tril(torch.ones(5, 5)).bool())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.size()
        q, k, v = self.inputs(x).view(batch, length, 6, width // 2).transpose(1, 2).chunk(3, dim=1)
        weights = (q @ k.transpose(-2, -1)) * (1.0 / q.size(-1) ** 0.5)
        weights = weights.masked_fill(~self.mask[:length, :length], float("-inf"))
        return (F.softmax(weights, dim=-1) @ v).transpose(1, 2).contiguous().view(batch, length, width)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 6, 2)
        self.cell = nn.GRUCell(6, 5)

    def forward(self, x: torch.Tensor):
        y, (h, _) = self.lstm(x)
        state = torch.zeros(x.size(1), 5)
        states = []
        for t in range(y.size(0)):
            state = self.cell(y[t], state)
            states.append(state)
        return torch.stack(states), h


class Decisions(nn.Module):
    """Branches and loops that depend on values, buffers that are written, results by name."""

    factors: Dict[str, float]

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.norm = nn.BatchNorm1d(4)
        self.factors = {"a": 0.5, "b": 2.0}
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))

    def forward(self, x: torch.Tensor, name: str = "a", scale: Optional[float] = None):
        self.calls += 1
        h = self.norm(x) * self.factors[name]
        if scale is not None:
            h = h * scale
        steps = 0
        while bool(h.abs().max() > 0.5) and steps < 20:
            h = torch.tanh(self.linear(h)) * 0.9
            steps += 1
        if bool(h.sum() > 0):
            h = -h
        return {"h": h, "steps": torch.tensor(steps)}


def main() -> None:
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    folder = Path(sys.argv[1])
    convolutions = Convolutions().eval()
    torch.jit.script(convolutions).save(folder / "convolutions.pt")
    torch.jit.trace(convolutions, torch.rand(2, 3, 4, 4)).save(folder / "convolutions_traced.pt")
    torch.jit.script(Attention()).save(folder / "attention.pt")
    torch.jit.trace(Attention(), torch.rand(2, 5, 8)).save(folder / "attention_traced.pt")
    torch.jit.script(Recurrent()).save(folder / "recurrent.pt")
    torch.jit.script(Decisions()).save(folder / "decisions.pt")
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2, enable_nested_tensor=False
    )
    torch.jit.script(encoder.eval()).save(folder / "encoder.pt")


if __name__ == "__main__":
    main()
