"""Training steps with torch's optimizers, captured after two steps: replayed they have the bits of a
twin that trains eagerly, compiled they come as close as float32 does, and either goes on from there."""

import math
import os
import pathlib
import pickle
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
os.environ.pop("FLASHLIGHT_SEEN_ONCE", None)  # other tests switch looks off

import torch
from torch import nn, optim

import flashlight
from agreement import same_bits


def perceptron():
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 1)), (6, 4)


def convolutions():
    return nn.Sequential(nn.Conv2d(2, 3, 3, bias=False), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(),
                         nn.Linear(48, 2)), (3, 2, 6, 6)


def transformer():
    # Attention does not depend on the bias of its keys, whose gradient is rounding, which Adam follows.
    return nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True, bias=False), (2, 5, 8)


class Training:
    """A model, its optimizer, and a step as people write it."""

    def __init__(self, make_model, make_optimizer, clip=None, parts=1):
        torch.manual_seed(0)
        self.model, self.sizes = make_model()
        self.optimizer = make_optimizer(self.model.parameters())
        self.clip, self.parts = clip, parts
        for x in self.batches(2, seed=5):
            self.step(x)

    def step(self, x):
        self.optimizer.zero_grad()
        for part in x.chunk(self.parts):  # gradients are accumulated
            # Squares alone are the same for all that a LayerNorm gives: Adam would follow rounding.
            loss = self.model(part).tanh().square().mean() / self.parts
            loss.backward()
        if self.clip is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.optimizer.step()
        return loss.detach()

    def batches(self, count, seed):
        generator = torch.Generator().manual_seed(seed)
        return [torch.randn(self.sizes, generator=generator) for _ in range(count)]

    def state(self):
        """All that a step writes: parameters, buffers, the optimizer's state with its step counts."""
        states = self.optimizer.state_dict()["state"].values()
        return ([tensor.detach() for tensor in self.model.state_dict().values()]
                + [value for state in states for value in state.values()
                   if isinstance(value, torch.Tensor)])

    def take(self, other):
        with torch.no_grad():
            for mine, its in zip(self.state(), other.state(), strict=True):
                mine.copy_(its)


FOLLOWED = {
    "adam": lambda p: optim.Adam(p, 0.01),
    "adamw": lambda p: optim.AdamW(p, 0.01),
    "amsgrad": lambda p: optim.Adam(p, 0.01, amsgrad=True),
    "rate in a tensor": lambda p: optim.AdamW(p, torch.tensor(0.01)),
    "nadam": lambda p: optim.NAdam(p, 0.01),
    "adamax": lambda p: optim.Adamax(p, 0.01),
    "adagrad": lambda p: optim.Adagrad(p, 0.01),
    "adagrad with decay": lambda p: optim.Adagrad(p, 0.1, lr_decay=0.1),
    "adam foreach": lambda p: optim.Adam(p, 0.01, foreach=True),
    "adamax foreach": lambda p: optim.Adamax(p, 0.01, foreach=True),
}
WITHOUT_READS = {
    "sgd": lambda p: optim.SGD(p, 0.05, momentum=0.9, nesterov=True),
    "rmsprop": lambda p: optim.RMSprop(p, 0.01, momentum=0.5, centered=True),
    "adadelta": lambda p: optim.Adadelta(p, 0.5),
    "sgd foreach": lambda p: optim.SGD(p, 0.05, momentum=0.9, foreach=True),
}
FUSED = {"adam fused": lambda p: optim.Adam(p, 0.01, fused=True),
         "sgd fused": lambda p: optim.SGD(p, 0.05, momentum=0.9, fused=True)}


