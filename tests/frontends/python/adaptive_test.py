"""flashlight.adaptive: every answer is the program's, and most are compiled after a while."""

import gc
import math
import threading
import unittest

import torch

import flashlight


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = torch.nn.Linear(5, 7)
        self.norm = torch.nn.BatchNorm1d(7)
        self.dropout = torch.nn.Dropout(0.5)
        self.output = torch.nn.Linear(7, 2)

    def forward(self, x, scale=None):
        y = self.output(self.dropout(self.norm(self.hidden(x)).tanh()))
        return {"y": y if scale is None else y * scale}


class AdaptiveTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(7)
        self.model = Network().double().eval()

    def adaptive(self, program=None, **options):
        return flashlight.adaptive(self.model if program is None else program, "cpp",
                                   in_background=False, overhead=math.inf, **options)

    def assert_right(self, fast, rows, **kwargs):
        x = torch.randn(rows, 5, dtype=torch.double)
        torch.testing.assert_close(fast(x, **kwargs), self.model(x, **kwargs))

    def test_becomes_compiled(self):
        fast = self.adaptive()
        with torch.no_grad():
            for _ in range(5):
                self.assert_right(fast, 4)
        report = fast.report()
        self.assertEqual((report.calls, report.recorded, report.compiled), (5, 2, 3), report)
        self.assertIn("float64[4, 5]: 3 of 5 compiled; compiled", str(report))

    def test_mosaic_in_the_background(self):
        fast = flashlight.adaptive(self.model, overhead=math.inf)
        with torch.no_grad():
            for _ in range(6):
                self.assert_right(fast, 4)
                fast.wait()
        self.assertGreater(fast.report().compiled, 0, fast.report())

    def test_sizes_become_a_family(self):
        fast = self.adaptive(checked_sizes=1)
        with torch.no_grad():
            for rows in [4, 7, 11, 6, 6, 6, 9, 9, 9]:
                self.assert_right(fast, rows)
        report = fast.report()
        self.assertTrue(report.combinations[-1].of_family, report)
        self.assertGreater(report.compiled, 0, report)

    def test_modes_of_modules_and_other_parameters(self):
        fast = self.adaptive()
        with torch.no_grad():
            for _ in range(3):
                self.assert_right(fast, 4)
            self.model.norm.train()  # writes its statistics
            before = self.model.norm.running_mean.clone()
            fast(torch.randn(4, 5, dtype=torch.double))
            self.assertFalse(torch.equal(before, self.model.norm.running_mean))
            self.model.eval()
            self.assert_right(fast, 4)
            self.model.output = torch.nn.Linear(7, 2).double()
            for _ in range(4):
                self.assert_right(fast, 4)

    def test_under_autograd(self):
        fast = self.adaptive()
        for _ in range(4):
            x = torch.randn(4, 5, dtype=torch.double, requires_grad=True)
            weight = self.model.output.weight
            expected = torch.autograd.grad(self.model(x)["y"].square().sum(), (x, weight))
            received = torch.autograd.grad(fast(x)["y"].square().sum(), (x, weight))
            for one, other in zip(received, expected):
                torch.testing.assert_close(one, other)
        self.assertGreater(fast.report().compiled, 0, fast.report())

    def test_numbers_and_other_arguments(self):
        fast = self.adaptive()
        with torch.no_grad():
            for scale in [2.0, 3.0, 2.0, 3.0, 2.0, 3.0]:
                self.assert_right(fast, 4, scale=scale)
            self.assert_right(fast, 4, scale=torch.ones(2, dtype=torch.double))

    def test_counting_is_not_forgotten(self):
        class Counts(torch.nn.Module):
            calls = 0

            def forward(self, x):
                self.calls += 1
                return x + 1

        model = Counts()
        fast = self.adaptive(model)
        for _ in range(9):
            fast(torch.ones(3))
        self.assertEqual(model.calls, 9, fast.report())
        self.assertIn("'calls' changed", str(fast.report()))

    def test_results_that_are_no_tensors(self):
        class Opaque:
            __slots__ = ("x",)

            def __init__(self, x):
                self.x = x

        calls = []

        def program(x):
            calls.append(1)
            return Opaque(x + 1)

        fast = self.adaptive(program)
        for call in range(4):
            self.assertEqual(fast(torch.full((2,), call)).x[0], call + 1)
        self.assertEqual(len(calls), 4)
        self.assertIn("the program runs: [structure] result", str(fast.report()))

    def test_arguments_that_are_no_tensors(self):
        fast = self.adaptive(lambda stream: next(stream) + 1)
        stream = iter([torch.zeros(2), torch.ones(2)])
        self.assertEqual([float(fast(stream)[0]) for _ in range(2)], [1, 2])
        self.assertIn("2 calls", str(fast.report()))

    def test_what_the_tracer_refuses_runs(self):
        def program(x):
            return torch.ones(3).apply_(lambda v: v + 1) + x

        fast = self.adaptive(program)
        for value in range(4):
            self.assertEqual(float(fast(torch.full((3,), float(value)))[0]), 2 + value)
        self.assertEqual(fast.report().compiled, 0)

    def test_errors_are_the_programs(self):
        fast = self.adaptive()
        for _ in range(3):
            with self.assertRaisesRegex(RuntimeError, "mat1 and mat2"):
                fast(torch.ones(4, 6, dtype=torch.double))

    def test_a_branch_on_values(self):
        fast = self.adaptive(lambda x: x.sin() if x.sum() > 0 else x.cos())
        for sign in [1, 1, -1, 1, 1, -1, -1, 1]:
            x = sign * torch.rand(3)
            torch.testing.assert_close(fast(x), x.sin() if sign > 0 else x.cos())

    def test_several_threads(self):
        fast = flashlight.adaptive(self.model, "cpp", overhead=math.inf)
        wrong = []

        def work():
            with torch.no_grad():
                for rows in [3, 5, 8, 4, 4, 6] * 6:
                    x = torch.randn(rows, 5, dtype=torch.double)
                    if not torch.allclose(fast(x)["y"], self.model(x)["y"]):
                        wrong.append(rows)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        fast.wait()
        self.assertEqual(wrong, [])
        self.assertEqual(fast.report().calls, 4 * 36)

    def test_ends_while_it_compiles(self):
        fast = flashlight.adaptive(self.model, "cpp", overhead=math.inf)
        with torch.no_grad():
            for _ in range(3):
                self.assert_right(fast, 4)
        del fast
        gc.collect()


if __name__ == "__main__":
    unittest.main()
