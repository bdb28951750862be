"""Quantized captures as mosaic compiles them, with products of bytes: as near to the same program in float64 as torch's
own replay is. Where a number lies halfway between two integers, the last bit of a float decides, in torch as well."""

import re
import unittest

import no_looks  # noqa: F401  before flashlight
import numpy
import torch
import torch.ao.quantization.fx._decomposed  # noqa: F401  registers the operators

import composit
import flashlight

OFF = 1.5  # times torch's error


class Text(torch.nn.Module):
    """Two encoder layers."""

    def __init__(self):
        super().__init__()
        layer = torch.nn.TransformerEncoderLayer(64, 4, 128, activation="gelu", batch_first=True)
        self.embedding = torch.nn.Embedding(40, 64)
        self.layers = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = torch.nn.Linear(64, 10)

    def forward(self, tokens):
        return self.head(self.layers(self.embedding(tokens)))


class Images(torch.nn.Module):
    """Residual blocks with norms, a stride and a pooling."""

    def __init__(self):
        super().__init__()
        conv = torch.nn.Conv2d
        self.stem, self.first = conv(3, 16, 7, 2, 3), conv(16, 16, 3, 1, 1)
        self.norm, self.second = torch.nn.BatchNorm2d(16), conv(16, 16, 3, 1, 1)
        self.down, self.head = conv(16, 24, 1, 2), torch.nn.Linear(24, 10)

    def forward(self, x):
        x = torch.nn.functional.max_pool2d(torch.relu(self.stem(x)), 3, 2, 1)
        x = torch.relu(x + self.second(torch.relu(self.norm(self.first(x)))))
        return self.head(torch.relu(self.down(x)).mean((2, 3)))


def in_float64(graph):
    """The same program, of the same integers, with float64 for all that is float32."""
    text = str(graph.run_passes("decompose"))
    return composit.parse(re.sub(r"\bfloat32\b", "float64", text))


def wide(array):
    return array.astype(numpy.float64) if array.dtype == numpy.float32 else array


class QuantizedProductsTest(unittest.TestCase):
    def check(self, model, example, **options):
        with torch.no_grad():
            captured = flashlight.trace(model.eval(), example)
            small, report = captured.quantize(backend="reference", **options)
            self.assertEqual([layer.weight for layer in report.layers if layer.left], [])
            compiled, theirs = small.compile("mosaic"), small(example)
            ours = compiled(example)
        self.assertIn("fl::contract_bytes<", compiled.source())
        self.assertNotIn("fl::contract<", compiled.source())
        state = {name: tensor.numpy() for name, tensor in dict(small.state()).items()}
        graph = in_float64(small.graph)
        values = [wide(state.get(tensor.name, example.numpy())) for tensor in graph.inputs]
        expected = graph.evaluate(values)[0]
        error = lambda result: float(numpy.sqrt(numpy.square(result.numpy() - expected).mean()))
        self.assertLess(error(ours), OFF * error(theirs) + 1e-6 * float(numpy.std(expected)))
        self.assertLess(error(theirs), 0.1 * float(numpy.std(expected)))  # it is the same program

    def setUp(self):
        torch.manual_seed(5)
        torch.backends.mha.set_fastpath_enabled(False)  # one operator for a layer

    def test_text(self):
        for activations in ("calibrated", "by_token"):
            with self.subTest(activations):
                self.check(Text(), torch.randint(0, 40, (2, 24)), activations=activations)

    def test_images(self):
        self.check(Images(), torch.randn(2, 3, 40, 36), activations="calibrated")


if __name__ == "__main__":
    unittest.main()
