"""Errors of compiled code against float64; tests/flashlight/check_compiled_test.cpp has more of the numbers."""

import copy
import unittest

import no_looks  # before flashlight
import torch

import flashlight


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))


class CheckCompiledTest(unittest.TestCase):

    def test_products_in_bfloat16(self):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(32, 48), torch.nn.Tanh(), torch.nn.Linear(48, 40))
        x = torch.randn(35, 32)
        with torch.no_grad():
            captured = flashlight.trace(model, torch.randn(35, 32))
            report = captured.check_compiled(x, options={"products": "bfloat16", "threads": 1})
            exact = copy.deepcopy(model).double()(x.double())
            compiled = captured.compile("mosaic", products="bfloat16", threads=1)
            rms = lambda y: ((y - exact).square().mean().sqrt() / exact.std(correction=0)).item()
            self.assertAlmostEqual(report.results[0].compiled.rms, rms(compiled(x)), delta=1e-9)
            self.assertAlmostEqual(report.results[0].eager.rms, rms(model(x)), delta=1e-9)
            self.assertEqual((report.lowered, report.products), (2, 2))
            lines = report.choices(1)
            better = captured.compile("mosaic", products="bfloat16", threads=1, choices="\n".join(lines))
            self.assertLess(rms(better(x)), 0.9 * rms(compiled(x)))
        costs = [value.alone.rms for value in report.values if value.lowered]
        self.assertEqual(costs, sorted(costs, reverse=True))
        self.assertTrue(report)
        self.assertIn(lines[0], str(report))

    def test_every_node_of_a_program_in_bfloat16(self):
        with torch.no_grad():
            model = network().bfloat16()
            captured = flashlight.trace(model, torch.randn(5, 3).bfloat16())
            report = captured.check_compiled(every_node=True, options={"threads": 1})
        self.assertEqual(report.error, "")
        self.assertEqual(len(report.values), report.nodes)
        self.assertTrue(report)

    def test_options_that_are_not(self):
        captured = flashlight.trace(network(), torch.randn(5, 3))
        with self.assertRaisesRegex(flashlight.Error, "product_of"):
            captured.check_compiled(options={"product_of": "bfloat16"})
        with self.assertRaisesRegex(flashlight.Error, "nobody"):
            captured.check_compiled(backend="nobody")


if __name__ == "__main__":
    no_looks.main()
