"""Training steps under autocast in bfloat16, on the CPU: replayed with eager's bits, compiled so that losses follow."""

import copy
import inspect
import os
import unittest

os.environ.pop("FLASHLIGHT_SEEN_ONCE", None)  # other tests switch looks off

import torch
from torch import nn

import flashlight

BATCH, TOKENS, WIDTH, CLASSES = 4, 16, 64, 10


class Encoder(nn.Module):
    """Two layers of BERT."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, 0.0, "gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, ids):
        return self.head(self.layers(self.embedding(ids)).mean(1))


def perceptron():
    return nn.Sequential(nn.Embedding(50, WIDTH), nn.Flatten(), nn.Linear(TOKENS * WIDTH, 96), nn.GELU(),
                         nn.LayerNorm(96), nn.Linear(96, CLASSES))


def image_network():
    return nn.Sequential(nn.Embedding(50, WIDTH), nn.Unflatten(1, (4, 4)), nn.Conv2d(4, 8, 3, padding=1), nn.ReLU(),
                         nn.BatchNorm2d(8), nn.Conv2d(8, 8, 3, stride=2), nn.GroupNorm(2, 8), nn.ReLU(), nn.Flatten(),
                         nn.LazyLinear(CLASSES))


def batches(count, seed=1):
    """What there is to learn: which of the classes' tokens is there most often."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(count):
        target = torch.randint(0, CLASSES, (BATCH,), generator=generator)
        ids = torch.randint(0, 50, (BATCH, TOKENS), generator=generator)
        ids[:, ::3] = target[:, None]
        yield ids, target


class Training:
    """A model, and a step that trains it: lowered by autocast, with or without a scaler of the loss."""

    def __init__(self, model, scaled=False, optimizer=None, dtype=torch.bfloat16):
        self.model = model
        self.optimizer = (optimizer or (lambda p: torch.optim.SGD(p, 0.01, momentum=0.9)))(model.parameters())
        self.scaler = torch.amp.GradScaler("cpu", init_scale=256.0, growth_interval=5, enabled=scaled)
        self.dtype = dtype

    def step(self, ids, target):
        self.optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=self.dtype == torch.bfloat16):
            loss = nn.functional.cross_entropy(self.model(ids), target)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.detach()

    def run(self, count):
        return torch.stack([self.step(*batch).double() for batch in batches(count)])


def seeded(make):
    torch.manual_seed(7)
    model = make()
    model(next(batches(1))[0])  # lazy layers
    return model


def captured(training):
    """After two steps, as momenta are there from the second one on; and confirmed by the third."""
    examples = list(batches(3, seed=9))
    for batch in examples[:2]:
        training.step(*batch)
    capture = flashlight.trace(training.step, *examples[2])
    return capture, list(batches(1, seed=11))[0]


