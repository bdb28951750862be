"""Captures compiled by AOTInductor, without a line of ours: values, state, and what is refused."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import no_looks  # before flashlight
import torch
import transformers

import flashlight
from agreement import leaves

CLOSE = 1e-5  # of the largest element: its kernels sum in another order


class CompiledTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def compiled(self, captured, **options):
        folder = pathlib.Path(self.folder.name)
        captured.export(folder / "program.pt2", **options)
        program = torch.export.load(folder / "program.pt2")
        with torch.no_grad():
            package = torch._inductor.aoti_compile_and_package(
                program, package_path=str(folder / "compiled.pt2"))
        return torch._inductor.aoti_load_package(package)

    def assert_close(self, received, expected):
        received, expected = leaves(received), leaves(expected)
        self.assertEqual(len(received), len(expected))
        for ours, torchs in zip(received, expected):
            self.assertLess((ours - torchs).abs().max().item(), CLOSE * torchs.abs().max().item())

    def test_resnet_18(self):
        model = transformers.ResNetForImageClassification(transformers.ResNetConfig(
            depths=[2, 2, 2, 2], hidden_sizes=[64, 128, 256, 512], layer_type="basic")).eval()
        x, y = torch.randn(1, 3, 64, 64), torch.randn(1, 3, 64, 64)
        with torch.no_grad():
            compiled = self.compiled(flashlight.trace(model, x))
            self.assert_close(compiled(y), model(y))

    def test_a_family_of_bert(self):
        """Two layers; sizes that were not shown are refused."""
        model = transformers.BertModel(transformers.BertConfig(
            num_hidden_layers=2, hidden_size=64, intermediate_size=128, num_attention_heads=4)).eval()

        def inputs(batch, tokens):
            return (torch.randint(1, 99, (batch, tokens)), torch.ones(batch, tokens)), {}

        with torch.no_grad():
            family = flashlight.trace_family(model, inputs,
                                             sizes={"batch": (2, 4), "tokens": (4, 32)})
            compiled = self.compiled(family)
            for batch, tokens in ((2, 4), (3, 17), (4, 32)):
                arguments, _ = inputs(batch, tokens)
                self.assert_close(compiled(*arguments), model(*arguments))
            for batch, tokens in ((1, 8), (5, 8), (2, 33)):
                with self.assertRaises(RuntimeError):
                    compiled(*inputs(batch, tokens)[0])

    def test_a_step_of_sgd_keeps_its_state(self):
        """And raises where a number that the program reads is another."""
        model = torch.nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

        def step(x, y):
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(x), y)
            if loss.isnan():
                return loss
            loss.backward()
            optimizer.step()
            return loss.detach()

        x, y = torch.randn(4, 3), torch.randn(4, 2)
        for _ in range(2):
            step(x, y)
        compiled = self.compiled(flashlight.trace(step, x, y), parameters_as_buffers=True)
        for _ in range(3):
            self.assert_close(compiled(x, y), step(x, y))
        with self.assertRaises(RuntimeError):
            compiled(x * float("nan"), y)


if __name__ == "__main__":
    unittest.main()
