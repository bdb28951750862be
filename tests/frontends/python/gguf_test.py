"""Weights of a GGUF file, computed with as they lie by every backend. The numbers are those of the package `gguf`
(tests/io/make_gguf.py)."""

import pathlib
import unittest

import numpy
from safetensors.numpy import load_file

import composit

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "io/gguf"
BLOCKS = ("q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q4_k", "q5_k", "q6_k", "q2_k", "q3_k", "iq4_nl", "iq4_xs")


class GgufTest(unittest.TestCase):
    def setUp(self):
        self.tensors = composit.load_gguf(FOLDER / "formats.gguf")
        self.numbers = load_file(FOLDER / "formats.safetensors")

    def test_products_with_blocks(self):
        rng = numpy.random.default_rng(0)
        x = rng.standard_normal((5, 768)).astype(numpy.float32)
        products = [composit.matmul(x, self.tensors[name].T) for name in BLOCKS]
        for backend in ("reference", "cpp", "mosaic"):
            for name, received in zip(BLOCKS, composit.evaluate(*products, backend=backend)):
                w = self.numbers[name].astype(numpy.float64)
                exact, size = x.astype(numpy.float64) @ w.T, numpy.abs(x).astype(numpy.float64) @ numpy.abs(w).T
                # Of sums of 768 products in float32.
                self.assertLess(numpy.max(numpy.abs(received - exact) / size), 1e-6, (backend, name))

    def test_numbers(self):
        for name in ("f32", "f16", "f64", "i8", "i32"):
            numpy.testing.assert_array_equal(composit.evaluate(self.tensors[name]), self.numbers[name])
        for backend in ("cpp", "mosaic"):
            values = composit.evaluate(*(self.tensors[name] for name in BLOCKS), backend=backend)
            for name, received in zip(BLOCKS, values):
                # A product and a difference may be rounded as one.
                numpy.testing.assert_allclose(received, self.numbers[name], rtol=1e-6,
                                              atol=1e-6 * numpy.abs(self.numbers[name]).max(), err_msg=name)

    def test_wrong_files(self):
        with self.assertRaisesRegex(composit.Error, "begins with no 'GGUF'"):
            composit.load_gguf(FOLDER / "formats.safetensors")


if __name__ == "__main__":
    unittest.main()
