"""Quantized numbers: composit's definitions are torch's operators, bit by bit."""

import os
import subprocess
import sys
import tempfile
import unittest

import no_looks  # noqa: F401  before flashlight
import numpy
import torch
import torch.ao.quantization.fx._decomposed  # noqa: F401  registers the operators

import composit
import flashlight
from array_agreement import difference

TORCH = torch.ops.quantized_decomposed
NAMES = {torch.float32: "float32", torch.float64: "float64", torch.int8: "int8", torch.uint8: "uint8",
         torch.int32: "int32", torch.int64: "int64"}


def literal(value):
    return NAMES[value] if isinstance(value, torch.dtype) else repr(value)


def type_text(tensor):
    return f"{NAMES[tensor.dtype]}{list(tensor.shape)}"


def composit_results(operator, results, arguments, keywords):
    """Values of one call by composit's definition. `results`: torch's, whose types the node has."""
    schema = operator._schema
    tensors = [x for x in arguments if isinstance(x, torch.Tensor)]
    numbers = iter(range(len(tensors)))
    texts, attributes = [], []
    for argument, value in zip(schema.arguments, arguments):
        if isinstance(value, torch.Tensor):
            texts.append(f"%x{next(numbers)}")
        elif "Tensor" in str(argument.type):
            texts.append("none")
        else:
            attributes.append(f"{argument.name}={literal(value)}")
    texts += attributes + [f"{key}={literal(value)}" for key, value in keywords.items()]
    outputs = ", ".join(f"%y{i}" for i in range(len(results)))
    types = ", ".join(map(type_text, results))
    inputs = ", ".join(f"%x{i}: {type_text(x)}" for i, x in enumerate(tensors))
    name = operator.name().replace(".default", "")
    text = f"graph({inputs}) {{\n  {outputs}: {types} = {name}({', '.join(texts)})\n  return {outputs}\n}}\n"
    return composit.parse(text).evaluate([x.numpy() for x in tensors])


class QuantizationTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)

    def agree(self, name, *arguments, **keywords):
        operator = getattr(TORCH, name.split(".")[0])
        overload = getattr(operator, name.split(".")[1] if "." in name else "default")
        expected = overload(*arguments, **keywords)
        expected = list(expected) if isinstance(expected, tuple) else [expected]
        received = composit_results(overload, expected, arguments, keywords)
        for ours, theirs in zip(received, expected, strict=True):
            numpy.testing.assert_array_equal(ours, theirs.numpy(), err_msg=name, strict=True)

    def test_per_tensor(self):
        x = torch.randn(64, 33) * 3
        for dtype, low, high, zero in ((torch.int8, -128, 127, 3), (torch.uint8, 0, 255, 128),
                                       (torch.int8, -127, 127, 0)):
            q = TORCH.quantize_per_tensor(x, 0.0217, zero, low, high, dtype)
            self.agree("quantize_per_tensor", x, 0.0217, zero, low, high, dtype)
            self.agree("dequantize_per_tensor", q, 0.0217, zero, low, high, dtype)
            scale, point = torch.tensor([0.0217], dtype=torch.float64), torch.tensor([zero])
            self.agree("quantize_per_tensor.tensor", x, scale, point, low, high, dtype)
            self.agree("dequantize_per_tensor.tensor", q, scale, point, low, high, dtype)
            for chosen in ("choose_qparams.tensor", "choose_qparams_symmetric.tensor"):
                self.agree(chosen, x, low, high, 1e-5, dtype)
                self.agree(chosen, x.abs() + 1, low, high, 1e-5, dtype)
                self.agree(chosen, x * 0, low, high, 1e-5, dtype)

    def test_per_channel(self):
        x = torch.randn(16, 24) * 2
        for axis in (0, 1):
            scales, zeros = torch.rand(x.shape[axis]) * 0.02 + 0.01, torch.randint(-9, 9, [x.shape[axis]])
            q = TORCH.quantize_per_channel(x, scales, zeros, axis, -128, 127, torch.int8)
            self.agree("quantize_per_channel", x, scales, zeros, axis, -128, 127, torch.int8)
            self.agree("dequantize_per_channel", q, scales, zeros, axis, -128, 127, torch.int8)
            self.agree("dequantize_per_channel", q, scales, None, axis, -128, 127, torch.int8)
            double = scales.double()
            self.agree("quantize_per_channel", x, double, zeros, axis, -128, 127, torch.int8)
            self.agree("dequantize_per_channel", q, double, zeros, axis, -128, 127, torch.int8)

    def test_per_group(self):
        x = torch.randn(16, 96) * 2
        for group in (2, 32, 96):
            scales = torch.rand(16, 96 // group) * 0.2 + 0.1
            zeros = torch.randint(-3, 3, scales.shape, dtype=torch.int32)
            q = TORCH.quantize_per_channel_group(x, scales, zeros, -8, 7, torch.int8, group)
            self.agree("quantize_per_channel_group", x, scales, zeros, -8, 7, torch.int8, group)
            self.agree("dequantize_per_channel_group", q, scales, zeros, -8, 7, torch.int8, group, torch.float32)
            self.agree("dequantize_per_channel_group", q, scales, None, -8, 7, torch.int8, group, torch.float32)

    def test_per_token(self):
        x = torch.randn(3, 5, 40)
        x[0, 0] = 0
        for chosen in ("choose_qparams_per_token", "choose_qparams_per_token_asymmetric"):
            self.agree(chosen, x, torch.int8)
            self.agree(chosen, x.abs() + 1, torch.int8)
            scales, zeros = getattr(TORCH, chosen)(x, torch.int8)
            q = TORCH.quantize_per_token(x, scales, zeros, -128, 127, torch.int8)
            self.agree("quantize_per_token", x, scales, zeros, -128, 127, torch.int8)
            self.agree("dequantize_per_token", q, scales, zeros, -128, 127, torch.int8, torch.float32)


class ProgramsTest(unittest.TestCase):
    """Programs that come quantized are captured, replayed with their bits, and compiled."""

    def setUp(self):
        torch.manual_seed(1)
        self.weight = torch.randint(-127, 127, (32, 64), dtype=torch.int8)
        self.scales = torch.rand(32) * 0.01

    @torch.no_grad()
    def compiles(self, program, op, rows=32):
        captured = flashlight.trace(program, torch.randn(rows, 64))
        self.assertIn(op, [node.op for node in captured.graph.nodes])
        x = torch.randn(rows, 64)
        self.assertTrue(torch.equal(captured(x), program(x)))
        for backend in ("cpp", "mosaic"):
            self.assertEqual(difference(captured.compile(backend)(x).numpy(), program(x).numpy(), 2), "", backend)

    def test_products_with_weights_of_8_bits(self):
        self.compiles(lambda x: torch.ops.aten._weight_int8pack_mm(x, self.weight, self.scales),
                      "aten::_weight_int8pack_mm")

    def test_products_of_integers(self):
        self.compiles(lambda x: torch.ops.aten._int_mm((x * 20).to(torch.int8), self.weight.t()), "aten::_int_mm")

    def test_products_of_bytes(self):
        self.compiles(lambda x: torch.ops.aten._int_mm((x * 20).abs().to(torch.uint8), self.weight.t()),
                      "aten::_int_mm")

    def test_products_with_weights_of_4_bits(self):
        """Rows of a weight are packed in blocks, whose last is not full: all that a processor has is in 112 rows."""
        codes = torch.randint(0, 16, (112, 64), dtype=torch.int32)
        packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(codes, 1)
        for group in (32, 64):
            pairs = torch.stack([torch.rand(64 // group, 112) * 0.1, torch.randn(64 // group, 112)], 2)
            self.compiles(lambda x: torch.ops.aten._weight_int4pack_mm_for_cpu(x, packed, group, pairs),
                          "aten::_weight_int4pack_mm_for_cpu")

    def test_weights_that_are_packed_by_the_program(self):
        pairs = torch.rand(2, 112, 2)

        def program(x):
            codes = (x * 7).to(torch.int32).clamp(0, 15)  # [112, 64]
            packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(codes, 1)
            return torch.ops.aten._weight_int4pack_mm_for_cpu(x, packed, 32, pairs)

        self.compiles(program, "aten::_convert_weight_to_int4pack_for_cpu", rows=112)

    def test_weights_packed_for_another_processor(self):
        """Their bytes would be other numbers there. What they are is known here; where they were packed, if the
        program does not say."""
        codes = torch.randint(0, 16, (64, 64), dtype=torch.int32)
        pairs = torch.rand(2, 64, 2)
        script = ("import torch, sys\nw, p = torch.load(sys.argv[1])\n"
                  "torch.save((torch.ops.aten._convert_weight_to_int4pack_for_cpu(w, 1), "
                  "torch.backends.cpu.get_cpu_capability()), sys.argv[2])\n")
        for capability in ("default", "avx2"):
            with tempfile.TemporaryDirectory() as folder:
                given, taken = f"{folder}/given", f"{folder}/taken"
                torch.save((codes, pairs), given)
                subprocess.run([sys.executable, "-c", script, given, taken], check=True,
                               env={**os.environ, "ATEN_CPU_CAPABILITY": capability})
                packed, there = torch.load(taken)
            text = ("graph(%x: float32[3, 64], %w: uint8[64, 32], %s: float32[2, 64, 2]) {\n"
                    "  %y: float32[3, 64] = aten::_weight_int4pack_mm_for_cpu(%x, %w, %s, qGroupSize=32)"
                    "ELSEWHERE\n  return %y\n}\n")
            graph = composit.parse(text.replace("ELSEWHERE", f' {{packed_for="{there}"}}'))
            x = torch.randn(3, 64)
            numbers = (codes - 8).float() * pairs[..., 0].T.repeat_interleave(32, 1)
            expected = x @ (numbers + pairs[..., 1].T.repeat_interleave(32, 1)).T
            received = graph.evaluate([x.numpy(), packed.numpy(), pairs.numpy()])[0]
            self.assertEqual(difference(received, expected.numpy(), 4), "")
            code = ("import sys, no_looks, torch, flashlight\n"
                    "print(flashlight.load(sys.argv[1])(torch.zeros(3, 64)))")
            with tempfile.TemporaryDirectory() as folder, torch.no_grad():
                call = torch.ops.aten._weight_int4pack_mm_for_cpu
                mine = torch.ops.aten._convert_weight_to_int4pack_for_cpu(codes, 1)
                flashlight.trace(lambda x: call(x, mine, 32, pairs), x).save(f"{folder}/c")
                run = subprocess.run([sys.executable, "-c", code, f"{folder}/c"], capture_output=True, text=True,
                                     env={**os.environ, "ATEN_CPU_CAPABILITY": capability,
                                          "PYTHONPATH": os.pathsep.join(sys.path)})
                if there != torch.backends.cpu.get_cpu_capability():
                    self.assertIn(f"this LibTorch runs kernels for {there}", run.stderr)
            with self.assertRaisesRegex(Exception, "which this call does not name"):
                composit.parse(text.replace("ELSEWHERE", "")).evaluate([x.numpy(), packed.numpy(), pairs.numpy()])

    def test_programs_of_pt2e(self):
        def program(x):
            scale, zero = TORCH.choose_qparams.tensor(x, -128, 127, 1e-5, torch.int8)
            q = TORCH.quantize_per_tensor.tensor(x, scale, zero, -128, 127, torch.int8)
            x = TORCH.dequantize_per_tensor.tensor(q, scale, zero, -128, 127, torch.int8)
            weight = TORCH.dequantize_per_channel(self.weight, self.scales, None, 0, -128, 127, torch.int8)
            return torch.nn.functional.linear(x, weight)

        self.compiles(program, "quantized_decomposed::dequantize_per_channel")


if __name__ == "__main__":
    unittest.main()
