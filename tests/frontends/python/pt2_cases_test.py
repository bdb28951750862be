"""Families of several cases as files of torch.export: `torch.cond` on values and on sizes, with the bits of
torch at sizes and values that nobody showed."""

import copy
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import no_looks  # before flashlight
import torch

import flashlight
from agreement import leaves, same_bits
from case_programs import (BOTH_SHOWN, READS, SHIFTS, WINDOW_SIZES, WINDOWS, Both, TwoWays, Windows,
                           negative, normalized, positive, shifted)


def exported(family, **options):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "program.pt2"
        family.export(file, **options)
        return torch.export.load(file)


class Behind(torch.nn.Module):
    """Goes another way where an odd number remains."""

    def __init__(self, windows, number):
        super().__init__()
        self.windows, self.number = windows, number

    def forward(self, x):
        y = self.windows(x)
        return y.tanh() if self.number(y) % 2 else y.relu()


class CasesTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(5)
        no_grad = torch.no_grad()
        no_grad.__enter__()
        self.addCleanup(no_grad.__exit__, None, None, None)

    def agrees(self, model, family, inputs):
        """The module that torch loads, beside a copy of the model that has the same state."""
        program = exported(family)
        module, twin = program.module(), copy.deepcopy(model)
        twin.load_state_dict(module.state_dict())
        for x in inputs:
            for received, expected in zip(leaves(module(x)), leaves(twin(x)), strict=True):
                self.assertTrue(same_bits(received.contiguous(), expected.contiguous()), x.shape)
            for name, buffer in module.named_buffers():
                self.assertTrue(same_bits(buffer, twin.get_buffer(name)), name)
        return program

    def test_a_value_chooses(self):
        model = TwoWays()
        family = flashlight.trace_family(model, [(positive(2, 4),), (negative(2, 4),)])
        program = self.agrees(model, family, [positive(2, 4), negative(2, 4), positive(2, 4)])
        self.assertEqual([n.target for n in program.graph.nodes].count(torch.ops.higher_order.cond), 1)
        program.run_decompositions()

    def test_a_value_chooses_at_all_sizes(self):
        model = TwoWays()
        shown = [positive(2, 16), positive(3, 23), positive(5, 12), negative(3, 11), negative(2, 17), negative(6, 22)]
        family = flashlight.trace_family(model, [(x,) for x in shown], sizes=["batch", "tokens"])
        program = self.agrees(model, family, [positive(4, 21), negative(4, 21), negative(2, 13), positive(5, 12)])
        # Where both ways were shown: positive ones from 12, negative ones to 22.
        ranges = [(int(one.lower), int(one.upper)) for one in program.range_constraints.values()]
        self.assertEqual(ranges, [(2, 5), (12, 22)])
        for sizes in ((4, 11), (4, 23), (6, 14)):
            with self.assertRaises(Exception):
                program.module()(positive(*sizes))
        program.run_decompositions()

    def test_sizes_choose(self):
        model = Windows()
        family = flashlight.trace_family(model, lambda batch, tokens: (positive(batch, tokens),), sizes=WINDOWS)
        program = self.agrees(model, family, [positive(*sizes) for sizes in WINDOW_SIZES])
        for sizes in ((2, 41), (8, 12), (2, 7)):
            with self.assertRaises(Exception):
                program.module()(positive(*sizes))

    def test_a_size_chooses_and_then_a_value(self):
        model = Both()
        family = flashlight.trace_family(model, [(x,) for x in BOTH_SHOWN], sizes=["rows"])
        self.agrees(model, family, [positive(3), negative(8), positive(11), negative(11), negative(17), positive(9)])

    def test_sizes_behind_windows_choose(self):
        """Of sounds and pictures, which convolutions shorten: each of these conditions rounds the input's size."""
        sound = Behind(torch.nn.Sequential(torch.nn.Conv1d(1, 2, 10, 5), torch.nn.Conv1d(2, 2, 8, 4)),
                       lambda y: y.shape[2])
        family = flashlight.trace_family(sound, lambda n: (torch.randn(1, 1, n),), sizes={"n": (200, 600)})
        self.agrees(sound, family, [torch.randn(1, 1, n) for n in range(200, 600, 7)])
        picture = Behind(torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3, 4, 1), torch.nn.Unfold(2, stride=2)),
                         lambda y: y.shape[2])
        family = flashlight.trace_family(picture, lambda h, w: (torch.randn(1, 1, h, w),),
                                         sizes={"h": (16, 60), "w": (16, 60)})
        self.agrees(picture, family, [torch.randn(1, 1, h, w) for h in range(16, 54, 3) for w in (17, 24, 39, 52)])

    def test_gradients_go_through_the_way_that_is_taken(self):
        layer = Behind(torch.nn.Linear(4, 4), lambda y: y.shape[0])
        family = flashlight.trace_family(layer, lambda n: (torch.randn(n, 4),), sizes={"n": (2, 9)})
        module = exported(family).module()
        for n in (3, 6, 8):
            with torch.enable_grad():
                x = torch.randn(n, 4, requires_grad=True)
                received = torch.autograd.grad(module(x).sum(), [x, *module.parameters()])
                expected = torch.autograd.grad(layer(x).sum(), [x, *layer.parameters()])
            self.assertTrue(all(map(torch.equal, received, expected)), n)

    def test_ways_that_have_no_size_in_common_are_refused(self):
        shown = [positive(2, 16), positive(3, 23), positive(5, 12), negative(7, 30)]
        family = flashlight.trace_family(TwoWays(), [(x,) for x in shown], sizes=["batch", "tokens"])
        with self.assertRaisesRegex(flashlight.Error, "shown at no 'batch' that they have in common"):
            exported(family)


class ReadNumbersTest(unittest.TestCase):
    """Numbers that the program reads with `item` are read where it does, whatever they are."""

    def agrees(self, program, family, calls):
        loaded = exported(family)
        module = loaded.module()
        self.assertIn(torch.ops.aten.item.default, [node.target for node in loaded.graph.nodes])
        for arguments in calls:
            for run in (module, loaded.run_decompositions().module()):
                for received, expected in zip(run(*arguments), program(*arguments), strict=True):
                    self.assertTrue(same_bits(received, expected))

    @torch.no_grad()
    def test_floating_ones(self):
        torch.manual_seed(6)
        shown = [(torch.randn(n, 3) * 3,) for n in (2, 5, 9, 4)]
        family = flashlight.trace_family(normalized, shown, predicates=READS)
        self.agrees(normalized, family, [(torch.randn(n, 3) * 7,) for n in (3, 8)])

    @torch.no_grad()
    def test_whole_ones(self):
        torch.manual_seed(6)
        shown = [(torch.randn(n, 3), torch.tensor(k)) for n, k in ((2, 3), (5, 7), (9, 4), (4, 6))]
        family = flashlight.trace_family(shifted, shown, predicates=SHIFTS)
        self.agrees(shifted, family, [(torch.randn(3, 3), torch.tensor(k)) for k in (5, -12, 70_000)])


if __name__ == "__main__":
    unittest.main()
