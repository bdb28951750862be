"""Models of transformers and diffusers at small widths, and MiniLM as it was published: captured,
replayed, checked, differentiated, compiled by both backends. Full size: `./dev bench python`."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[2] / "examples/models")]

import no_looks  # before flashlight
import torch

import flashlight
import originals
from agreement import TIMES, exactly, leaves, loss_of, numbers, same_bits, times_further

BACKENDS = ("cpp", "mosaic")
QUICKLY = ["-O1"]  # is compiled, and run for longer


class ModelTest:
    """The same for every model: see the classes below."""

    def setUp(self):
        torch.manual_seed(0)
        self.original = originals.ALL[self.name](small=True)
        self.arguments, self.keywords = self.original.inputs(1)
        self.others, self.other_keywords = self.original.inputs(2)

    def trace(self):
        with torch.no_grad():
            return flashlight.trace(self.original.call, *self.arguments, **self.keywords)

    @torch.no_grad()
    def test_replay_gives_the_same_bits(self):
        captured = self.trace()
        for arguments, keywords in ((self.arguments, self.keywords),
                                    (self.others, self.other_keywords)):
            expected = self.original.call(*arguments, **keywords)
            received = captured(*arguments, **keywords)
            self.assertIs(type(received), type(expected))
            self.assertTrue(same_bits(received, expected))

    def test_check_agrees(self):
        report = self.trace().check(*self.others, **self.other_keywords)
        self.assertTrue(report, str(report))
        self.assertGreater(report.compared, 20)

    def test_nodes_know_module_and_line(self):
        """All that compute; what the program only looks at may stand outside of modules."""
        nodes = [n for n in self.trace().graph.nodes if n.op.startswith("aten::")]
        for node in nodes:
            self.assertRegex(node.annotations.get("source", ""), r"^\w+\.py:\d+ in \w+", node.op)
        scopes = {node.annotations["scope"].removeprefix("model.")  # of one around a function
                  for node in nodes if "scope" in node.annotations}
        modules = {name for name, _ in self.original.model.named_modules()}
        self.assertLessEqual(scopes, modules)
        self.assertGreater(len(scopes), 8)

    def test_gradient_agrees_with_autograd(self):
        loss = loss_of(self.original.call)
        captured = flashlight.trace(loss, *self.arguments, **self.keywords)
        report = captured.check_grad(*self.others, **self.other_keywords)
        self.assertTrue(report, str(report))
        self.assertGreater(len(captured.grad().names), 10)

    @torch.no_grad()
    def test_compiled_is_as_close_to_float64_as_torch(self):
        captured = self.trace()
        call, others, keywords = self.original.call, self.others, self.other_keywords
        exact = numbers(exactly(self.original.model, call, others, keywords))
        torchs = numbers(call(*others, **keywords))
        for backend in BACKENDS:
            with self.subTest(backend=backend):
                compiled = captured.compile(backend, flags=QUICKLY)
                received = compiled(*others, **keywords)
                self.assertIs(type(received), type(call(*others, **keywords)))
                self.assertLessEqual(times_further(numbers(received), torchs, exact), TIMES)

    def test_compiled_gradient_is_as_close_to_float64_as_torch(self):
        loss = loss_of(self.original.call)
        gradient = flashlight.trace(loss, *self.arguments, **self.keywords).grad()
        names = [name.removeprefix("model.") for name in gradient.names]

        def autograd(*arguments, **keywords):
            parameters = dict(self.original.model.named_parameters())
            return torch.autograd.grad(loss(*arguments, **keywords), [parameters[n] for n in names])

        exact = exactly(self.original.model, autograd, self.others, self.other_keywords)
        torchs = autograd(*self.others, **self.other_keywords)
        for backend in BACKENDS:
            with self.subTest(backend=backend):
                compiled = gradient.compile(backend, flags=QUICKLY)
                _, received = compiled(*self.others, **self.other_keywords)
                further = times_further(list(received.values()), torchs, exact)
                self.assertLessEqual(further, TIMES)


class Bert(ModelTest, unittest.TestCase):
    name = "bert"

    def test_dropout_draws_what_torch_draws(self):
        self.original.model.train()
        captured = self.trace()
        with torch.no_grad():
            torch.manual_seed(7)
            expected = self.original.call(*self.others, **self.other_keywords)
            torch.manual_seed(7)
            received = captured(*self.others, **self.other_keywords)
            again = captured(*self.others, **self.other_keywords)
        self.assertTrue(same_bits(received, expected))
        self.assertFalse(same_bits(received, again))
        report = captured.check(*self.others, **self.other_keywords)
        self.assertTrue(report, str(report))
        compiled = captured.compile("mosaic")
        torch.manual_seed(7)
        for ours, torchs in zip(leaves(compiled(*self.others, **self.other_keywords)),
                                leaves(expected)):
            torch.testing.assert_close(ours, torchs)

    def test_a_mask_without_padding_is_another_program(self):
        """transformers looks at the mask, and leaves it out where it masks nothing."""
        captured = self.trace()
        full = {"attention_mask": torch.ones_like(self.keywords["attention_mask"])}
        with self.assertRaisesRegex(flashlight.Error, "modeling_attn_mask_utils.py"):
            captured(*self.arguments, **full)


    def test_equals_the_one_in_cpp(self):
        """examples/models/bert.cpp, captured by a C++ program: as graphs, not as values."""
        words, mask = self.arguments[0], self.keywords["attention_mask"]
        with torch.no_grad():
            python = flashlight.trace(self.original.call, words, mask)
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([os.environ["FLASHLIGHT_SAVE_BERT"], f"{folder}/bert"], check=True)
            cpp = flashlight.load(f"{folder}/bert")
        self.assertNotEqual(python.graph, cpp.graph)
        plain, plain_cpp = (c.graph.run_passes("canonicalize,drop_no_ops") for c in (python, cpp))
        self.assertEqual(plain.differences(plain_cpp), [])
        self.assertEqual(plain, plain_cpp)


class Gpt2(ModelTest, unittest.TestCase):
    """transformers makes its masks by torch.func.vmap, of autograd functions."""

    name = "gpt2"


class ResNet(ModelTest, unittest.TestCase):
    name = "resnet"

    def test_training_mode_updates_statistics(self):
        self.original.model.train()
        model, arguments = self.original.model, self.others
        captured = self.trace()
        before = {name: t.clone() for name, t in model.named_buffers()}
        with torch.no_grad():
            expected = self.original.call(*arguments)
            after = {name: t.clone() for name, t in model.named_buffers()}
            for name, buffer in model.named_buffers():
                buffer.copy_(before[name])
            self.assertTrue(same_bits(captured(*arguments), expected))
        self.assertTrue(same_bits(dict(model.named_buffers()), after))
        self.assertFalse(same_bits(before, after))


class ClipText(ModelTest, unittest.TestCase):
    name = "clip_text"


class ClipVision(ModelTest, unittest.TestCase):
    name = "clip_vision"


class UNet(ModelTest, unittest.TestCase):
    name = "unet"


class VaeEncode(ModelTest, unittest.TestCase):
    name = "vae_encode"

    def test_distribution_comes_back_as_one(self):
        captured = self.trace()
        with torch.no_grad():
            expected = self.original.call(*self.others).latent_dist
            received = captured(*self.others).latent_dist
        self.assertTrue(torch.equal(received.mode(), expected.mode()))
        first, second = (d.sample(torch.Generator().manual_seed(3)) for d in (received, expected))
        self.assertTrue(torch.equal(first, second))


class VaeDecode(ModelTest, unittest.TestCase):
    name = "vae_decode"


class MiniLm(ModelTest, unittest.TestCase):
    """Trained weights: a few tokens are much larger than the others."""

    name = "minilm"


if __name__ == "__main__":
    no_looks.main()
