"""Quantized captures as files of other tools: engines give what torch gives with the weights that the integers
stand for, and the files hold the integers.

The other side lives in an environment of its own (engines.py), without which the test is skipped."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "frontends/python")]

import no_looks  # noqa: F401  before flashlight
import torch

import engines
import flashlight
from agreement import leaves

SKIPPED = 77
# Of the largest element; engines sum in other orders, and IREE's functions have fewer digits.
CLOSE = {"onnxruntime": 1e-5, "openvino": 2e-5, "xla": 1e-5, "iree": 1e-4}
# A node's op_type: field 4, its length, its text.
QUANTIZES, DEQUANTIZES = b"\x22\x0eQuantizeLinear", b"\x22\x10DequantizeLinear"
BITS, CASTS = b"\x22\x0aBitwiseAnd", b"\x22\x04Cast"


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(64, 96)
        self.down = torch.nn.Linear(96, 64)
        self.by_inputs = torch.nn.Parameter(torch.randn(64, 32) * 0.1)

    def forward(self, x):
        return (x + self.down(torch.nn.functional.gelu(self.up(x)))) @ self.by_inputs


class QuantizedTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(2)
        self.model = Model().eval()
        self.x = torch.randn(5, 64)
        with torch.no_grad():
            self.captured = flashlight.trace(self.model, self.x)

    def small(self, **options):
        return self.captured.quantize(backend="reference", measure=False, **options)[0]

    def engines_agree(self, small, names, **options):
        with torch.no_grad():
            expected = leaves(small(self.x))
        for engine, received in engines.run(small, (self.x,), {}, names, **options).items():
            self.assertLessEqual(engines.times_off(received, expected), CLOSE[engine], engine)

    def text_of(self, small, ending, **options):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / f"model.{ending}"
            small.export(file, **options)
            data = file.with_name(file.name + ".data")
            return file.read_bytes(), data.stat().st_size if data.exists() else 0

    def test_onnx_8_bits(self):
        for symmetric in (True, False):
            small = self.small(symmetric=symmetric)
            self.engines_agree(small, ["onnxruntime", "openvino"])
        text, _ = self.text_of(self.small(), "onnx")
        self.assertEqual(text.count(DEQUANTIZES), 3)

    def test_onnx_4_bits_are_the_files_own(self):
        small = self.small(weights="int4", group=32)
        for opset in (20, 21, 24):
            self.engines_agree(small, ["onnxruntime", "openvino"], opset=opset)
        text, size = self.text_of(small, "onnx", opset=21)
        self.assertEqual((text.count(DEQUANTIZES), text.count(BITS), text.count(CASTS)), (3, 0, 0))
        _, before = self.text_of(self.captured, "onnx")
        self.assertLess(size, before / 4)

    def test_onnx_4_bits_with_zero_points(self):
        small = self.small(weights="int4", group=32, symmetric=False)
        self.engines_agree(small, ["onnxruntime", "openvino"], opset=21)
        text, _ = self.text_of(small, "onnx", opset=21)
        self.assertEqual(text.count(DEQUANTIZES), 3)
        # Those of `down`, [64, 3], are odd in number: bytes, for which its integers are cast.
        self.assertEqual((text.count(BITS), text.count(CASTS)), (0, 1))
        self.engines_agree(small, ["onnxruntime", "openvino"], opset=20)

    def test_onnx_4_bits_as_onnxruntimes_operator(self):
        for symmetric in (True, False):
            small = self.small(weights="int4", group=32, symmetric=symmetric)
            self.engines_agree(small, ["onnxruntime"], matmul_nbits=True)
            text, size = self.text_of(small, "onnx", matmul_nbits=True)
            # Zero points of `down`, [64, 3], are odd in number.
            self.assertEqual(text.count(b"\x22\x0bMatMulNBits"), 3 if symmetric else 2)
            self.assertEqual(text.count(DEQUANTIZES), 0)
            _, before = self.text_of(self.captured, "onnx")
            self.assertLess(size, before / 4)

    def test_openvino_keeps_weights_compressed(self):
        """Its products read integers: it recognises how the file takes them apart."""
        script = ("import sys, openvino\n"
                  "model = openvino.Core().compile_model(sys.argv[1], 'CPU', {'INFERENCE_PRECISION_HINT': 'f32'})\n"
                  "print([i.get_element_type().get_type_name() for op in model.get_runtime_model().get_ops()"
                  " for i in op.inputs()])")
        for weights, kept, options in (("int4", "'i4'", {"group": 32}), ("int8", "'i8'", {})):
            with tempfile.TemporaryDirectory() as folder:
                file = pathlib.Path(folder) / "model.onnx"
                self.small(weights=weights, **options).export(file, opset=21)
                run = subprocess.run([engines.PYTHON, "-c", script, file], check=True, capture_output=True, text=True)
            self.assertEqual(run.stdout.count(kept), 3, run.stdout)

    def test_onnx_calibrated_inputs(self):
        small = self.small(activations="calibrated")
        self.engines_agree(small, ["onnxruntime"])
        text, _ = self.text_of(small, "onnx")
        self.assertEqual(text.count(QUANTIZES), 3)

    def test_onnx_inputs_by_token(self):
        self.engines_agree(self.small(activations="by_token"), ["onnxruntime"])

    def test_stablehlo(self):
        for options in ({}, {"weights": "int4", "group": 32}, {"weights": "int4", "group": 32, "symmetric": False},
                        {"activations": "by_token"}):
            with self.subTest(**options):
                self.engines_agree(self.small(**options), ["xla", "iree"])


if __name__ == "__main__":
    if not engines.PYTHON:
        print("skipped: ./dev interchange makes what this needs")
        sys.exit(SKIPPED)
    unittest.main()
