"""What a program changes around it, and what it runs out of."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import no_looks  # before flashlight
import torch

import flashlight
from agreement import same_bits


class AroundTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(2)
        self.x, self.y = torch.randn(4, 3), torch.randn(4, 3)


class Iterators(AroundTest):
    def test_an_iterator_that_ends(self):
        batches = iter([self.x])

        def program(x):
            return x + next(batches)

        captured = flashlight.trace(program, self.y)
        self.assertTrue(same_bits(captured(self.y), self.y + self.x))
        with self.assertRaises(StopIteration):
            flashlight.trace(program, self.y)

    def test_a_generator_is_no_result(self):
        def program(x):
            yield x * 2

        with self.assertRaisesRegex(flashlight.Error, "result is a builtins.generator"):
            flashlight.trace(program, self.x)
        self.assertTrue(same_bits(flashlight.trace(lambda x: list(program(x)), self.x)(self.y),
                                  [self.y * 2]))


class Attributes(AroundTest):
    def test_changes_are_named(self):
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = torch.nn.Linear(3, 3)
                self.inner.step = 0
                self.register_buffer("mean", torch.zeros(3))
                self.register_buffer("counted", torch.zeros(3))
                self.h = torch.zeros(4, 3)
                self.cache, self.seen, self.same = [], {"a": 1}, [torch.ones(2)]
                self.last = None

            def forward(self, x):
                y = self.inner(x)
                self.inner.step += 1
                self.h = torch.tanh(y + self.h)
                self.mean = y.mean(0)
                self.counted.add_(1)
                self.cache.append(y)
                self.seen["a"] = 2
                self.last = y
                self.inner.eval()
                return self.h

        captured = flashlight.trace(Net(), self.x)
        changes = {(c.path, c.attribute): c for c in captured._program.changes}
        self.assertEqual({key: change.kind for key, change in changes.items()}, {
            ("inner", "step"): "number changed", ("inner", "training"): "number changed",
            ("", "h"): "tensor rebound", ("", "mean"): "tensor rebound",
            ("", "cache"): "container changed", ("", "seen"): "container changed",
            ("", "last"): "tensor rebound"})
        self.assertEqual((changes["inner", "step"].before, changes["inner", "step"].after), ("0", "1"))
        self.assertEqual(changes["", "mean"].after, "float32 [3]")
        self.assertRegex(str(changes["", "cache"]), "'cache' changed: it was a list of 0 and is a list "
                                                    "of 1 with 1 tensors")

    def test_variables_around_a_function(self):
        h, step, model = torch.zeros(4, 3), 0, torch.nn.Linear(3, 3)

        def program(x):
            nonlocal h, step
            step += 1
            h = torch.tanh(model(x) + h)
            return h

        captured = flashlight.trace(program, self.x)
        self.assertEqual({(c.path, c.attribute, c.kind) for c in captured._program.changes},
                         {(None, "h", "tensor rebound"), (None, "step", "number changed")})

        class Trainer:
            def __init__(self):
                self.steps = 0

            def run(self, x):
                self.steps += 1
                return x * 2

        captured = flashlight.trace(Trainer().run, self.x)
        (change,) = captured._program.changes
        self.assertEqual((change.attribute, change.before, change.after), ("steps", "0", "1"))

    def test_nothing_changed(self):
        model = torch.nn.Sequential(torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 3))
        self.assertEqual(flashlight.trace(model, self.x)._program.changes, [])


if __name__ == "__main__":
    no_looks.main()
