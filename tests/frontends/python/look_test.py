"""A capture is trusted when it was seen twice: calls in Python, compared with a twin that runs
eagerly from the same seed."""

import gc
import os
import pathlib
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
os.environ.pop("FLASHLIGHT_SEEN_ONCE", None)  # other tests switch looks off

import torch

import flashlight
from agreement import same_bits
from flashlight import _flashlight


class Recurrent(torch.nn.Module):
    """Keeps its state as an attribute, or as a buffer that it puts another tensor in place of."""

    def __init__(self, buffer: bool):
        super().__init__()
        self.fc = torch.nn.Linear(3, 3)
        h = torch.zeros(2, 3)
        if buffer:
            self.register_buffer("h", h)
        else:
            self.h = h

    def forward(self, x):
        self.h = torch.tanh(self.fc(x) + self.h).detach()
        return self.h


def twins(make):
    made = []
    for _ in range(2):
        torch.manual_seed(0)
        made.append(make())
    return made


def training(make_optimizer):
    model = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1))
    optimizer = make_optimizer(model.parameters())

    def step(x):
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return model, step


class LookTest(unittest.TestCase):
    def expect_training(self, make_optimizer, confirmed):
        (model, eager), (traced, step) = twins(lambda: training(make_optimizer))
        batches = [torch.randn(8, 4) for _ in range(30)]
        captured = flashlight.trace(step, batches[0])
        eager(batches[0])
        for batch in batches[1:]:
            self.assertTrue(same_bits(captured(batch), eager(batch)))
            for ours, theirs in zip(traced.parameters(), model.parameters()):
                self.assertTrue(same_bits(ours, theirs))
        self.assertEqual(captured.trust, "confirmed" if confirmed else "seen once")

    def test_optimizers_from_their_first_step(self):
        optim = torch.optim
        self.expect_training(lambda p: optim.SGD(p, 0.1, momentum=0.9), True)
        self.expect_training(lambda p: optim.RMSprop(p, 0.01), True)
        # Its step count is asked of a tensor, and followed to what is made of it.
        self.expect_training(lambda p: optim.Adam(p, 0.01), True)
        # It compares its count, which stays a guard that differs: the program runs in each call.
        self.expect_training(lambda p: optim.RAdam(p, 0.01), False)

    def test_state_of_a_module(self):
        for buffer in (False, True):
            eager, traced = twins(lambda: Recurrent(buffer))
            x = torch.randn(2, 3)
            captured = flashlight.trace(traced, x)
            eager(x)
            kept = []
            for _ in range(20):
                x = torch.randn(2, 3)
                kept.append((captured(x), eager(x).clone()))
                self.assertTrue(same_bits(*kept[-1]))
                self.assertTrue(same_bits(traced.h, eager.h))
            self.assertTrue(all(same_bits(*pair) for pair in kept))
            self.assertEqual(captured.trust, "confirmed")
            traced.h = torch.zeros(2, 3)
            gc.collect()
            with self.assertRaisesRegex(flashlight.Error, "another tensor|was replaced"):
                captured(x)

    def test_what_ends_ends_as_it_is(self):
        lines = iter([1.0, 1.0])
        captured = flashlight.trace(lambda x: x * next(lines), torch.ones(2))
        captured(torch.ones(2))
        with self.assertRaises(StopIteration) as raised:
            captured(torch.ones(2))
        self.assertIn("second look", raised.exception.__notes__[0])

    def test_by_name(self):
        runs = []

        def program(x):
            runs.append(x)
            return x * 2

        once = flashlight.trace(program, torch.ones(2), flashlight.seen_once)
        self.assertTrue(same_bits(once(torch.zeros(2)), torch.zeros(2)))
        self.assertEqual(len(runs), 1)
        twice = flashlight.trace(program, torch.ones(2), flashlight.confirm(torch.zeros(2)))
        self.assertEqual((len(runs), twice.trust), (3, "confirmed"))
        self.assertTrue(same_bits(twice(torch.full((2,), 3.0)), torch.full((2,), 6.0)))
        self.assertEqual(len(runs), 3)

    def test_confirm_raises_what_differs(self):
        memory = torch.zeros(1).numpy()

        def program(x):
            memory[0] += 1
            return x * torch.from_numpy(memory)

        with self.assertRaisesRegex(flashlight.Error, "no operator"):
            flashlight.trace(program, torch.ones(2), flashlight.confirm(torch.zeros(2)))

    def test_only_calls_run_the_program(self):
        runs = []

        def program(x):
            runs.append(1)
            return (x * 2).sum()

        captured = flashlight.trace(program, torch.ones(2))
        captured.replay(torch.zeros(2))
        captured.grad(wrt=["input_0"])
        captured.evaluate(torch.zeros(2))
        with tempfile.TemporaryDirectory() as folder:
            captured.save(folder + "/capture")
            self.assertIn("seen once", flashlight.load(folder + "/capture").assumptions())
        self.assertEqual(len(runs), 1)
        self.assertIn("seen once", captured.assumptions())

    def test_threads_wait_without_the_lock(self):
        model = torch.nn.Linear(3, 2)
        captured = flashlight.trace(model, torch.ones(1, 3))
        looks = _flashlight.looks_taken()
        equal = []

        def call(i):
            # No thread shows the example's ones again: equal inputs would need a second look.
            x = torch.full((1, 3), float(i + 2))
            equal.append(same_bits(captured(x), model(x).detach()))

        threads = [threading.Thread(target=call, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(equal, [True] * 4)
        self.assertEqual(_flashlight.looks_taken() - looks, 1)

    def test_a_program_that_calls_its_own_capture(self):
        def program(x):
            return x + 1 if x.shape[0] == 1 else captured_or_self(x[:1]) * x

        def captured_or_self(x):
            return inner(x) if inner else program(x)

        inner = None
        captured = flashlight.trace(program, torch.ones(2))
        inner = captured
        self.assertTrue(same_bits(captured(torch.full((2,), 3.0)), torch.full((2,), 12.0)))

    def test_counters_of_modules_are_named(self):
        class Counting(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.calls = 0

            def forward(self, x):
                self.calls += 1
                return x * 2

        captured = flashlight.trace(Counting(), torch.ones(2))
        self.assertTrue(any("'calls'" in line for line in captured.assumptions()))


if __name__ == "__main__":
    unittest.main()
