"""Operators as older versions of ONNX had them, and cases that ONNX's own do not have: what is read
gives what onnxruntime gives."""

import pathlib
import tempfile
import unittest
import warnings

import composit
import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

CLOSE = 1e-5  # of the largest element: sums are made in other orders


def run(path, inputs):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


class VersionsTest(unittest.TestCase):

    def setUp(self):
        self.random = np.random.default_rng(0)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = str(pathlib.Path(folder.name) / "model.onnx")

    def floats(self, *sizes):
        return self.random.standard_normal(sizes).astype(np.float32)

    def agrees(self, opset, op, inputs, *, outputs=1, known=(), backends=("reference",), **attributes):
        """`inputs`: arrays, or None for an operand that is left out; those of the places `known` are
        initializers."""
        inputs = [value if value is None else np.asarray(value) for value in inputs]
        names = [f"x{i}" if value is not None else "" for i, value in enumerate(inputs)]
        given = {n: v for i, (n, v) in enumerate(zip(names, inputs)) if n and i not in known}
        node = helper.make_node(op, names, [f"y{i}" for i in range(outputs)], **attributes)
        graph = helper.make_graph(
            [node], "graph",
            [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
             for n, v in given.items()],
            [helper.make_empty_tensor_value_info(f"y{i}") for i in range(outputs)],
            [numpy_helper.from_array(inputs[i], names[i]) for i in known])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
        onnx.save(model, self.path)
        graph = composit.load_onnx(self.path)
        arguments = dict(zip(graph.inputs, given.values()))
        for backend in backends:
            ours = composit.evaluate(*graph.outputs, inputs=arguments, backend=backend)
            for received, expected in zip(ours if outputs > 1 else (ours,), run(self.path, given), strict=True):
                self.assertEqual((received.dtype, received.shape), (expected.dtype, expected.shape))
                if received.dtype.kind != "f":
                    np.testing.assert_array_equal(received, expected)
                else:
                    largest = np.abs(expected[np.isfinite(expected)], dtype=np.float64).max(initial=1e-30)
                    np.testing.assert_allclose(received, expected, rtol=0, atol=CLOSE * largest)

    def test_axes_that_are_joined(self):
        for op in ("Softmax", "LogSoftmax", "Hardmax"):
            for opset, axis in ((7, 1), (11, 2), (12, -1), (12, 0), (13, 1), (13, -1)):
                with self.subTest(op, opset=opset, axis=axis):
                    self.agrees(opset, op, [self.floats(2, 3, 4)], axis=axis)

    def test_attributes_that_became_operands(self):
        x, i64 = self.floats(2, 3, 4), lambda *v: np.array(v, np.int64)
        self.agrees(7, "Clip", [x], min=-0.5, max=0.25)
        self.agrees(10, "Clip", [x], max=0.25)
        self.agrees(11, "Clip", [x, None, np.float32(0.5)])
        self.agrees(7, "Slice", [x], starts=[1, -3], ends=[2, 100], axes=[0, 2])
        self.agrees(10, "Slice", [x, i64(-1), i64(-100), i64(2), i64(-2)], known=(1, 2, 3, 4))
        self.agrees(7, "Pad", [x], pads=[0, 1, 2, 0, 0, -1], value=1.5)
        self.agrees(10, "Pad", [x], pads=[0, 1, 2, 0, 1, 1], mode="reflect")
        self.agrees(11, "Pad", [x, i64(0, 1, 2, 0, 2, 3), np.float32(3)], known=(1,))
        self.agrees(11, "Squeeze", [self.floats(1, 3, 1)], axes=[0, -1])
        self.agrees(13, "Squeeze", [self.floats(1, 3, 1)])
        self.agrees(11, "Unsqueeze", [x], axes=[0, -1])
        self.agrees(7, "Split", [x], axis=2, outputs=2)
        self.agrees(11, "Split", [x], axis=1, outputs=2, split=[1, 2])
        self.agrees(9, "TopK", [x], k=2, outputs=2)
        self.agrees(7, "Upsample", [self.floats(1, 2, 3, 4)], scales=[1.0, 1.0, 2.0, 2.0])
        self.agrees(9, "Upsample", [self.floats(1, 2, 3, 4), np.array([1, 1, 2, 3], np.float32)],
                    known=(1,), mode="linear")
        self.agrees(10, "Resize", [self.floats(1, 2, 3, 4), np.array([1, 1, 2, 2], np.float32)],
                    known=(1,), mode="nearest")
        self.agrees(7, "Dropout", [x], ratio=0.3)
        self.agrees(12, "Dropout", [x, np.float32(0.5)], outputs=2)

    def test_reductions(self):
        x = self.floats(2, 3, 4)
        for op in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSumExp"):
            with self.subTest(op):
                self.agrees(11, f"Reduce{op}", [x], axes=[0, -1], keepdims=0)
                self.agrees(12, f"Reduce{op}", [x])
                self.agrees(18, f"Reduce{op}", [x, np.array([1], np.int64)], known=(1,))
        self.agrees(11, "ReduceLogSum", [np.abs(x)], axes=[1])
        self.agrees(13, "ReduceSum", [x, np.array([], np.int64)], known=(1,), noop_with_empty_axes=1)

    def test_normalizations(self):
        x, c = self.floats(2, 4, 3, 3), lambda: self.floats(4)
        for opset in (7, 9, 14, 15):
            self.agrees(opset, "BatchNormalization", [x, c(), c(), c(), np.abs(c())], epsilon=1e-3)
        self.agrees(18, "GroupNormalization", [x, self.floats(2), self.floats(2)], num_groups=2)
        self.agrees(21, "GroupNormalization", [x, c(), c()], num_groups=2)
        self.agrees(17, "LayerNormalization", [x, self.floats(3, 3), self.floats(3, 3)], axis=2, outputs=3)
        self.agrees(9, "LRN", [x], size=3, alpha=0.1)

    def test_products(self):
        a, b = self.floats(3, 4), self.floats(4, 5)
        self.agrees(7, "Gemm", [a, b, self.floats(3, 5)], alpha=0.5, beta=2.0)
        self.agrees(9, "Gemm", [a.T.copy(), b.T.copy(), self.floats(1)], transA=1, transB=1)
        self.agrees(11, "Gemm", [a, b.T.copy()], transB=1, backends=("reference", "cpp", "mosaic"))
        self.agrees(12, "Einsum", [self.floats(2, 3, 4), self.floats(2, 4, 5)], equation=" bij , bjk -> bik ")

    def test_windows(self):
        x, w = self.floats(1, 4, 7, 8), self.floats(6, 2, 3, 3)
        compiled = ("reference", "cpp", "mosaic")
        self.agrees(11, "Conv", [x, w, self.floats(6)], group=2, pads=[1, 0, 2, 1], strides=[2, 1],
                    dilations=[1, 2], backends=compiled)
        for automatic in ("SAME_UPPER", "SAME_LOWER", "VALID"):
            self.agrees(11, "Conv", [x, w], group=2, auto_pad=automatic, strides=[2, 2])
            self.agrees(11, "ConvTranspose", [x, self.floats(4, 3, 3, 3)], auto_pad=automatic, strides=[2, 2])
            self.agrees(11, "MaxPool", [x], kernel_shape=[3, 2], auto_pad=automatic, strides=[2, 2])
            self.agrees(11, "AveragePool", [x], kernel_shape=[3, 2], auto_pad=automatic, strides=[2, 2])
        self.agrees(11, "ConvTranspose", [x, self.floats(4, 3, 3, 3), self.floats(6)], group=2,
                    pads=[0, 1, 1, 0], strides=[2, 3], output_padding=[1, 2], backends=compiled)
        self.agrees(12, "MaxPool", [x], kernel_shape=[3, 3], pads=[1, 1, 1, 1], ceil_mode=1,
                    strides=[2, 2], outputs=2)
        for padding in (0, 1):
            self.agrees(11, "AveragePool", [x], kernel_shape=[3, 3], pads=[1, 0, 2, 1],
                        strides=[2, 2], count_include_pad=padding)
        self.agrees(11, "LpPool", [x], kernel_shape=[2, 2], p=2)

    def test_recurrences(self):
        steps, batch, size, hidden = 4, 2, 3, 5
        x = self.floats(steps, batch, size)
        for op, gates, states in (("LSTM", 4, 2), ("GRU", 3, 1), ("RNN", 1, 1)):
            for direction in ("forward", "reverse", "bidirectional"):
                many = 2 if direction == "bidirectional" else 1
                weights = [self.floats(many, gates * hidden, size), self.floats(many, gates * hidden, hidden),
                           self.floats(many, 2 * gates * hidden)]
                start = [self.floats(many, batch, hidden) for _ in range(states)]
                with self.subTest(op, direction=direction):
                    more = {"linear_before_reset": 1} if op == "GRU" else {}
                    for options in ({}, more):
                        self.agrees(14, op, [x, *weights, None, *start], hidden_size=hidden,
                                    direction=direction, outputs=1 + states, **options)
                    self.agrees(14, op, [x, *weights[:2]], hidden_size=hidden, direction=direction,
                                outputs=1 + states)

    def test_resizing(self):
        x = self.floats(1, 2, 5, 6)
        # Of other scales, onnxruntime rounds the result's size before it looks for corners, which ONNX's
        # own cases do not.
        scales = np.array([1, 1, 1.6, 0.5], np.float32)
        sizes = np.array([1, 2, 3, 9], np.int64)
        for mode in ("nearest", "linear", "cubic"):
            for coordinates in ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"):
                with self.subTest(mode, coordinates=coordinates):
                    options = {"mode": mode, "coordinate_transformation_mode": coordinates}
                    self.agrees(13, "Resize", [x, None, scales], known=(2,), **options)
                    self.agrees(13, "Resize", [x, None, None, sizes], known=(3,), **options)

    def test_quantized(self):
        x, w = (self.random.integers(0, 255, s).astype(np.uint8) for s in ((1, 2, 5, 5), (3, 2, 3, 3)))
        scale, zero = np.float32(0.02), np.uint8(120)
        self.agrees(13, "QuantizeLinear", [self.floats(2, 3), np.float32(0.1), np.int8(3)])
        self.agrees(13, "DequantizeLinear", [x, self.floats(5), None], axis=2)
        self.agrees(11, "DynamicQuantizeLinear", [self.floats(3, 4)], outputs=3)
        self.agrees(10, "QLinearConv", [x, scale, zero, w, scale, zero, np.float32(0.3), zero])
        self.agrees(10, "ConvInteger", [x, w, zero, zero])
        self.agrees(10, "MatMulInteger", [x[0, 0], x[0, 1], zero, zero])

    def test_sorting_and_scattering(self):
        x, places = self.floats(3, 4), np.array([[0, 2, 1, 0]], np.int64)
        self.agrees(11, "TopK", [np.round(x), np.array([3], np.int64)], known=(1,), outputs=2)
        self.agrees(9, "Scatter", [x, places, self.floats(1, 4)])
        self.agrees(11, "CumSum", [x, np.int64(1)], known=(1,), exclusive=1, reverse=1)
        for reduction in ("none", "add", "mul", "max", "min"):
            self.agrees(18, "ScatterElements", [x, places, self.floats(1, 4)], reduction=reduction)
            self.agrees(18, "ScatterND", [x, np.array([[2], [0]], np.int64), self.floats(2, 4)],
                        reduction=reduction)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    unittest.main()
