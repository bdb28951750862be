"""Functions of Knossos' language on torch's tensors, and inside of a captured model.

    python examples/python/knossos.py examples/ks/gmm.ks
"""

import sys

import torch

import flashlight

program = flashlight.ks(sys.argv[1])

# From Python: compiled at the first call; autograd goes through it.
alphas, means, icf = torch.zeros(2), torch.randn(2, 3, requires_grad=True), torch.zeros(2, 6)
points = torch.randn(50, 3)
program.gmm(alphas, means, icf, points, 1.0, 0).backward()
print("gradient by the means:", means.grad)


# Inside of a captured model: one operation of its graph.
def loss(x: torch.Tensor) -> torch.Tensor:
    return program.gmm(alphas, means.detach(), icf, torch.tanh(x), 1.0, 0) * 2


captured = flashlight.trace(loss, points)
torch.testing.assert_close(captured(points + 1), loss(points + 1))
print("operations of the captured model:", *(node.op for node in captured.graph.nodes))