class TrainingTest(unittest.TestCase):
    def expect_replays(self, *arguments, **named):
        """Confirms the capture of a step, and follows it for 24 steps; the twins and the capture."""
        eager, traced = Training(*arguments, **named), Training(*arguments, **named)
        first, *batches = eager.batches(28, seed=7)
        eager.step(first)
        captured = flashlight.trace(traced.step, first)
        for i, x in enumerate(batches):
            self.assertTrue(same_bits(captured(x), eager.step(x)), i)
            self.assertTrue(same_bits(traced.state(), eager.state()), i)
            if i == 3:
                self.assertEqual(captured.trust, "confirmed", captured.refusal)
        return eager, traced, captured

    def expect_goes_on(self, eager, traced):
        """A step without the capture has the eager step's bits; so has one after a state_dict."""
        x, y = eager.batches(2, seed=9)
        self.assertTrue(same_bits(traced.step(x), eager.step(x)))
        traced.optimizer.load_state_dict(pickle.loads(pickle.dumps(traced.optimizer.state_dict())))
        self.assertTrue(same_bits(traced.step(y), eager.step(y)))
        self.assertTrue(same_bits(traced.state(), eager.state()))

    def expect_compiled(self, eager, traced, captured, backends=("cpp", "mosaic")):
        for backend in backends:
            fast = captured.compile(backend)
            for x in eager.batches(5, seed=11):
                torch.testing.assert_close(fast(x), eager.step(x), rtol=1e-4, atol=1e-5)
            for mine, its in zip(traced.state(), eager.state()):
                torch.testing.assert_close(mine, its, rtol=1e-3, atol=1e-5)
            traced.take(eager)

    def test_optimizers(self):
        for name, make in (FOLLOWED | WITHOUT_READS).items():
            with self.subTest(name):
                eager, traced, captured = self.expect_replays(perceptron, make)
                self.expect_compiled(eager, traced, captured,
                                     ("mosaic",) if "foreach" in name else ("cpp", "mosaic"))
                self.expect_goes_on(eager, traced)

    def test_fused_optimizers_replay(self):
        for name, make in FUSED.items():
            with self.subTest(name):
                eager, traced, captured = self.expect_replays(perceptron, make)
                with self.assertRaisesRegex(flashlight.Error, "no code for 'aten::_fused"):
                    captured.compile("mosaic")
                self.expect_goes_on(eager, traced)

    def test_models(self):
        for model in (convolutions, transformer):
            with self.subTest(model.__name__):
                eager, traced, captured = self.expect_replays(model, FOLLOWED["adamw"], clip=0.05)
                self.expect_compiled(eager, traced, captured, ("mosaic",))
                self.expect_goes_on(eager, traced)

    def test_accumulated_gradients(self):
        eager, traced, _ = self.expect_replays(perceptron, FOLLOWED["adam"], parts=2)
        self.expect_goes_on(eager, traced)

    def test_a_rate_under_a_schedule(self):
        """The rate is an argument, a tensor that the program gives to its optimizer."""
        def make():
            training = Training(perceptron, FOLLOWED["adamw"])

            def step(x, rate):
                training.optimizer.param_groups[0]["lr"] = rate
                return training.step(x)

            return training, step

        (eager, eager_step), (traced, step) = make(), make()
        batches = eager.batches(28, seed=7)
        rates = [torch.tensor(0.01 * 0.9**i) for i in range(28)]
        captured = flashlight.trace(step, batches[0], rates[0])
        eager_step(batches[0], rates[0])
        for x, rate in zip(batches[1:], rates[1:]):
            self.assertTrue(same_bits(captured(x, rate), eager_step(x, rate)))
            self.assertTrue(same_bits(traced.state(), eager.state()))
        self.assertEqual(captured.trust, "confirmed")
        fast = captured.compile("mosaic")
        for x, rate in zip(batches, rates):
            torch.testing.assert_close(fast(x, rate), eager_step(x, rate), rtol=1e-4, atol=1e-5)

    def test_a_rate_that_changes_late(self):
        """A rate that is a number is a constant of the capture: another one is refused."""
        for make in (FOLLOWED["adam"], WITHOUT_READS["sgd"]):
            eager, traced, captured = self.expect_replays(perceptron, make)
            for one in (eager, traced):
                one.optimizer.param_groups[0]["lr"] = 0.001
            x = eager.batches(1, seed=9)[0]
            with self.assertRaisesRegex(flashlight.Error, "'lr' of its optimizer was .* and is 0.001"):
                captured(x)
            self.expect_goes_on(eager, traced)

    def test_a_scheduler_inside(self):
        """Its rate changes after more runs than a capture compares."""
        training = Training(perceptron, FOLLOWED["adam"])
        scheduler = torch.optim.lr_scheduler.StepLR(training.optimizer, 30)
        batches = training.batches(2, seed=7)

        def step(x):
            loss = training.step(x)
            scheduler.step()
            return loss
        with self.assertRaisesRegex(flashlight.Error, "steps a scheduler of rates .StepLR."):
            flashlight.trace(step, batches[0])
        # An adaptive program goes on as it is.
        adaptive = flashlight.adaptive(step)
        epoch = scheduler.last_epoch
        for _ in range(4):
            adaptive(batches[1])
        self.assertEqual(scheduler.last_epoch, epoch + 4)

    def test_the_example(self):
        example = pathlib.Path(__file__).resolve().parents[3] / "examples/python/train_adam.py"
        run = subprocess.run([sys.executable, example, "100"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("follows from what the program reads", run.stdout)
        self.assertIn("203 steps", run.stdout)

    def test_counts_that_differ(self):
        """Each parameter has a count of its own."""
        twins = [Training(perceptron, FOLLOWED["adam"]) for _ in range(2)]
        for one in twins:
            for i, state in enumerate(one.optimizer.state.values()):
                state["step"] += 3 * i
        eager, traced = twins
        captured = flashlight.trace(traced.step, eager.batches(1, seed=7)[0])
        eager.step(eager.batches(1, seed=7)[0])
        for x in eager.batches(20, seed=8):
            self.assertTrue(same_bits(captured(x), eager.step(x)))
            self.assertTrue(same_bits(traced.state(), eager.state()))
        self.assertEqual(captured.trust, "confirmed")

    def test_bias_corrections_that_have_become_one(self):
        """After some hundred steps 1 - 0.9^n is 1.0, as other numbers of the step are; after some
        ten thousand, 1 - 0.999^n stays for several steps, and changes then."""
        for steps in (800, 29_990, 33_000):
            twins = [Training(perceptron, FOLLOWED["adam"]) for _ in range(2)]
            for one in twins:
                for state in one.optimizer.state.values():
                    state["step"].fill_(steps)
            eager, traced = twins
            captured = flashlight.trace(traced.step, eager.batches(1, seed=7)[0])
            eager.step(eager.batches(1, seed=7)[0])
            for x in eager.batches(60, seed=8):
                self.assertTrue(same_bits(captured(x), eager.step(x)))
                self.assertTrue(same_bits(traced.state(), eager.state()))
            self.assertEqual(captured.trust, "confirmed")


class NumbersTest(unittest.TestCase):
    """A read of which the program makes more than numbers for operators stays a guard: then the
    program runs in each call, which has its bits and its effects."""

    def expect_runs(self, use, confirmed=False):
        """`use` of a count's number and of the argument, in each call of a program."""
        def make():
            count, seen = torch.zeros(()), []

            def program(x):
                count.add_(1)
                return use(count.item(), x, seen)

            return program, count, seen

        (eager, eager_count, eager_seen), (program, count, seen) = make(), make()
        x = torch.randn(3, generator=torch.Generator().manual_seed(1))
        captured = flashlight.trace(program, x)
        eager(x)
        for i in range(20):
            self.assertTrue(same_bits(captured(x + i), eager(x + i)), i)
            self.assertTrue(same_bits(count, eager_count))
        self.assertEqual(seen, eager_seen)
        self.assertEqual(captured.trust == "confirmed", confirmed)
        return captured

    def test_arithmetic_is_followed(self):
        self.expect_runs(lambda n, x, _: x * (2 - 0.5**n) / (n + 1) - (-n), confirmed=True)
        self.expect_runs(lambda n, x, _: x.add(x, alpha=(1 - 0.9**n) ** 0.5), confirmed=True)

    def test_comparisons(self):
        self.expect_runs(lambda n, x, _: x * n if n < 9 else x - n)
        self.expect_runs(lambda n, x, _: x * (1 - 0.9**n) if 1 - 0.9**n < 0.8 else x)
        self.expect_runs(lambda n, x, _: x * n if int(n) % 9 else x)
        self.expect_runs(lambda n, x, _: x * max(n, 9.0))
        self.expect_runs(lambda n, x, _: x * n if n - 9 else x)

    def test_functions_of_math(self):
        """A root goes on as a formula. What other functions give decides, or is another number each time."""
        self.expect_runs(lambda n, x, _: x * (1 / math.sqrt(n)), confirmed=True)
        self.expect_runs(lambda n, x, _: x * n if math.log(n) < 2 else x - n)
        self.expect_runs(lambda n, x, _: x * n if math.isclose(n, 12) else x)

    def test_numbers_that_are_kept(self):
        self.expect_runs(lambda n, x, seen: seen.append(n) or x * n)
        self.expect_runs(lambda n, x, seen: seen.append(f"{n:.1f}") or x * n)
        self.expect_runs(lambda n, x, seen: seen.append(1 / n) or x * n)

    def test_what_two_numbers_decide(self):
        """One of two reads is compared: what is made of both is fixed, and so is the other."""
        a, b = torch.zeros(()), torch.zeros(())

        def program(x):
            a.add_(1), b.add_(1)
            n, m = a.item(), b.item()
            return x * (n / (m + 1)) * m if n < 9 else x * m

        x = torch.ones(3)
        captured = flashlight.trace(program, x)
        for i in range(2, 20):
            expected = (x * (i / (i + 1)) * i) if i < 9 else x * i
            self.assertTrue(same_bits(captured(x), expected), i)

    def test_radam_runs_in_each_call(self):
        """Its formula is another one from its sixth step on, which it decides by its count."""
        make = lambda p: optim.RAdam(p, 0.01)
        eager, traced = Training(perceptron, make), Training(perceptron, make)
        captured = flashlight.trace(traced.step, eager.batches(1, seed=7)[0])
        eager.step(eager.batches(1, seed=7)[0])
        for x in eager.batches(20, seed=8):
            self.assertTrue(same_bits(captured(x), eager.step(x)))
            self.assertTrue(same_bits(traced.state(), eager.state()))
        self.assertEqual(captured.trust, "seen once")

    def test_a_division_by_zero_is_refused(self):
        x = torch.ones(2)
        captured = flashlight.trace(lambda x, y: x * (1 / y.item()), x, torch.tensor(1.0))
        for i in range(2, 8):
            self.assertTrue(same_bits(captured(x, torch.tensor(float(i))), x * (1 / i)))
        self.assertEqual(captured.trust, "confirmed")
        with self.assertRaisesRegex(flashlight.Error, "not finite for what is read now"):
            captured(x, torch.tensor(0.0))

    def test_saved_and_differentiated(self):
        training = Training(perceptron, FOLLOWED["adam"])
        captured = flashlight.trace(training.step, training.batches(1, seed=7)[0])
        for x in training.batches(5, seed=8):
            captured(x)
        with self.assertRaisesRegex(flashlight.Error, "number that follows from what it reads"):
            captured.save(os.devnull + "/adam")
        self.assertTrue(any("follows from what the program reads" in line
                            for line in captured.assumptions()), captured.assumptions())


if __name__ == "__main__":
    unittest.main()
