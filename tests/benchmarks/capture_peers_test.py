"""Python's ways to a graph work on a model whose forward has keywords and several results, so that
`./dev bench capture` compares with them."""

import sys
import unittest
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import capture  # noqa: E402


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 4)

    def forward(self, x, scale=1.0):
        return self.linear(x) * scale, x


class CapturePeers(unittest.TestCase):
    def test_none_fails(self):
        x = torch.randn(2, 3)
        times, failed = capture.measure_peer("model", lambda: (Model(), (x,), {"scale": 2.0}), rounds=2)
        self.assertEqual(failed, {})
        self.assertEqual({name: len(measured) for name, measured in times.items()}, dict.fromkeys(times, 2))
        self.assertIn("torch.jit.trace", times)

    def test_the_first_result_is_traced(self):
        model, x = Model().eval(), torch.randn(2, 3)
        with torch.no_grad():
            traced = torch.jit.trace(capture.first_result_of(model, {"scale": 2.0}), (x,), check_trace=False)
            other = torch.randn(2, 3)
            self.assertTrue(torch.equal(traced(other), model(other, scale=2.0)[0]))


if __name__ == "__main__":
    unittest.main()
