"""Programs that torchao quantizes: its operators' definitions have their bits, and what it makes of a module is
captured, replayed with eager's bits and compiled.

Where torchao is not installed, the operators are those that this file defines as torchao 0.18 does."""

import itertools
import unittest

import no_looks  # noqa: F401  before flashlight
import numpy
import torch

import composit
import flashlight
from array_agreement import difference

NAMES = {torch.float32: "float32", torch.bfloat16: "bfloat16", torch.float16: "float16", torch.int8: "int8",
         torch.uint8: "uint8", torch.int32: "int32"}
BITS = {torch.int8: (-128, 127), torch.uint8: (0, 255)}


def blocks(x, block):
    """Sizes with blocks as axes, those axes, and the sizes of scales."""
    sizes, reduced = [], []
    for size, part in zip(x.shape, block, strict=True):
        sizes += [size // part, part] if part not in (1, size) else [size]
        if part != 1:
            reduced.append(len(sizes) - 1)
    return sizes, reduced, [1 if i in reduced else size for i, size in enumerate(sizes)]


def choose(input, mapping_type, block_size, target_dtype, quant_min=None, quant_max=None, eps=None, scale_dtype=None,
           zero_point_dtype=None, keepdim=False):
    sizes, reduced, _ = blocks(input, block_size)
    low, high = quant_min or BITS[target_dtype][0], quant_max or BITS[target_dtype][1]
    least = input.view(sizes).amin(reduced, keepdim=keepdim).clamp(max=0)
    most = input.view(sizes).amax(reduced, keepdim=keepdim).clamp(min=0)
    eps = torch.finfo(input.dtype).smallest_normal if eps is None else eps
    if mapping_type == "ASYMMETRIC":
        scale = ((most - least) / float(high - low)).clamp(min=eps)
        zero = (low - torch.round(least / scale)).clamp(low, high)
        zero_point_dtype = zero_point_dtype or torch.int32
    else:
        scale = torch.maximum(-least, most) / (float(high - low) / 2)
        if mapping_type == "SYMMETRIC_NO_CLIPPING_ERR":
            scale = torch.maximum(least / float(low), most / float(high))
        scale = scale.clamp(min=eps)
        zero = torch.full_like(scale, int((high + low + 1) / 2))
    if keepdim:
        shape = [size // part for size, part in zip(input.shape, block_size)]
        scale, zero = scale.reshape(shape), zero.reshape(shape)
    return scale.to(scale_dtype or input.dtype), zero.to(zero_point_dtype or zero.dtype)


def quantize(input, block_size, scale, zero_point, output_dtype, quant_min=None, quant_max=None):
    sizes, _, scales = blocks(input, block_size)
    low, high = quant_min or BITS[output_dtype][0], quant_max or BITS[output_dtype][1]
    scaled = torch.round(input.view(sizes) * (1.0 / scale.view(scales))) + zero_point.view(scales)
    return scaled.clamp(low, high).view(input.shape).to(output_dtype)


def dequantize(input, block_size, scale, zero_point, input_dtype, quant_min=None, quant_max=None,
               output_dtype=torch.float32):
    sizes, _, scales = blocks(input, block_size)
    moved = input.view(sizes).to(output_dtype)
    if zero_point is not None:
        moved = moved - zero_point.view(scales).to(output_dtype)
    return (moved * scale.view(scales)).view(input.shape).to(output_dtype)


def define_operators():
    """torchao's own operators if there is a torchao, else those above."""
    try:
        import torchao  # noqa: F401
        return None
    except ImportError:
        pass
    library = torch.library.Library("torchao", "DEF")
    for schema, function in (
            ("choose_qparams_affine(Tensor? input, str mapping_type, SymInt[] block_size, ScalarType target_dtype, "
             "Scalar? quant_min=None, Scalar? quant_max=None, float? eps=None, ScalarType? scale_dtype=None, "
             "ScalarType? zero_point_dtype=None, bool keepdim=False) -> (Tensor, Tensor)", choose),
            ("quantize_affine(Tensor input, SymInt[] block_size, Tensor scale, Tensor? zero_point, ScalarType "
             "output_dtype, Scalar? quant_min=None, Scalar? quant_max=None) -> Tensor", quantize),
            ("dequantize_affine(Tensor input, SymInt[] block_size, Tensor scale, Tensor? zero_point, ScalarType "
             "input_dtype, Scalar? quant_min=None, Scalar? quant_max=None, ScalarType output_dtype=6) -> Tensor",
             dequantize)):
        library.define(schema)
        library.impl(schema.split("(")[0], function, "CompositeExplicitAutograd")
    return library


LIBRARY = define_operators()
TORCHAO = torch.ops.torchao


class TorchaoTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(3)

    def agree(self, program, *inputs):
        """The definitions' values, bit by bit."""
        with torch.no_grad():
            captured = flashlight.trace(program, *inputs)
            expected = program(*inputs)
        self.assertTrue(any(node.op.startswith("torchao::") for node in captured.graph.nodes))
        received = captured.compile("reference")(*inputs)
        for ours, theirs in zip(received, expected, strict=True):
            self.assertEqual(ours.dtype, theirs.dtype)
            numpy.testing.assert_array_equal(ours.float().numpy(), theirs.float().numpy())

    def test_scales_are_chosen(self):
        mappings = ("ASYMMETRIC", "SYMMETRIC", "SYMMETRIC_NO_CLIPPING_ERR")
        for mapping, block, dtype in itertools.product(mappings, ([1, 32], [4, 8], [1, 8]), NAMES):
            if not dtype.is_floating_point:
                continue
            for low, high, integers, keepdim in ((-128, 127, torch.int8, True), (-8, 7, torch.int8, False)):
                self.agree(lambda x: TORCHAO.choose_qparams_affine(
                    x, mapping, block, integers, low, high, 1e-6, torch.float32, torch.int8, keepdim),
                    torch.randn(4, 32).to(dtype))

    def test_numbers_are_rounded(self):
        for dtype, zeros in itertools.product((torch.float32, torch.bfloat16), (torch.int8, torch.int32)):
            def program(x):
                scale, zero = TORCHAO.choose_qparams_affine(x, "ASYMMETRIC", [1, 8], torch.uint8,
                                                            zero_point_dtype=torch.uint8)
                q = TORCHAO.quantize_affine(x, [1, 8], scale, zero.to(zeros), torch.uint8)
                back = TORCHAO.dequantize_affine(q, [1, 8], scale, zero.to(zeros), torch.uint8, output_dtype=dtype)
                return scale, zero, q, back

            self.agree(program, torch.randn(4, 32).to(dtype))

    def test_modules(self):
        """Weights of 4 bits in groups, inputs quantized by token, as torchao runs them without its own kernels."""
        codes, scales = torch.randint(-8, 8, (48, 64), dtype=torch.int8), torch.rand(48, 2) * 0.1
        zeros = torch.randint(-2, 2, (48, 2), dtype=torch.int8)

        def program(x):
            scale, zero = TORCHAO.choose_qparams_affine(x, "ASYMMETRIC", [1, 64], torch.int8, -128, 127, None, None,
                                                        torch.int8)
            q = TORCHAO.quantize_affine(x, [1, 64], scale, zero, torch.int8, -128, 127)
            x = TORCHAO.dequantize_affine(q, [1, 64], scale, zero, torch.int8, -128, 127)
            weight = TORCHAO.dequantize_affine(codes, [1, 32], scales, zeros, torch.int8, -8, 7)
            return torch.nn.functional.linear(x, weight)

        x = torch.randn(5, 64)
        with torch.no_grad():
            captured, expected = flashlight.trace(program, x), program(x)
            self.assertTrue(torch.equal(captured(x), expected))
            for backend in ("reference", "cpp", "mosaic"):
                self.assertEqual(difference(captured.compile(backend)(x).numpy(), expected.numpy(), 4), "", backend)

    def test_wrong_use(self):
        text = ("graph(%x: float32[4, 32]) {\n  %s, %z: float32[4, 1], int8[4, 1] = torchao::choose_qparams_affine(%x, "
                "mapping_type=MAPPING, block_size=BLOCK, target_dtype=int8, keepdim=true)\n  return %s\n}\n")
        for mapping, block, message in (('"LINEAR"', "[1, 32]", "expected mapping_type"),
                                        ('"SYMMETRIC"', "[1, 5]", "blocks of 5 do not divide the 32 elements"),
                                        ('"SYMMETRIC"', "[32]", "a size of blocks per axis")):
            with self.assertRaisesRegex(Exception, message):
                composit.parse(text.replace("MAPPING", mapping).replace("BLOCK", block)).evaluate(
                    [numpy.zeros((4, 32), numpy.float32)])


if __name__ == "__main__":
    unittest.main()
