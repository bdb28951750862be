"""Families of several cases as ONNX models: branches on values and on sizes, with what torch gives at sizes
and values that nobody showed, and guards that say where the model does not hold.

The other side lives in an environment of its own (engines.py), without which the test is skipped."""

import copy
import pathlib
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "frontends/python")]

import no_looks  # before flashlight
import torch

import engines
import flashlight
from agreement import leaves
from case_programs import (BOTH_SHOWN, READS, WINDOW_SIZES, WINDOWS, Both, TwoWays, Windows, chosen_rows,
                           different, mixed, negative, normalized, places, positive, routed, selected)

SKIPPED = 77
CLOSE = {"onnxruntime": 1e-5, "openvino": 2e-5, "xla": 1e-5}


class OnnxCasesTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(5)
        no_grad = torch.no_grad()
        no_grad.__enter__()
        self.addCleanup(no_grad.__exit__, None, None, None)

    def agrees(self, model, family, inputs, further=(), which=("onnxruntime",)):
        """At `further` inputs some guard does not hold."""
        state = copy.deepcopy(model.state_dict())

        def check(engine, number, arguments, received, guards):
            self.assertEqual(all(guards), number < len(inputs))
            if number >= len(inputs):
                return
            model.load_state_dict(state)  # each call of a model is the first
            expected = leaves(model(*arguments))
            self.assertLessEqual(engines.times_off(received, expected), CLOSE[engine])
            for name, buffer in model.named_buffers():
                self.assertEqual(received[name + ".written"], buffer.numpy())

        engines.check_family(self, family, [((x,), {}) for x in [*inputs, *further]], which, check)
        model.load_state_dict(state)

    def test_a_value_chooses(self):
        model = TwoWays()
        family = flashlight.trace_family(model, [(positive(2, 4),), (negative(2, 4),)])
        self.agrees(model, family, [positive(2, 4), negative(2, 4)], which=("onnxruntime", "openvino"))
        for engine, x in (("xla", positive(2, 4)), ("xla", negative(2, 4))):
            received = engines.run(family, (x,), {}, [engine])[engine]
            self.assertLessEqual(engines.times_off(received, [copy.deepcopy(model)(x)]), CLOSE[engine])

    def test_a_value_chooses_at_all_sizes(self):
        model = TwoWays()
        shown = [positive(2, 16), positive(3, 23), positive(5, 12), negative(3, 11), negative(2, 17), negative(6, 22)]
        family = flashlight.trace_family(model, [(x,) for x in shown], sizes=["batch", "tokens"])
        self.agrees(model, family, [positive(4, 21), negative(4, 21), negative(2, 13), positive(5, 12)],
                    further=[negative(4, 11), positive(3, 23), negative(6, 14)])

    def test_sizes_choose(self):
        model = Windows()
        family = flashlight.trace_family(model, lambda batch, tokens: (positive(batch, tokens),), sizes=WINDOWS)
        self.agrees(model, family, [positive(*sizes) for sizes in WINDOW_SIZES],
                    further=[positive(2, 41), positive(8, 12), positive(3, 7)])

    def test_a_size_chooses_and_then_a_value(self):
        model = Both()
        family = flashlight.trace_family(model, [(x,) for x in BOTH_SHOWN], sizes=["rows"])
        self.agrees(model, family, [positive(3), negative(8), positive(11), negative(11), negative(17), positive(9)],
                    further=[positive(20)])

    def test_numbers_that_the_program_reads(self):
        family = flashlight.trace_family(normalized, [(torch.randn(n, 3) * 3,) for n in (2, 5, 9, 4)],
                                         predicates=READS)
        calls = [((torch.randn(n, 3) * 7,), {}) for n in (3, 8)]
        for (arguments, _), received in zip(calls, engines.run_family(family, calls, ["onnxruntime"])["onnxruntime"]):
            self.assertLessEqual(engines.times_off(received, normalized(*arguments)), CLOSE["onnxruntime"])

    def test_sizes_that_follow_from_values(self):
        for program in (chosen_rows, places, selected, routed):
            family = flashlight.trace_family(program, [(mixed(n),) for n in (4, 7, 12, 9, 5)])
            calls = [((torch.randn(n, 5),), {}) for n in (6, 8, 11)]
            calls += [((-positive(6)[:, :5],), {}), ((positive(7)[:, :5],), {}), ((torch.randn(13, 5),), {})]
            results = engines.run_family(family, calls, ["onnxruntime"])["onnxruntime"]
            for number, ((arguments, _), received) in enumerate(zip(calls, results)):
                with self.subTest(program.__name__, call=number):
                    times = engines.times_off(received, list(program(*arguments)))
                    self.assertLessEqual(times, CLOSE["onnxruntime"])
                    guards = [bool(value) for name, value in received.items() if name.startswith("guard_")]
                    self.assertEqual(all(guards), number < 5)  # 13 rows were not shown

    def test_a_size_that_no_operator_tells_is_refused(self):
        family = flashlight.trace_family(different, [(torch.randn(n, 5) * 3,) for n in (4, 7, 12, 9, 5)])
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(flashlight.Error, "unique.* in different: "):
                family.export(pathlib.Path(folder) / "model.onnx")

    def test_stablehlo_refuses_sizes(self):
        family = flashlight.trace_family(Both(), [(x,) for x in BOTH_SHOWN], sizes=["rows"])
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(flashlight.Error, "expected a capture of one size, received a family"):
                family.export(pathlib.Path(folder) / "model.mlir")


if __name__ == "__main__":
    if not engines.PYTHON:
        print("skipped: ./dev interchange makes what this needs")
        sys.exit(SKIPPED)
    unittest.main()
