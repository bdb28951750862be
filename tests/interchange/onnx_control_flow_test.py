"""Branches and loops as ONNX models: onnxruntime and NumPy agree. Run by the Python of the other side
(in_environment.py)."""

import pathlib
import tempfile
import unittest

import composit as cnp
import numpy as np
import onnx
import onnxruntime

COND = """graph(%p: bool[], %x: float32[3]) {
  %k: float32[3] = aten::mul.Scalar(%x, other=scalar(2.0))
  %y: float32[3] = composit::cond(%p, [%k], then_body=region(%a: float32[3]) {
      %s: float32[3] = aten::sin(%a)
      return %s
    }, else_body=region(%b: float32[3]) {
      return %b
    })
  return %y
}"""
SCAN = """graph(%h: float32[2], %xs: float32[5, 2], %w: float32[2]) {
  %end, %all: float32[2], float32[5, 2] = composit::scan([%h], [%xs], [%w], none,
    body=region(%a: float32[2], %x: float32[2], %v: float32[2]) {
      %m: float32[2] = aten::mul.Tensor(%a, %v)
      %s: float32[2] = aten::add.Tensor(%m, %x, alpha=scalar(1))
      %t: float32[2] = aten::tanh(%s)
      return %t, %s
    }, length=5, reverse=REVERSE)
  return %end, %all
}"""
WHILE = """graph(%x: float32[], %f: float32[]) {
  %y, %trips: float32[], int64[] = composit::while_loop([%x], [%f],
    condition=region(%a: float32[], %c: float32[]) {
      %l: bool[] = aten::lt.Scalar(%a, other=scalar(100.0))
      return %l
    }, body=region(%b: float32[], %d: float32[]) {
      %m: float32[] = aten::mul.Tensor(%b, %d)
      return %m
    }, limit=4)
  return %y, %trips
}"""


def numbers(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype("f4")


class OnnxControlFlowTest(unittest.TestCase):
    def run_model(self, text, **inputs):
        """By name, in onnxruntime; and what composit reads of the model, by its definitions."""
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "m.onnx"
            cnp.save_onnx(cnp.parse(text), file)
            onnx.checker.check_model(str(file), full_check=True)
            session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
            results = session.run(None, inputs)
        return dict(zip([one.name for one in session.get_outputs()], results))

    def test_branches(self):
        x = numbers(3)
        for p, expected in (True, np.sin(2 * x)), (False, 2 * x):
            results = self.run_model(COND, p=np.array(p), x=x)
            np.testing.assert_allclose(results["output_0"], expected, rtol=1e-6)

    def test_scans_in_both_directions(self):
        h, xs, w = numbers(2), numbers(5, 2), numbers(2)
        for reverse in (False, True):
            state, stacked = h, [None] * 5
            for i in reversed(range(5)) if reverse else range(5):
                stacked[i] = state * w + xs[i]
                state = np.tanh(stacked[i])
            text = SCAN.replace("REVERSE", str(reverse).lower())
            results = self.run_model(text, h=h, xs=xs, w=w)
            np.testing.assert_allclose(results["output_0"], state, rtol=1e-5)
            np.testing.assert_allclose(results["output_1"], np.stack(stacked), rtol=1e-5)

    def test_a_loop_tells_whether_it_ended(self):
        for x, trips, value, ended in (2, 4, 162, True), (200, 0, 200, True), (0.001, 4, 0.081, False):
            results = self.run_model(WHILE, x=np.array(x, "f4"), f=np.array(3, "f4"))
            self.assertEqual(int(results["output_1"]), trips)
            np.testing.assert_allclose(results["output_0"], value, rtol=1e-6)
            self.assertEqual(bool(results["guard_0"]), ended)


if __name__ == "__main__":
    unittest.main()
