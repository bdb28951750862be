"""Families as ONNX models: one file gives what torch gives at all sizes, and its guards say which those are.

The other side lives in an environment of its own (engines.py), without which the test is skipped."""

import pathlib
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "frontends/python")]

import no_looks  # before flashlight
import numpy as np
import torch
import transformers
from torch.nn import functional as F

import flashlight
import engines
from agreement import leaves

SKIPPED = 77
# Of the largest element; both engines sum in other orders.
CLOSE = {"onnxruntime": 1e-5, "openvino": 2e-5}


def ids(batch, tokens):
    return torch.randint(1, 99, (batch, tokens))


def padded(batch, tokens):
    """Ids, and a mask that hides the first token of the first text."""
    mask = torch.ones(batch, tokens).long()
    mask[0, 0] = 0
    return ids(batch, tokens), mask


class Decoder(torch.nn.Module):
    """One layer of GPT-2: positions of a mask, a causal table that is cut, masked attention."""

    def __init__(self):
        super().__init__()
        self.words, self.places = torch.nn.Embedding(100, 32), torch.nn.Embedding(64, 32)
        self.mixed = torch.nn.Linear(32, 96)
        self.register_buffer("table", torch.tril(torch.ones(64, 64, dtype=torch.bool)))

    def forward(self, tokens, mask):
        batch, length = tokens.shape
        x = self.words(tokens) + self.places((mask.cumsum(-1) - 1).clamp(min=0))
        q, k, v = (part.view(batch, length, 4, 8).transpose(1, 2) for part in self.mixed(x).split(32, dim=2))
        least = torch.finfo(x.dtype).min
        weights = torch.where(self.table[:length, :length], q @ k.transpose(-1, -2) / 8**0.5, least)
        weights = weights + (1 - mask[:, None, None, :].to(x.dtype)) * least
        return (weights.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, 32)


class Causal(torch.nn.Module):
    """Positions, and a causal mask that attention makes itself."""

    def __init__(self):
        super().__init__()
        self.words, self.places = torch.nn.Embedding(100, 32), torch.nn.Embedding(64, 32)

    def forward(self, tokens):
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1]))
        heads = x.view(*tokens.shape, 4, 8).transpose(1, 2)
        return F.scaled_dot_product_attention(heads, heads, heads, is_causal=True).transpose(1, 2).flatten(2)


class Pictures(torch.nn.Module):
    """Sizes that are halved, rounded and multiplied."""

    def __init__(self):
        super().__init__()
        nn = torch.nn
        self.down = nn.Sequential(nn.Conv2d(3, 8, 7, stride=4, padding=2), nn.BatchNorm2d(8), nn.SiLU(),
                                  nn.GroupNorm(2, 8), nn.Conv2d(8, 8, 3, padding=1), nn.MaxPool2d(2))
        self.end = nn.Linear(8, 6)

    def forward(self, x):
        y = self.down(x)
        batch, channels, height, width = y.shape
        rows = y.flatten(2).transpose(1, 2)  # batch, height * width, channels
        again = rows.transpose(1, 2).view(batch, channels, height, width)
        return self.end(F.adaptive_avg_pool2d(again, 1).flatten(1)), F.interpolate(again, scale_factor=2)


class Recurrent(torch.nn.Module):
    """As many trips as there are steps in time."""

    def __init__(self):
        super().__init__()
        self.cell = torch.nn.GRUCell(4, 8)

    def forward(self, x):
        state, all_states = torch.zeros(x.shape[0], 8), []
        for t in range(x.shape[1]):
            state = self.cell(x[:, t], state)
            all_states.append(state)
        return torch.stack(all_states, 1), state


def family_of(program, make, shown, names):
    with torch.no_grad():
        return flashlight.trace_family(program, [make(*sizes) for sizes in shown], sizes=names)


