"""A training step with Adam as people write it: captured, replayed with eager's bits, compiled.

    python examples/python/train_adam.py [steps]
"""

import sys

import torch

import flashlight

model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)


def step(x, y):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.detach()


def batch():
    x = torch.randn(64, 8)
    return x, x.sin().sum(1, keepdim=True)


steps = int(sys.argv[1]) if len(sys.argv) > 1 else 200
for _ in range(2):
    first = step(*batch())  # the optimizer makes its state in its first step
captured = flashlight.trace(step, *batch())
for _ in range(steps):
    captured(*batch())  # the first three run the program and compare, the others replay
assert captured.trust == "confirmed"
print(captured.assumptions()[1])  # … follows from what the program reads: pow(1.0 - pow(0.999, read_…), 0.5)

fast = captured.compile("mosaic")  # writes the same parameters and the same state
for _ in range(steps):
    last = fast(*batch())
assert last < 0.5 * first, (first, last)
assert {int(state["step"]) for state in optimizer.state.values()} == {3 + 2 * steps}
print(f"loss {first:.3f} -> {last:.3f}, {3 + 2 * steps} steps in optimizer.state_dict()")
