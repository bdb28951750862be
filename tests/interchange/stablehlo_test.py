"""Captures as modules of StableHLO: XLA and IREE give what torch gives.

The other side lives in an environment of its own (engines.py), without which the test is skipped."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "frontends/python"), str(HERE.parents[1] / "examples/models")]

import no_looks  # before flashlight
import numpy
import torch

import engines
import flashlight
import originals
from agreement import exactly, leaves

SKIPPED = 77
# Of the largest element; both sum in other orders, and IREE's functions have fewer digits.
CLOSE = {"xla": 1e-5, "iree": 1e-4}


def guards_of(results):
    return [bool(value) for name, value in results.items() if name.startswith("guard_")]


class StableHloTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)

    def assert_close(self, results, expected):
        for engine, received in results.items():
            self.assertLessEqual(engines.times_off(received, leaves(expected)), CLOSE[engine], engine)

    @torch.no_grad()
    def agrees(self, program, arguments, others, names=CLOSE, **options):
        captured = flashlight.trace(program, *arguments)
        results = engines.run(captured, others, {}, list(names), **options)
        self.assert_close(results, program(*others))
        return results

    @torch.no_grad()
    def test_models(self):
        for name in ("resnet", "bert", "vae_decode", "unet", "clip_text"):
            with self.subTest(name):
                original = originals.ALL[name](small=True)
                arguments, keywords = original.inputs(1)
                others, other_keywords = original.inputs(2)
                captured = flashlight.trace(original.call, *arguments, **keywords)
                results = engines.run(captured, others, other_keywords, list(CLOSE))
                self.assert_close(results, exactly(original.model, original.call, others,
                                                   other_keywords))

    def test_gradients(self):
        """Of a network with convolutions in both directions, compared with autograd."""
        model = torch.nn.Sequential(
            torch.nn.Conv2d(2, 4, 3, stride=2, padding=1), torch.nn.BatchNorm2d(4), torch.nn.GELU(),
            torch.nn.MaxPool2d(2), torch.nn.ConvTranspose2d(4, 4, 3, stride=2, groups=2),
            torch.nn.Flatten(), torch.nn.LazyLinear(3))  # fmt: skip
        x = torch.randn(2, 2, 8, 8)
        model(x)

        def loss(x):
            return torch.nn.functional.cross_entropy(model.eval()(x), torch.tensor([0, 2]))

        loss(x).backward()
        gradient = flashlight.trace(loss, x).grad()
        received = engines.run(gradient, [x], {}, ["xla"])["xla"]
        expected = dict(model.named_parameters())
        compared = 0
        for number, name in enumerate(gradient.names, 1):
            parameter = expected.get(name.removeprefix("model."))
            if parameter is None:
                continue
            compared += 1
            off = abs(received[f"output_{number}"] - parameter.grad.numpy()).max()
            self.assertLessEqual(off, 1e-5 * float(parameter.grad.abs().max()), name)
        self.assertEqual(compared, len(expected))

    def test_indices_out_of_range_are_told(self):
        table = torch.nn.Embedding(5, 3)
        captured = flashlight.trace(table, torch.tensor([1, 2]))
        for indices, holds in (([0, 4], True), ([0, 5], False), ([-1, 2], True), ([-6, 2], False)):
            with self.subTest(indices):
                results = engines.run(captured, [torch.tensor(indices)], {}, ["xla"])["xla"]
                self.assertEqual(guards_of(results), [holds])

    def test_a_guard_is_told(self):
        def program(x):
            return x * 2 if x.sum() > 0 else x

        captured = flashlight.trace(program, torch.ones(3))
        for sign, holds in ((1, True), (-1, False)):
            results = engines.run(captured, [sign * torch.ones(3)], {}, ["xla"])["xla"]
            self.assertEqual(guards_of(results), [holds])

    @torch.no_grad()
    def test_order_and_scans(self):
        def program(x):
            values, places = x.sort(dim=1, descending=True)
            best, at = x.topk(2)
            top, where = x.cummax(1)
            return (values, places, best, at, top, where, x.cumsum(1), x.cumprod(1), x.argmin(1),
                    x.logcumsumexp(1))  # fmt: skip

        x = torch.tensor([[3.0, 1, 2, 1, 5], [0, -1, torch.nan, 2, torch.nan]])
        self.agrees(program, [torch.randn(2, 5)], [x], ["xla"])

    def test_weights_as_parameters(self):
        """IREE reads them by name from the file of weights."""
        model = torch.nn.Linear(3, 2)
        results = self.agrees(model, [torch.randn(4, 3)], [torch.randn(4, 3)], ["iree"],
                              weights_as_parameters=True)
        self.assertEqual(list(results["iree"]), ["output_0"])

    @torch.no_grad()
    def test_commands_of_the_page(self):
        """docs/interchange.md tells how IREE's tools take a module."""
        page = (HERE.parents[1] / "docs/interchange.md").read_text()
        commands = next(block for block in page.split("```") if "iree-run-module" in block)
        model, x = torch.nn.Linear(3, 2), torch.randn(4, 3)
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "model.mlir"
            flashlight.trace(model, x).export(file, weights_as_parameters=True)
            numpy.save(file.with_name("x.npy"), x.numpy())
            path = f"{pathlib.Path(engines.PYTHON).parent.absolute()}:{os.environ['PATH']}"
            done = subprocess.run(["bash", "-ec", commands], cwd=folder, text=True, capture_output=True,
                                  env=os.environ | {"PATH": path})
        self.assertEqual(done.returncode, 0, done.stderr)
        numbers = re.findall(r"-?\d+\.\d+(?:E-?\d+)?", done.stdout.rpartition("=")[2])
        torch.testing.assert_close(torch.tensor([float(n) for n in numbers]), model(x).flatten(),
                                   rtol=1e-4, atol=1e-4)

    @torch.no_grad()
    def test_matrices(self):
        """Factors have the signs and the exchanges of LAPACK's."""

        def program(a, b):
            lu, pivots = torch.linalg.lu_factor(a)
            q, r = torch.linalg.qr(a[:, :3])
            return torch.linalg.solve(a, b), torch.linalg.det(a), torch.linalg.inv(a), lu, pivots, q, r

        given = [torch.randn(5, 5), torch.randn(5, 2)]
        self.agrees(program, given, [torch.randn(5, 5), torch.randn(5, 2)], ["xla"])

    @torch.no_grad()
    def test_lengths_that_follow_from_values(self):
        """They are told where other values choose others than the captured ones did."""

        def program(x):
            return x[x > 0], x.nonzero(), torch.unique(x, return_inverse=True, return_counts=True)

        first, other = torch.tensor([3.0, -1, 3, 2]), torch.tensor([5.0, 5, -2, 1])
        results = self.agrees(program, [first], [other], ["xla"])
        self.assertTrue(all(guards_of(results["xla"])))
        captured = flashlight.trace(program, first)
        results = engines.run(captured, [-other], {}, ["xla"])["xla"]
        self.assertFalse(all(guards_of(results)))

    def test_complex_numbers(self):
        def program(x):
            return torch.fft.rfft(x).abs(), torch.view_as_real(torch.fft.fft(x) * 1j)

        self.agrees(program, [torch.randn(2, 6)], [torch.randn(2, 6)], ["xla"])

    @torch.no_grad()
    def test_the_backend(self):
        """For a whole program and for a part of one; a guard that does not hold is an error. JAX comes
        from the other environment, torch from this one."""
        sys.path.append(str(next(pathlib.Path(engines.PYTHON).parents[1].glob("lib/python3*/site-packages"))))
        model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4))
        x = torch.randn(3, 8)
        captured = flashlight.trace(model, x)
        for compiled in (captured.compile("xla"),
                         captured.compile("devices", choices="0: on xla\n*: on mosaic")):
            other = torch.randn(3, 8)
            torch.testing.assert_close(compiled(other), model(other))
        table = flashlight.trace(torch.nn.Embedding(5, 3), torch.tensor([1, 2])).compile("xla")
        with self.assertRaisesRegex(flashlight.Error, "indices are in range"):
            table(torch.tensor([5, 0]))

    def test_what_is_refused(self):
        captured = flashlight.trace(lambda x: torch.nn.functional.dropout(x, training=True), torch.ones(3))
        with self.assertRaisesRegex(flashlight.Error, r"(?s)\[stablehlo\].*dropout|bernoulli"):
            captured.export("/tmp/never.mlir")
        with self.assertRaisesRegex(flashlight.Error, "has the options"):
            captured.export("/tmp/never.mlir", opset=20)


if __name__ == "__main__":
    if not engines.PYTHON:
        print("skipped: the environment of the other side is missing (./dev interchange)")
        sys.exit(SKIPPED)
    unittest.main()
