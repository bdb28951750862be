"""Reads a safetensors file with the public package, checks its values, and writes them to another file.

    safetensors_interop.py IN OUT

Every tensor of IN holds 0, 1, 2, ... in its dtype, or bytes (names that start with "bytes").
"""

import sys

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

source, target = sys.argv[1:]
tensors = load_file(source)
for name, tensor in tensors.items():
    if name.startswith("__padding__."):
        assert tensor.numel() < 64 and not tensor.any(), name
        continue
    if name.startswith("bytes"):
        assert tensor.dtype == torch.uint8, (name, tensor.dtype)
        continue
    expected = torch.arange(tensor.numel(), dtype=torch.float64).to(tensor.dtype)
    assert torch.equal(tensor.reshape(-1).to(torch.complex128), expected.to(torch.complex128)), name
    assert str(tensor.dtype) == "torch." + name.split("/")[0], (name, tensor.dtype)
with safe_open(source, "pt") as file:
    metadata = file.metadata()
save_file(tensors, target, metadata)
print(" ".join(f"{name}:{'x'.join(map(str, t.shape))}" for name, t in sorted(tensors.items())))
