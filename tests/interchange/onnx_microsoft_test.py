"""onnxruntime's own operators, com.microsoft: what is read gives what onnxruntime gives. Run by the Python of the
other side (in_environment.py)."""

import pathlib
import tempfile
import unittest

import composit
import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

CLOSE = 1e-5  # of the largest element: sums are made in other orders


class MicrosoftTest(unittest.TestCase):
    def setUp(self):
        self.random = np.random.default_rng(0)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = str(pathlib.Path(folder.name) / "model.onnx")

    def floats(self, *sizes):
        return self.random.standard_normal(sizes).astype(np.float32)

    def bytes(self, *sizes, dtype=np.uint8):
        bounds = np.iinfo(dtype)
        return self.random.integers(bounds.min, bounds.max + 1, sizes).astype(dtype)

    def save(self, op, inputs, known, results, attributes):
        names = [f"x{i}" if value is not None else "" for i, value in enumerate(inputs)]
        given = {n: v for i, (n, v) in enumerate(zip(names, inputs)) if n and i not in known}
        outputs = [f"y{i}" if i in results else "" for i in range(max(results) + 1)]
        node = helper.make_node(op, names, outputs, domain="com.microsoft", **attributes)
        graph = helper.make_graph(
            [node], "graph",
            [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
             for n, v in given.items()],
            [helper.make_empty_tensor_value_info(name) for name in outputs if name],
            [numpy_helper.from_array(inputs[i], names[i]) for i in known])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20),
                                                        helper.make_opsetid("com.microsoft", 1)], ir_version=10)
        onnx.save(model, self.path)
        return given

    def agrees(self, op, inputs, *, results=(0,), known=(), backends=("reference",), off=0, compared=None,
               **attributes):
        """`compared`: of the results; None: all. `off`: by how much integers may differ, where a number lies halfway
        between two."""
        inputs = [value if value is None else np.asarray(value) for value in inputs]
        given = self.save(op, inputs, known, results, attributes)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        theirs = onnxruntime.InferenceSession(self.path, options, providers=["CPUExecutionProvider"]).run(None, given)
        graph = composit.load_onnx(self.path)
        for backend in backends:
            ours = composit.evaluate(*graph.outputs, inputs=dict(zip(graph.inputs, given.values())), backend=backend)
            ours = ours if len(results) > 1 else (ours,)
            self.assertEqual(len(ours), len(theirs))
            for received, expected in ((ours[i], theirs[i]) for i in compared or range(len(theirs))):
                self.assertEqual((received.dtype, received.shape), (expected.dtype, expected.shape), op)
                apart = np.abs(received.astype(np.float64) - expected.astype(np.float64)).max(initial=0)
                allowed = CLOSE * np.abs(expected).max(initial=1e-30) if received.dtype.kind == "f" else off
                self.assertLessEqual(apart, allowed, f"{op} {attributes} by {backend}")

    def refused(self, message, op, inputs, *, known=(), **attributes):
        self.save(op, [value if value is None else np.asarray(value) for value in inputs], known, (0,), attributes)
        with self.assertRaisesRegex(Exception, message):
            composit.load_onnx(self.path)

    # ---- weights of few bits ------------------------------------------------------------------------

    def test_matmul_nbits(self):
        for bits, terms, block in ((4, 64, 32), (4, 96, 16), (4, 80, 32), (8, 64, 32)):
            columns, count = 24, -(-terms // block)
            width = block * bits // 8
            weight, scales = self.bytes(columns, count, width), self.floats(columns, count) * 0.1
            zeros = {"none": None, "packed": self.bytes(columns, -(-count * bits // 8)),
                     "floats": self.floats(columns, count)}
            for kind, zero in zeros.items():
                if kind == "floats" and bits == 8:
                    continue
                with self.subTest(bits=bits, terms=terms, zeros=kind):
                    self.agrees("MatMulNBits", [self.floats(2, 3, terms), weight, scales, zero],
                                known=[1, 2] + [3] * (zero is not None), backends=("reference", "mosaic", "cpp"),
                                K=terms, N=columns, bits=bits, block_size=block)
        self.agrees("MatMulNBits", [self.floats(3, 64), self.bytes(24, 2, 16), self.floats(24, 2), None, None,
                                    self.floats(24)], known=(1, 2), K=64, N=24, bits=4, block_size=32)
        for attributes, message in (({"bits": 3}, "bits: 4 and 8"), ({"block_size": 0}, "out of range"),
                                    ({"K": 65}, "no K columns"), ({"N": 25}, "a scale per block")):
            self.refused(message, "MatMulNBits", [self.floats(3, 64), self.bytes(24, 2, 16), self.floats(24, 2)],
                         known=(1, 2), **({"K": 64, "N": 24, "bits": 4, "block_size": 32} | attributes))
        self.refused("24 rows of 32 bytes", "MatMulNBits", [self.floats(3, 64), self.bytes(24, 2, 15),
                                                            self.floats(24, 2)], known=(1, 2), K=64, N=24,
                     bits=4, block_size=32)

    def test_products_that_quantize(self):
        x = self.floats(2, 5, 32)
        for dtype in (np.int8, np.uint8):
            weight = self.bytes(32, 24, dtype=dtype)
            for scale, zero in ((np.float32(0.02), dtype(3)), (np.abs(self.floats(24)), self.bytes(24, dtype=dtype))):
                for bias in (None, self.floats(24)):
                    self.agrees("DynamicQuantizeMatMul", [x, weight, scale, zero, bias], known=(1, 2, 3))
            self.agrees("MatMulIntegerToFloat", [self.bytes(5, 32), weight, np.float32(0.1), np.float32(0.02),
                                                 np.uint8(120), dtype(2), self.floats(24)])

    def test_integers_element_by_element(self):
        step, zero = np.float32(0.03), np.uint8(120)
        a, b = [self.bytes(2, 3, 4, 4), np.float32(0.02), np.uint8(100)], [self.bytes(2, 3, 4, 4), step, zero]
        for op in ("QLinearAdd", "QLinearMul"):
            self.agrees(op, [*a, *b, np.float32(0.05), np.uint8(9)], off=1)
        self.agrees("QLinearSigmoid", [*a, np.float32(1 / 256), np.uint8(0)], known=(1, 2, 3, 4), off=1)
        self.agrees("QLinearLeakyRelu", [*a, step, zero], known=(1, 2, 3, 4), off=1, alpha=0.1)
        self.agrees("QLinearGlobalAveragePool", [*a, step, zero], off=1, channels_last=0)
        self.agrees("QLinearConcat", [step, zero, *a, *b], known=(0, 1, 3, 4, 6, 7), off=1, axis=1)
        self.agrees("QuantizeLinear", [self.floats(4, 5), step, zero], off=1)
        self.agrees("DequantizeLinear", b)

    # ---- what is fused ------------------------------------------------------------------------------

    def test_activations(self):
        x, bias = self.floats(2, 3, 16), self.floats(16)
        self.agrees("BiasGelu", [x, bias])
        self.agrees("FastGelu", [x])
        self.agrees("FastGelu", [x, bias])
        self.agrees("Gelu", [x])
        self.agrees("QuickGelu", [x])
        self.agrees("QuickGelu", [x], alpha=1.2)
        self.agrees("FusedMatMul", [self.floats(2, 5, 3), self.floats(2, 4, 5)], transA=1, transB=1, alpha=0.3)

    def test_norms_of_sums(self):
        x, skip = self.floats(2, 3, 16), self.floats(2, 3, 16)
        gamma, beta, bias = self.floats(16), self.floats(16), self.floats(16)
        self.agrees("SkipLayerNormalization", [x, skip, gamma, beta, bias], results=(0, 3), epsilon=1e-5)
        self.agrees("SkipLayerNormalization", [x, skip[:1], gamma, beta])
        self.agrees("SkipLayerNormalization", [x, skip[0], gamma])
        self.agrees("SkipSimplifiedLayerNormalization", [x, skip, gamma, bias], results=(0, 3), epsilon=1e-6)

    # ---- attention ----------------------------------------------------------------------------------

    def test_attention(self):
        x, weight, bias = self.floats(2, 5, 16), self.floats(16, 48) * 0.3, self.floats(48)
        lengths, seen = np.array([5, 3], np.int32), np.array([[1, 1, 1, 1, 1], [1, 1, 0, 1, 0]], np.int32)
        for one in ({}, {"unidirectional": 1}, {"scale": 0.2}):
            self.agrees("Attention", [x, weight, bias], num_heads=4, **one)
            for mask in (lengths, seen):
                self.agrees("Attention", [x, weight, bias, mask], num_heads=4, **one)
            self.agrees("Attention", [x, weight, bias, None, None, self.floats(2, 4, 5, 5)], num_heads=4, **one)
            past = self.floats(2, 2, 4, 3, 4)
            self.agrees("Attention", [x, weight, bias, None, past], results=(0, 1), num_heads=4, **one)
        self.agrees("Attention", [x, self.floats(16, 40), self.floats(40)], num_heads=4, qkv_hidden_sizes=[16, 16, 8])
        self.refused("masks of sizes", "Attention", [x, weight, bias, np.ones((2, 4), np.int32)], num_heads=4)
        self.refused("multiple of the heads", "Attention", [x, weight, bias], num_heads=3)

    def test_heads_of_their_own(self):
        q, k, v = self.floats(2, 5, 16), self.floats(2, 7, 16), self.floats(2, 7, 16)
        self.agrees("MultiHeadAttention", [q, k, v], num_heads=4)
        self.agrees("MultiHeadAttention", [q, k, v, self.floats(48), None, self.floats(1, 4, 5, 7)], num_heads=4)
        self.agrees("MultiHeadAttention", [q, k, v, None, np.array([[1] * 7, [1] * 4 + [0] * 3], np.int32)],
                    num_heads=4)
        k, v, past = k[:, :5], v[:, :5], [self.floats(2, 4, 3, 4), self.floats(2, 4, 3, 4)]
        self.agrees("MultiHeadAttention", [q, k, v, None, None, None, *past], results=(0, 1, 2), num_heads=4,
                    unidirectional=1)

    def angles(self, size):
        angle = np.arange(32)[:, None] / 100 ** (np.arange(size // 2) / size)
        return np.cos(angle).astype("f4"), np.sin(angle).astype("f4")

    def test_positions(self):
        tables = self.angles(8)
        for places in (np.array([3]), np.array([[0, 1, 2, 3, 9], [4, 5, 6, 7, 8]])):
            for pairs in (0, 1):
                self.agrees("RotaryEmbedding", [self.floats(2, 4, 5, 8), places, *tables], interleaved=pairs)
                self.agrees("RotaryEmbedding", [self.floats(2, 5, 32), places, *tables], interleaved=pairs)
                self.agrees("RotaryEmbedding", [self.floats(2, 5, 48), places, *tables], interleaved=pairs,
                            num_heads=4, rotary_embedding_dim=8)

    def test_heads_that_share_keys(self):
        heads = {"num_heads": 4, "kv_num_heads": 2}
        def call(batch, tokens, total, lengths, cache, packed=False, **attributes):
            q, k, v = (self.floats(batch, tokens, n * 16) for n in (4, 2, 2))
            inputs = [np.concatenate([q, k, v], 2), None, None] if packed else [q, k, v]
            past = [None, None] if cache == 0 else [self.floats(batch, 2, cache, 16) for _ in range(2)]
            inputs += [*past, np.array(lengths, np.int32), np.array(total, np.int32)]
            if attributes.get("do_rotary"):
                inputs += self.angles(16)
            # What lies behind the tokens of a batch in the cache is left open.
            compared = (0, 1, 2) if min(lengths) + 1 == total else (0,)
            self.agrees("GroupQueryAttention", inputs, known=(6,), results=(0, 1, 2), compared=compared, **heads,
                        **attributes)

        for more in ({}, {"do_rotary": 1}, {"do_rotary": 1, "rotary_interleaved": 1}, {"local_window_size": 2},
                     {"softcap": 1.5}, {"scale": 0.1}):
            with self.subTest(**more):
                call(2, 5, 5, [4, 4], 0, **more)             # a prompt
                call(2, 5, 5, [4, 4], 0, packed=True, **more)
                call(2, 1, 7, [6, 6], 6, **more)             # a token behind six
                call(2, 1, 7, [6, 3], 6, **more)             # of batches that are as long as they are
                call(1, 3, 9, [8], 6, **more)                # several at once

    def test_unknown_operators_are_named(self):
        self.refused("com.microsoft::NGramRepeatBlock", "NGramRepeatBlock", [np.zeros((1, 3), np.int64),
                                                                            self.floats(1, 3)], ngram_size=3)


if __name__ == "__main__":
    unittest.main()
