"""A program that knows nothing of Flashlight."""

import torch

print(torch.nn.Linear(2, 2)(torch.ones(1, 2)).shape)