class AutocastTest(unittest.TestCase):

    def twins(self, make, **options):
        """A capture, and an eager training in the same state."""
        training = Training(seeded(make), **options)
        capture, batch = captured(training)
        eager = Training(seeded(make), **options)
        captured(eager)
        # A look that finds another way than the first run took is followed by others; one that finds a difference
        # makes the next call say which.
        for _ in range(4):
            self.assertTrue(torch.equal(capture(*batch), eager.step(*batch)))
            if capture.trust != "seen once":
                break
        self.assertEqual(capture.trust, "confirmed")
        return training, capture, eager

    def test_replays_have_eagers_bits(self):
        for make in (perceptron, Encoder, image_network):
            for scaled in (False, True):
                with self.subTest(make=make.__name__, scaled=scaled):
                    training, capture, eager = self.twins(make, scaled=scaled)
                    for batch in batches(12):
                        self.assertTrue(torch.equal(capture(*batch), eager.step(*batch)))
                    for ours, theirs in zip(training.model.parameters(), eager.model.parameters()):
                        self.assertTrue(torch.equal(ours, theirs))
                    self.assertEqual(training.scaler.get_scale(), eager.scaler.get_scale())
                    self.assertEqual(training.scaler.state_dict(), eager.scaler.state_dict())

    def test_compiled_losses_follow_those_of_eager(self):
        """Over 200 steps: as far from a training in float64 as eager's bfloat16 is, or nearer."""
        for make, scaled in ((perceptron, False), (Encoder, False), (Encoder, True), (image_network, True)):
            with self.subTest(make=make.__name__, scaled=scaled):
                training, capture, eager = self.twins(make, scaled=scaled)
                exact = Training(copy.deepcopy(eager.model).double(), dtype=torch.float64)
                for ours, theirs in zip(exact.model.parameters(), eager.model.parameters()):
                    momentum = eager.optimizer.state[theirs]["momentum_buffer"]
                    exact.optimizer.state[ours]["momentum_buffer"] = momentum.double()
                fast = capture.compile("mosaic", threads=1)
                compiled = torch.stack([fast(*batch).double() for batch in batches(200)])
                of_eager, of_exact = eager.run(200), exact.run(200)
                rms = lambda x: x.square().mean().sqrt().item()
                self.assertLess(compiled[-20:].mean(), 0.5 * compiled[:20].mean())  # it learns
                self.assertLess(rms(compiled - of_exact), 1.5 * rms(of_eager - of_exact))
                for parameter in training.model.parameters():
                    self.assertEqual(parameter.dtype, torch.float32)
                self.assertFalse(all(torch.equal(p, p.bfloat16().float()) for p in training.model.parameters()))
                self.assertEqual(training.scaler.state_dict(), eager.scaler.state_dict())

    def test_compiled_steps_write_what_eager_writes(self):
        training, capture, eager = self.twins(perceptron, scaled=True)
        before = [p.detach().clone() for p in eager.model.parameters()]
        fast = capture.compile("mosaic", threads=1)
        batch = next(batches(1))
        loss = fast(*batch)
        torch.testing.assert_close(loss, eager.step(*batch), rtol=2e-2, atol=0)
        for ours, theirs, old in zip(training.model.parameters(), eager.model.parameters(), before):
            change = (theirs - old).norm()
            self.assertGreater(change, 0)
            self.assertLess((ours - theirs).norm(), 0.02 * change)  # eager's gradients are rounded to 8 bits

    def test_steps_that_overflow_are_refused_with_nothing_written(self):
        """Eager leaves such a step out, which is another path of the program."""
        training, capture, _ = self.twins(perceptron, scaled=True)
        fast = capture.compile("mosaic", threads=1)
        batch = next(batches(1))
        fast(*batch)  # it works
        with torch.no_grad():
            training.model[2].bias[0] = torch.inf
        before = [p.detach().clone() for p in training.model.parameters()]
        state = training.scaler.state_dict()
        for run in (fast, capture):
            with self.assertRaisesRegex(flashlight.Error, "guard: aten::(item|_local_scalar_dense).* gave "):
                run(*batch)
            for parameter, old in zip(training.model.parameters(), before):
                self.assertTrue(torch.equal(parameter, old))
            self.assertEqual(training.scaler.state_dict(), state)

    def test_adam(self):
        """Its step count is a number of a family; sizes of batches may differ."""
        make = lambda p: torch.optim.AdamW(p, 2e-3)
        line = 1 + inspect.getsourcelines(Training.step)[1] + next(
            i for i, text in enumerate(inspect.getsourcelines(Training.step)[0]) if "scaler.step" in text) - 1
        trainings = [Training(seeded(perceptron), optimizer=make) for _ in range(2)]
        sized = [(ids[:n], target[:n]) for n, (ids, target) in zip((4, 3, 2, 4), batches(4, seed=9))]
        for training in trainings:
            training.step(*sized[0])
        family = flashlight.trace_family(trainings[0].step, iter(sized[1:]),
                                         predicates={f"autocast_test.py:{line}": "any"})
        for batch in sized[1:]:
            trainings[1].step(*batch)
        for batch in batches(8):
            self.assertTrue(torch.equal(family(*batch), trainings[1].step(*batch)))
        fast = family.compile("mosaic", threads=1)
        losses = [(fast(*batch), trainings[1].step(*batch)) for batch in batches(60, seed=3)]
        ours, theirs = map(torch.stack, zip(*losses))
        self.assertLess((ours - theirs).abs().max(), 0.05 * theirs.max())
        self.assertLess(theirs[-10:].mean(), 0.7 * theirs[:10].mean())


if __name__ == "__main__":
    unittest.main()
