"""What a user does first with the installed package."""

import importlib.metadata
import tempfile

import torch

import flashlight

assert importlib.metadata.version("flashlight-torch").count(".") == 2

model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
x = torch.randn(3, 4)
captured = flashlight.trace(model, x)
assert torch.equal(captured(x), model(x))
assert captured.check(torch.randn(3, 4))
for backend in "cpp", "mosaic":
    torch.testing.assert_close(captured.compile(backend)(x), model(x))
with tempfile.TemporaryDirectory() as folder:
    captured.save(folder + "/perceptron")
    assert torch.equal(flashlight.load(folder + "/perceptron")(x), model(x))
