"""Models that we write, read again: they give what torch gives, here, compiled, and written once more
in onnxruntime. And what the command line makes of them."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "frontends/python"), str(HERE.parents[1] / "examples/models")]

import no_looks  # noqa: F401  before flashlight
import numpy as np
import torch
import transformers

import composit
import flashlight
import engines
import originals
from agreement import leaves
from flashlight.structure import flatten

SKIPPED = 77
CLOSE = 1e-5  # of the largest element: sums are made in other orders
FLASHLIGHT = sys.argv.pop() if sys.argv[-1].endswith("flashlight") else "flashlight"


def picture_network():
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.SiLU(),
        torch.nn.MaxPool2d(2), torch.nn.ConvTranspose2d(8, 4, 2, stride=2), torch.nn.GroupNorm(2, 4),
        torch.nn.Upsample(scale_factor=2), torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten(),
        torch.nn.Linear(16, 6), torch.nn.LayerNorm(6), torch.nn.GELU(), torch.nn.Softmax(1)).eval()


class RoundTripTest(unittest.TestCase):

    def setUp(self):
        torch.manual_seed(0)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_command(self, *arguments):
        done = subprocess.run([FLASHLIGHT, *map(str, arguments)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def assert_close(self, received, expected):
        for ours, tensor in zip(received, expected, strict=True):
            theirs = tensor.detach().numpy()
            self.assertEqual((ours.dtype, ours.shape), (theirs.dtype, theirs.shape))
            largest = max(float(np.abs(theirs).max()), 1e-30)
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=CLOSE * largest)

    @torch.no_grad()
    def round_trip(self, program, arguments, others, keywords=None, backends=("reference", "cpp", "mosaic")):
        """The graph that is read. `others`: arguments that the model was not captured with."""
        captured = flashlight.trace(program, *arguments, **(keywords or {}))
        expected = leaves(program(*others, **(keywords or {})))
        path = self.folder / "model.onnx"
        captured.export(path, drop_guards=True)
        graph = composit.load_onnx(path)
        tensors, _ = flatten((tuple(others), keywords or {}), "arguments")
        given = dict(zip(graph.inputs, (t.numpy() for t in tensors)))
        for backend in backends:
            with self.subTest(backend):
                received = composit.evaluate(*graph.outputs, inputs=given, backend=backend)
                self.assert_close(received if len(graph.outputs) > 1 else [received], expected)
        with self.subTest("written again"):
            self.run_command("import", path, "-o", self.folder / "capture")
            loaded = flashlight.load(self.folder / "capture")
            self.assert_close([y.numpy() for y in leaves(loaded(*tensors))], expected)
            self.run_command("export", self.folder / "capture", "-o", self.folder / "again.onnx")
            names = [n.attributes["name"] for n in graph.nodes
                     if n.op == "composit::input" and n.attributes["kind"] == "user_input"]
            np.savez(self.folder / "again.npz", **dict(zip(names, given.values())))
            subprocess.run([engines.PYTHON, HERE / "run_onnx.py", self.folder, "onnxruntime"],
                           check=True, capture_output=True)
            error = self.folder / "again.onnxruntime.error"
            self.assertFalse(error.exists(), error.read_text() if error.exists() else "")
            theirs = np.load(self.folder / "again.onnxruntime.npz")
            self.assert_close([theirs[f"output_{i}"] for i in range(len(expected))], expected)
        return captured, graph

    def inputs_of(self, graph, kind):
        return {n.attributes["name"] for n in graph.nodes
                if n.op == "composit::input" and n.attributes["kind"] == kind}

    def test_pictures(self):
        captured, graph = self.round_trip(picture_network(), [torch.randn(2, 3, 16, 16)],
                                          [torch.randn(2, 3, 16, 16)])
        for kind in ("parameter", "buffer"):
            used = {n for n in self.inputs_of(captured.graph, kind) if "num_batches" not in n}
            self.assertEqual(self.inputs_of(graph, kind), used)
        operators = [n.op for n in graph.nodes]
        for op in ("aten::convolution", "aten::max_pool2d_with_indices", "aten::upsample_nearest2d",
                   "aten::linear", "aten::gelu", "aten::softmax.int"):
            self.assertIn(op, operators)

    def test_modules_and_lines(self):
        _, graph = self.round_trip(picture_network(), [torch.randn(1, 3, 16, 16)],
                                   [torch.randn(1, 3, 16, 16)], backends=("reference",))
        [linear] = [n for n in graph.nodes if n.op == "aten::linear"]
        self.assertEqual(linear.annotations["scope"], "9")
        self.assertIn("onnx_round_trip_test.py", linear.annotations["source"])

    def test_sequences(self):
        recurrent = torch.nn.GRU(3, 4, batch_first=True)
        self.round_trip(recurrent, [torch.randn(2, 5, 3)], [torch.randn(2, 5, 3)], backends=("reference",))

        def sorted_parts(x):
            values, places = torch.topk(x, 3)
            return values, places, torch.cumsum(x, 1)[:, 1::2], x.gather(1, places).amax(1)

        self.round_trip(sorted_parts, [torch.randn(2, 6)], [torch.randn(2, 6)])

    def test_bert(self):
        model = transformers.BertModel(transformers.BertConfig(
            num_hidden_layers=2, hidden_size=64, num_attention_heads=4, intermediate_size=96,
            vocab_size=99)).eval()
        ids, others = (torch.randint(1, 99, (2, 12)) for _ in range(2))
        self.round_trip(model, [ids], [others], {"attention_mask": torch.ones(2, 12).long()})

    def test_models_of_transformers_and_diffusers(self):
        for name in ("clip_vision", "resnet", "vae_decode"):
            with self.subTest(name):
                original = originals.ALL[name](small=True)
                arguments, keywords = original.inputs(1)
                others, other_keywords = original.inputs(2)
                if keywords:
                    others = [*others, *other_keywords.values()]
                    keys = list(keywords)
                    arguments = [*arguments, *keywords.values()]

                    def call(*all_arguments, call=original.call, keys=keys):
                        plain = len(all_arguments) - len(keys)
                        return call(*all_arguments[:plain], **dict(zip(keys, all_arguments[plain:])))
                else:
                    call = original.call
                self.round_trip(call, arguments, others, backends=("reference",))

    def test_what_is_read_can_be_differentiated(self):
        model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.GELU(), torch.nn.Flatten(),
                                    torch.nn.Linear(16, 5)).eval()
        x = torch.randn(2, 3, 4, 4)
        flashlight.trace(model, x).export(self.folder / "model.onnx")
        graph = composit.load_onnx(self.folder / "model.onnx")
        names = [n.attributes["name"] for n in graph.nodes if n.op == "composit::input"]
        parameters = dict(zip(names, graph.inputs))
        loss = composit.sum(graph.outputs[0] * graph.outputs[0])
        inputs = [t for name, t in parameters.items() if not name.startswith("input")]
        gradients = composit.nn.grad(loss, inputs)
        (model(x) ** 2).sum().backward()
        for backend in ("reference", "cpp", "mosaic"):
            received = composit.evaluate(*gradients, inputs={graph.inputs[0]: x.numpy()}, backend=backend)
            own = dict(model.named_parameters())
            names_of_inputs = [name for name in parameters if not name.startswith("input")]
            self.assertEqual(set(names_of_inputs), set(own), names)
            self.assert_close(received, [own[name].grad for name in names_of_inputs])

    def test_what_is_imported_is_a_capture_like_others(self):
        model = picture_network()

        def loss(x):
            return model(x).square().sum(), model(x)

        flashlight.trace(loss, torch.randn(2, 3, 16, 16)).export(self.folder / "model.onnx")
        self.run_command("import", self.folder / "model.onnx", "-o", self.folder / "capture")
        captured = flashlight.load(self.folder / "capture")
        x = torch.randn(2, 3, 16, 16)
        with torch.no_grad():
            expected = [y.detach().numpy() for y in loss(x)]
            for run in (captured, captured.compile("cpp"), captured.compile("mosaic")):
                for ours, theirs in zip(run(x), expected, strict=True):
                    np.testing.assert_allclose(ours.numpy(), theirs, rtol=CLOSE, atol=CLOSE)
        own = {f"model.{name}": parameter for name, parameter in model.named_parameters()}
        value, gradients = captured.grad(wrt=list(own))(x)
        total = loss(x)[0]
        total.backward()
        self.assertAlmostEqual(float(value), total.item(), places=5)
        for name, parameter in own.items():
            np.testing.assert_allclose(gradients[name].numpy(), parameter.grad.numpy(), rtol=1e-4, atol=1e-5)
        with self.assertRaisesRegex(flashlight.Error, "expected arguments"):
            captured(x, x)

    def test_the_command_line_goes_by_content(self):
        flashlight.trace(lambda x: x.relu(), torch.ones(2)).export(self.folder / "model.onnx")
        (self.folder / "model.onnx").rename(self.folder / "model.pt")
        text = self.run_command("import", self.folder / "model.pt", "-o", self.folder / "capture")
        self.assertIn("2 nodes", text)
        self.assertIn("aten::relu(%input_0)", self.run_command("show", self.folder / "capture"))
        self.run_command("run", self.folder / "capture", "--backend", "cpp")


if __name__ == "__main__":
    if not engines.PYTHON:
        print("skipped: ./dev interchange makes what this needs")
        sys.exit(SKIPPED)
    unittest.main()