class OnnxFamilyTest(unittest.TestCase):
    """Each family is run by one process of the other side."""

    def setUp(self):
        torch.manual_seed(3)

    @torch.no_grad()
    def agrees(self, program, make, shown, others, names, further=(), which=("onnxruntime",)):
        """At sizes that were shown and at others; at `further` ones some guard does not hold, and the
        model either refuses or computes what torch does."""
        program = program.eval()
        family = family_of(program, make, shown, names)

        def check(engine, number, arguments, received, guards):
            times = engines.times_off(received, leaves(program(*arguments)))
            self.assertLessEqual(times, CLOSE[engine])
            self.assertEqual(all(guards), number <= len(others))
            self.assertTrue(guards)

        calls = [(make(*sizes), {}) for sizes in [shown[0], *others, *further]]
        engines.check_family(self, family, calls, which, check)
        return family

    def test_layers_and_a_batch(self):
        model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
        self.agrees(model, lambda batch: (torch.randn(batch, 8),), [(2,), (6,), (13,)], [(7,), (12,)], ["batch"],
                    further=[(1,), (40,)], which=CLOSE)

    def test_pictures(self):
        """All remainders of what is divided, of sizes that no example had."""
        self.agrees(Pictures(), lambda *sizes: (torch.randn(sizes[0], 3, *sizes[1:]),),
                    [(2, 33, 40), (3, 41, 36), (5, 62, 33), (4, 50, 63)],
                    [(3, 37, 42), (4, 38, 43), (2, 39, 44), (5, 44, 45), (3, 47, 51)],
                    ["batch", "height", "width"], further=[(2, 70, 40)])

    def test_bert(self):
        config = transformers.BertConfig(num_hidden_layers=2, hidden_size=32, num_attention_heads=4,
                                         intermediate_size=64, vocab_size=100)
        model = transformers.BertModel(config)
        self.agrees(model, padded, [(2, 16), (3, 23), (5, 12)], [(4, 21), (2, 13)], ["batch", "tokens"],
                    further=[(7, 21), (3, 40)], which=CLOSE)

    def test_attention_with_masks(self):
        for program, make in ((Decoder(), padded), (Causal(), lambda *sizes: (ids(*sizes),))):
            with self.subTest(type(program).__name__):
                self.agrees(program, make, [(2, 16), (3, 23), (5, 12)], [(4, 21), (2, 13)], ["batch", "tokens"],
                            further=[(3, 30)])

    def test_a_loop_over_a_size(self):
        self.agrees(Recurrent(), lambda *sizes: (torch.randn(*sizes, 4),), [(2, 5), (3, 7), (6, 9), (5, 6)],
                    [(4, 8), (3, 5)], ["rows", "steps"])

    def test_sizes_in_steps_and_two_inputs_of_one_size(self):
        def program(x, y):
            return x.view(x.shape[0] // 4, 4, -1).sum(1).mean(0) + y.sum()

        family = family_of(program, lambda n: (torch.randn(n, 3), torch.randn(n)), [(8,), (12,), (20,), (32,)],
                           ["rows"])
        calls = [((torch.randn(a, 3), torch.randn(b)), {}) for a, b in ((16, 16), (28, 28), (16, 12), (64, 64))]
        results = engines.run_family(family, calls, ["onnxruntime"])["onnxruntime"]
        for number, ((arguments, _), received) in enumerate(zip(calls, results)):
            self.assertLessEqual(engines.times_off(received, [program(*arguments)]), CLOSE["onnxruntime"])
            guards = [bool(v) for name, v in received.items() if name.startswith("guard_")]
            self.assertEqual(all(guards), number < 2)

    def test_a_saved_family_without_guards(self):
        model = torch.nn.Linear(8, 4)
        family = family_of(model, lambda n: (torch.randn(n, 8),), [(2,), (5,), (9,)], ["rows"])
        with tempfile.TemporaryDirectory() as folder:
            family.save(pathlib.Path(folder) / "family")
            loaded = flashlight.load_family(pathlib.Path(folder) / "family")
        call = ((torch.randn(7, 8),), {})
        received = engines.run_family(loaded, [call], ["onnxruntime"], drop_guards=True)["onnxruntime"][0]
        self.assertLessEqual(engines.times_off(received, [model(*call[0])]), CLOSE["onnxruntime"])
        self.assertEqual(list(received), ["output_0"])

    @torch.no_grad()
    def test_numbers_are_inputs(self):
        """A rate that the program holds, at sizes that vary."""
        rate = [0.1]

        def program(x):
            return x * rate[0] + x.view(x.shape[0] * 2, -1).sum() * (1.0 - rate[0])

        def examples():
            for rate[0], n in ((0.1, 2), (0.37, 5), (0.05, 9), (0.2, 9)):
                yield (torch.randn(n, 4),)

        family = flashlight.trace_family(program, examples(), numbers={"rate": lambda: rate[0]})
        rate[0], x = 0.625, torch.randn(7, 4)
        with engines.Models() as models:
            models.add_family("model", family, [((x,), {})], further={"number.rate": np.array(rate[0])})
            models.run(["onnxruntime"])
            received = models.results("model.call0", "onnxruntime")
        self.assertLessEqual(engines.times_off(received, [program(x)]), CLOSE["onnxruntime"])
        self.assertTrue(all(bool(v) for name, v in received.items() if name.startswith("guard_")))

    @torch.no_grad()
    def test_a_number_among_arguments_is_an_input(self):
        def program(x, temperature):
            return (x / temperature).softmax(-1)

        x = torch.randn(3, 5)
        family = flashlight.trace_family(program, [((x,), {"temperature": t}) for t in (2.0, 1.37, 0.21)])
        with engines.Models() as models:
            models.add_family("model", family, [((x,), {})], further={"number.temperature": np.array(0.55)})
            models.run(["onnxruntime"])
            received = models.results("model.call0", "onnxruntime")
        self.assertLessEqual(engines.times_off(received, [program(x, 0.55)]), CLOSE["onnxruntime"])

    def refusal(self, program, make, sizes):
        with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
            family = flashlight.trace_family(program, make, sizes=sizes)
            with self.assertRaises(flashlight.Error) as raised:
                family.export(pathlib.Path(folder) / "model.onnx")
            self.assertEqual(list(pathlib.Path(folder).iterdir()), [])
        return str(raised.exception)

    def test_what_is_refused(self):
        def ways(x):
            return x.exp() if x.shape[0] > 20 else x.sin()[None]

        refusal = self.refusal(ways, lambda n: torch.randn(n), {"n": (2, 60)})
        self.assertIn("its cases give results of another structure, dtype or number of axes", refusal)

        def windows(x):
            return F.avg_pool1d(x, x.shape[-1])

        self.assertIn("'kernel_shape', which has to be a number in ONNX",
                      self.refusal(windows, lambda n: torch.randn(2, 3, n), {"n": (4, 30)}))


if __name__ == "__main__":
    if not engines.PYTHON:
        print("skipped: ./dev interchange makes what this needs")
        sys.exit(SKIPPED)
    unittest.main()
