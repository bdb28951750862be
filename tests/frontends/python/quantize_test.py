"""Quantized captures: integers are those that torch's operators and a float64 version of each method give,
results those that torch gives with the weights that these integers stand for."""

import pathlib
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
CHAIN = 4  # operations, of which sums in other orders differ


class Model(torch.nn.Module):
    """Linear layers spelled in all ways, an embedding that shares its weight, a convolution."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(40, 64)
        self.up = torch.nn.Linear(64, 96)
        self.down = torch.nn.Linear(96, 64)
        self.norm = torch.nn.LayerNorm(64)
        self.by_inputs = torch.nn.Parameter(torch.randn(64, 32) * 0.1)
        self.convolution = torch.nn.Conv1d(32, 8, 3, padding=1)

    def forward(self, tokens):
        x = self.embedding(tokens)
        x = x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))
        y = self.convolution((x @ self.by_inputs).transpose(1, 2))
        return x @ self.embedding.weight.t(), y


LINEAR = ("embedding.weight", "up.weight", "down.weight", "by_inputs")


def limits(bits):
    return -2 ** (bits - 1), 2 ** (bits - 1) - 1


def steps_of(groups, bits, symmetric):
    """Scale and zero point per group, by torch."""
    low, high = limits(bits)
    choose = TORCH.choose_qparams_symmetric.tensor if symmetric else TORCH.choose_qparams.tensor
    chosen = [choose(group, low, high, torch.finfo(torch.float32).eps, torch.int8) for group in groups]
    return torch.cat([scale for scale, _ in chosen]).float(), torch.cat([zero for _, zero in chosen])


def nearest(matrix, bits, group, symmetric):
    """[out, in] as torch's operators quantize it: integers, and the numbers that they stand for."""
    low, high = limits(bits)
    width = group or matrix.shape[1]
    scales, zeros = steps_of(matrix.reshape(-1, width), bits, symmetric)
    scales, zeros = scales.reshape(len(matrix), -1), zeros.reshape(len(matrix), -1).int()
    integers = TORCH.quantize_per_channel(matrix.reshape(-1, width), scales.flatten(), zeros.flatten(), 0, low, high,
                                          torch.int8).reshape(matrix.shape)
    numbers = TORCH.dequantize_per_channel_group(integers, scales, zeros, low, high, torch.int8, width, torch.float32)
    return integers, numbers


class QuantizeTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(3)
        self.model = Model().eval()
        self.tokens = torch.randint(0, 40, (2, 12))
        with torch.no_grad():
            self.captured = flashlight.trace(self.model, self.tokens)

    def state(self, captured):
        return dict(captured.state())

    def with_weights(self, weights):
        """The model's results with other weights."""
        other = Model().eval()
        state = self.model.state_dict() | weights
        other.load_state_dict(state)
        with torch.no_grad():
            return other(self.tokens)

    def assert_close(self, received, expected):
        self.assertEqual(difference(received.float().numpy(), expected.float().numpy(), CHAIN), "")

    def quantize(self, *arguments, **options):
        """By the reference, which compiles nothing."""
        return self.captured.quantize(*arguments, **{"backend": "reference"} | options)

    def assert_results(self, small, expected, backends=()):
        with torch.no_grad():
            for received, theirs in zip(small(self.tokens), expected):
                self.assert_close(received, theirs)
            for backend in backends:
                for received, theirs in zip(small.compile(backend)(self.tokens), expected):
                    self.assert_close(received, theirs)

    def test_integers_and_results_are_torchs(self):
        for bits, group, symmetric in ((8, 0, True), (8, 0, False), (8, 32, True), (4, 32, True), (4, 32, False)):
            with self.subTest(bits=bits, group=group, symmetric=symmetric):
                small, report = self.quantize(weights=f"int{bits}", group=group, symmetric=symmetric,
                                                       exclude=["convolution.weight"])
                state, weights = self.state(small), {}
                for name in LINEAR:
                    turned = name == "by_inputs"
                    matrix = self.model.state_dict()[name]
                    integers, numbers = nearest(matrix.t().contiguous() if turned else matrix, bits, group, symmetric)
                    stored = state[f"{name}.int{bits}"]
                    if bits == 4:
                        stored = torch.stack([stored & 15, stored >> 4], -1).flatten(1).to(torch.int8)
                        stored = torch.where(stored > 7, stored - 16, stored)
                    self.assertTrue(torch.equal(stored, integers), name)
                    weights[name] = numbers.t().contiguous() if turned else numbers
                backends = ("cpp", "mosaic") if group == 32 and not symmetric else ()
                self.assert_results(small, self.with_weights(weights), backends)
                self.assertEqual([layer.left for layer in report.layers if layer.left], ["left out"])

    def test_convolutions_by_channel(self):
        small, _ = self.quantize(layers=["convolution*"])
        weight = self.model.state_dict()["convolution.weight"]
        _, numbers = nearest(weight.flatten(1), 8, 0, True)
        self.assert_results(small, self.with_weights({"convolution.weight": numbers.reshape(weight.shape)}))

    def test_inputs_by_token(self):
        small, _ = self.quantize(activations="by_token", layers=["up.weight"])
        _, numbers = nearest(self.model.state_dict()["up.weight"], 8, 0, True)
        model, linear = self.model, torch.nn.functional.linear

        def through(x):
            scales, zeros = TORCH.choose_qparams_per_token(x, torch.int8)
            q = TORCH.quantize_per_token(x, scales, zeros, -128, 127, torch.int8)
            return TORCH.dequantize_per_token(q, scales, zeros, -128, 127, torch.int8, torch.float32)

        with torch.no_grad():
            x = model.embedding(self.tokens)
            x = x + model.down(torch.nn.functional.gelu(linear(through(model.norm(x)), numbers, model.up.bias)))
            expected = x @ model.embedding.weight.t(), model.convolution((x @ model.by_inputs).transpose(1, 2))
        self.assert_results(small, expected)

    def test_calibrated_inputs_cover_the_examples(self):
        examples = [[torch.randint(0, 40, (2, 12))] for _ in range(3)]
        small, _ = self.quantize(examples, activations="calibrated", layers=["up.weight"])
        with torch.no_grad():
            seen = torch.cat([self.model.norm(self.model.embedding(x)).flatten() for [x] in examples])
        node = next(n for n in small.graph.nodes if n.op == "quantized_decomposed::quantize_per_tensor")
        scale, zero = node.attributes["scale"], node.attributes["zero_point"]
        self.assertAlmostEqual(scale, float(seen.max() - seen.min()) / 255, delta=1e-6)
        self.assertLessEqual(abs((-128 - zero) * scale - float(seen.min())), scale / 2 + 1e-6)

    def test_all_readers_of_a_calibrated_input_get_it_rounded(self):
        small, _ = self.quantize(activations="calibrated", all_readers=True, layers=["by_inputs"])
        quantize = [n for n in small.graph.nodes if n.op == "quantized_decomposed::quantize_per_tensor"]
        scale, zero = quantize[0].attributes["scale"], quantize[0].attributes["zero_point"]
        _, numbers = nearest(self.model.state_dict()["by_inputs"].t(), 8, 0, True)
        model = self.model
        with torch.no_grad():
            x = model.embedding(self.tokens)
            x = x + model.down(torch.nn.functional.gelu(model.up(model.norm(x))))
            q = TORCH.quantize_per_tensor(x, scale, zero, -128, 127, torch.int8)
            x = TORCH.dequantize_per_tensor(q, scale, zero, -128, 127, torch.int8)
            expected = x @ model.embedding.weight.t(), model.convolution((x @ numbers.t()).transpose(1, 2))
        self.assert_results(small, expected)
        with self.assertRaisesRegex(flashlight.Error, "all readers: expected calibrated"):
            self.quantize(all_readers=True)

    def test_gptq_is_the_papers(self):
        small, report = self.quantize(weights="int4", group=32, method="gptq", layers=["up.weight"])
        with torch.no_grad():
            x = self.model.norm(self.model.embedding(self.tokens)).reshape(-1, 64).double()
        w = self.model.state_dict()["up.weight"].double()
        gram = x.T @ x
        gram += 0.01 * gram.diagonal().mean() * torch.eye(64, dtype=torch.float64)
        factor = torch.linalg.cholesky(torch.linalg.inv(gram), upper=True)
        left, numbers = w.clone(), torch.zeros_like(w)
        for column in range(64):
            if column % 32 == 0:
                scales, _ = steps_of(left[:, column:column + 32].float(), 4, True)
            q = torch.clamp(torch.round(left[:, column] / scales), -8, 7) * scales
            numbers[:, column] = q
            error = (left[:, column] - q) / factor[column, column]
            left[:, column:] -= error[:, None] * factor[column, column:]
        state = self.state(small)
        stored = state["up.weight.int4"]
        stored = torch.stack([stored & 15, stored >> 4], -1).flatten(1).to(torch.int8)
        stored = torch.where(stored > 7, stored - 16, stored)
        ours = TORCH.dequantize_per_channel_group(stored, state["up.weight.scales"], None, -8, 7, torch.int8, 32,
                                                  torch.float32)
        # Sums of other rounding may turn a tie, after which all that follows in the row differs.
        self.assertGreater((ours.double() - numbers).abs().lt(1e-4).float().mean(), 0.97)
        error = lambda weight: ((weight.double() - w) @ x.T).norm() / (w @ x.T).norm()
        self.assertLess(abs(error(ours) - error(numbers)), 0.02 * error(numbers))
        _, plain = nearest(w.float(), 4, 32, True)
        self.assertLess(error(ours), 0.7 * error(plain))

    def test_output_errors_are_those_of_the_layer(self):
        _, report = self.quantize(weights="int4", group=32, layers=["up.weight", "down.weight"], backend="mosaic")
        with torch.no_grad():
            x = self.model.norm(self.model.embedding(self.tokens))
            y = self.model.up(x)
            _, numbers = nearest(self.model.up.weight, 4, 32, True)
            error = (x @ (numbers - self.model.up.weight).T).norm() / y.norm()
            layer = next(layer for layer in report.layers if layer.weight == "up.weight")
            self.assertAlmostEqual(layer.output_error, float(error), delta=1e-4 * float(error))
            weight = self.model.up.weight
            self.assertAlmostEqual(layer.weight_error, float((numbers - weight).norm() / weight.norm()), delta=1e-6)
        self.assertEqual(layer.bytes_before, 96 * 64 * 4)
        self.assertEqual(layer.bytes_after, 96 * 64 // 2 + 96 * 2 * 4)

    def test_costs_alone_are_those_of_one_weight_that_is_replaced(self):
        _, report = self.quantize(weights="int4", group=32, layers=["up.weight", "down.weight", "by_inputs"],
                                  alone="aten")
        with torch.no_grad():
            before = self.model(self.tokens)
            for layer in report.layers:
                if layer.left:
                    self.assertIsNone(layer.result_error)
                    continue
                weight = dict(self.model.named_parameters())[layer.weight]
                kept, by_inputs = weight.clone(), layer.weight == "by_inputs"
                _, numbers = nearest(weight.t() if by_inputs else weight, 4, 32, True)
                weight.copy_(numbers.t() if by_inputs else numbers)
                after = self.model(self.tokens)
                weight.copy_(kept)
                error = max(float((y - x).square().mean().sqrt() / x.std(correction=0)) for x, y in zip(before, after))
                self.assertAlmostEqual(layer.result_error, error, delta=1e-3 * error)
        text = str(report)
        worst = max((layer for layer in report.layers if not layer.left), key=lambda layer: layer.result_error)
        self.assertIn("alone costs results", text)
        self.assertTrue(text.splitlines()[1].startswith(worst.weight))
        self.assertIn(f"except {worst.weight}: results are then off by about", text)

    def test_outliers_of_inputs(self):
        """One input that is large: moved into the weight, less of the others is lost."""
        with torch.no_grad():
            self.model.norm.weight[7] = 60
            captured = flashlight.trace(self.model, self.tokens)
        errors = {}
        for method in ("nearest", "smooth"):
            small, report = captured.quantize(backend="reference", activations="by_token", method=method,
                                              layers=["up.weight"])
            errors[method] = max(layer.output_error for layer in report.layers if not layer.left)
        self.assertLess(errors["smooth"], 0.6 * errors["nearest"])

    def test_small_weights_of_large_inputs(self):
        """Their steps are too wide, unless they are multiplied before they are rounded."""
        with torch.no_grad():
            self.model.norm.weight[:8] = 20
            self.model.up.weight[:, :8] *= 0.1
            captured = flashlight.trace(self.model, self.tokens)
        errors = {}
        for method in ("nearest", "awq"):
            small, report = captured.quantize(backend="reference", weights="int4", group=32, method=method,
                                              layers=["up.weight"])
            errors[method] = max(layer.output_error for layer in report.layers if not layer.left)
        self.assertLess(errors["awq"], 0.6 * errors["nearest"])
        state = dict(small.state())
        _, numbers = nearest(self.model.up.weight * state["up.weight.divisors"], 4, 32, True)
        self.assert_results(small, self.with_weights({"up.weight": numbers / state["up.weight.divisors"]}))

    def test_an_error_is_kept(self):
        with torch.no_grad():
            before = self.model(self.tokens)
        small, report = self.quantize(weights="int4", group=32, max_error=0.1)
        with torch.no_grad():
            after = small(self.tokens)
        error = max(float((y - x).square().mean().sqrt() / x.std(correction=0)) for x, y in zip(before, after))
        self.assertLessEqual(error, 0.1)
        self.assertAlmostEqual(report.error, error, delta=1e-3 * error)
        self.assertTrue(any(layer.left == "the error to keep" for layer in report.layers))
        self.assertTrue(any(not layer.left for layer in report.layers))
        with self.assertRaisesRegex(flashlight.Error, "no layer can be quantized with an error of at most"):
            self.quantize(weights="int4", group=32, max_error=1e-6)

    def test_numbers_that_are_lost_are_infinite_errors(self):
        """The layer's roots become NaN where rounding makes their squares negative."""
        model = torch.nn.Linear(16, 8)
        with torch.no_grad():
            model.bias.copy_(-model(torch.ones(1, 16)).min(0).values + 1e-4 + model.bias)
            captured = flashlight.trace(lambda x: model(x).sqrt(), torch.ones(4, 16))
            small, report = captured.quantize(weights="int4", group=16, backend="reference")
            self.assertTrue(small(torch.ones(4, 16)).isnan().any())
        self.assertEqual(report.error, float("inf"))
        with self.assertRaisesRegex(flashlight.Error, "no layer can be quantized with an error of at most"):
            captured.quantize(weights="int4", group=16, backend="reference", max_error=0.5)

    def test_infinite_results_do_not_hide_others(self):
        """Those of logits that are taken out stay, and the others have their error."""
        layer, x = torch.nn.Linear(32, 24), torch.randn(8, 32)
        out = torch.rand(8, 24) < 0.3
        with torch.no_grad():
            captured = flashlight.trace(lambda x: layer(x).masked_fill(out, float("-inf")), x)
            small, report = captured.quantize(weights="int4", group=16, backend="reference")
            before, after = layer(x)[~out], small(x)[~out]
            expected = float(((after - before).square().sum() / (before - before.mean()).square().sum()).sqrt())
        self.assertAlmostEqual(report.error, expected, delta=1e-3 * expected)
        with self.assertRaisesRegex(flashlight.Error, "no layer can be quantized with an error of at most"):
            captured.quantize(weights="int4", group=16, backend="reference", max_error=1e-4)

    def test_what_is_written_has_an_error(self):
        class Keeps(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.key = torch.nn.Linear(32, 16)
                self.register_buffer("cache", torch.zeros(4, 16))

            def forward(self, x):
                self.cache.copy_(self.key(x))
                return x * 2

        with torch.no_grad():
            captured = flashlight.trace(Keeps(), torch.randn(4, 32))
        _, report = captured.quantize(weights="int4", group=16, backend="reference")
        self.assertGreater(report.error, 0.01)

    def test_integers_alone_have_no_error(self):
        layer = torch.nn.Linear(32, 100)
        with torch.no_grad():
            captured = flashlight.trace(lambda x: layer(x).argmax(-1), torch.randn(4, 32))
        _, report = captured.quantize(weights="int8", backend="reference")
        self.assertIsNone(report.error)
        with self.assertRaisesRegex(flashlight.Error, "gives integers or bools alone"):
            captured.quantize(weights="int8", backend="reference", max_error=0.1)

    def test_saved_captures_keep_the_integers(self):
        small, _ = self.quantize(weights="int4", group=32)
        with tempfile.TemporaryDirectory() as folder:
            small.save(folder)
            again = flashlight.load(folder)
            size = (pathlib.Path(folder) / "weights.safetensors").stat().st_size
            self.captured.save(folder)
            self.assertLess(size, 0.6 * (pathlib.Path(folder) / "weights.safetensors").stat().st_size)
            with torch.no_grad():
                for x, y in zip(again(self.tokens), small(self.tokens)):
                    self.assertTrue(torch.equal(x, y))

    def test_half_precision(self):
        model = torch.nn.Sequential(torch.nn.Linear(64, 32)).bfloat16()
        x = torch.randn(3, 64, dtype=torch.bfloat16)
        with torch.no_grad():
            small, _ = flashlight.trace(model, x).quantize(backend="reference")
            _, numbers = nearest(model[0].weight.float(), 8, 0, True)
            expected = torch.nn.functional.linear(x, numbers.bfloat16(), model[0].bias)
            self.assertTrue(torch.equal(small(x), expected))

    def test_wrong_use(self):
        def refused(message, **options):
            with self.assertRaisesRegex(flashlight.Error, message):
                self.quantize(**options)

        refused("groups of 48 do not divide 'by_inputs' with 64 inputs, 'embedding.weight' with 64", weights="int4",
                group=48, exclude=["convolution.weight"])
        refused("no weight of a layer is called 'nobody'", layers=["nobody"])
        refused("of an even size", weights="int4", group=33)
        refused("expected 'int8' or 'int4', received 'int3'", weights="int3")
        refused("expected one of nearest, gptq, awq, smooth, received 'best'", method="best")
        refused("expected one of the options .*, received 'bits'", bits=4)
        refused("there is no layer to quantize", exclude=["*"])
        with torch.no_grad():
            self.model.up.weight[3, 5] = float("nan")
            self.captured = flashlight.trace(self.model, self.tokens)
        refused("weight 'up.weight' has the element nan at place 197")

    def test_graphs_of_arrays(self):
        rng = numpy.random.default_rng(0)
        w = rng.standard_normal((32, 16)).astype(numpy.float32)
        x = rng.standard_normal((4, 32)).astype(numpy.float32)
        graph = composit.parse("graph(%x: float32[4, 32], %w: float32[32, 16] parameter) {\n"
                               "  %y: float32[4, 16] = aten::mm(%x, %w)\n  return %y\n}\n")
        with self.assertRaisesRegex(composit.Error, "weight 'w' has no value"):
            composit.quantize(graph)


if __name__ == "__main__":
    unittest.main()
