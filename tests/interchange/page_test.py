"""docs/interchange.md: every command of it runs, in Python and in the shell, and gives what torch gives.

Commands of the other side run in an environment of its own (engines.py), without which the test is
skipped; those of IREE are run by stablehlo_test.py.

    page_test.py COMMAND_LINE          the program `flashlight`
"""

import ast
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "frontends/python")]

import no_looks  # before flashlight
import numpy as np
import torch

import composit
import flashlight
import engines
from agreement import leaves

SKIPPED = 77
PAGE = HERE.parents[1] / "docs/interchange.md"
CLOSE = {"rtol": 1e-5, "atol": 1e-6}


def blocks():
    """The blocks of code of the page: language, text, in order. Blocks of C++ are left to the compiler."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    return [(language, text) for language, text in found if language != "cpp"]


# Each block by a text in it; those of the last line are run by stablehlo_test.py.
PARTS = ['.export("model.pt2")', "-o model.pt2", 'torch.export.load("model.pt2")', "torch.export.save(program",
         "import model.pt2", '.export("bert.onnx")', "--weights-in-place", "onnxruntime.InferenceSession",
         'composit.load_onnx("bert.onnx"', "import model.onnx", '.export("model.mlir")', "-o model.mlir",
         "composit.jax(", 'captured.compile("pjrt"', "--backend pjrt",
         "iree-run-module"]  # fmt: skip


class Model(torch.nn.Module):
    """One weight, in a module that the page names."""

    def __init__(self):
        super().__init__()
        self.encoder = torch.nn.Linear(3, 2, bias=False)

    def forward(self, x):
        return self.encoder(x).tanh()


class PageTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(5)
        self.enterContext(torch.no_grad())
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        self.model, self.x = Model(), torch.randn(4, 3)
        self.expected = self.model(self.x)

    def block(self, part):
        self.assertIn(part, PARTS)
        return next(text for _, text in blocks() if part in text)

    def python(self, part, **names):
        """Runs a block: the names there are behind it, and `values`, those of its expressions."""
        names |= {"model": self.model, "x": self.x, "flashlight": flashlight, "torch": torch,
                  "composit": composit, "values": []}  # fmt: skip
        for statement in ast.parse(self.block(part)).body:
            if isinstance(statement, ast.Expr):
                names["values"].append(eval(ast.unparse(statement), names))
            else:
                exec(ast.unparse(statement), names)
        return names

    def shell(self, part, **words):
        """`words`: what stands for a word of the page."""
        text = self.block(part)
        for word, value in words.items():
            text = re.sub(rf"\b{word}\b", value, text)
        self.command(text, "")

    def command(self, text, program="flashlight "):
        text = program + text
        done = subprocess.run(["bash", "-ec", text], text=True, capture_output=True,
                              env=os.environ | {"PATH": f"{COMMAND_LINE.parent}:{os.environ['PATH']}"})
        self.assertEqual(done.returncode, 0, done.stderr)

    def saved(self, folder="saved"):
        flashlight.trace(self.model, self.x).save(folder)
        return folder

    def weights(self):
        """A graph whose weights hold their values."""
        flashlight.trace(self.model, self.x).export("weights.pt2")
        return composit.load_pt2("weights.pt2")

    def assert_same(self, received, expected):
        torch.testing.assert_close(received, expected, rtol=0, atol=0)

    def assert_close(self, received, expected):
        received = received if isinstance(received, torch.Tensor) else torch.from_numpy(np.array(received))
        torch.testing.assert_close(received, expected, **CLOSE)

    def test_each_block_is_known(self):
        for _, text in blocks():
            self.assertEqual(len([part for part in PARTS if part in text]), 1, text)

    # ---- .pt2 -----------------------------------------------------------------------------------

    def test_torch_export(self):
        self.python('.export("model.pt2")')
        self.assert_same(torch.export.load("model.pt2").module()(self.x), self.expected)
        pathlib.Path("model.pt2").unlink()
        self.shell("-o model.pt2", FOLDER=self.saved())
        names = self.python('torch.export.load("model.pt2")')
        self.assert_same(names["y"], self.expected)
        for program in names["values"][0]:
            module = program.module() if hasattr(program, "module") else program
            self.assert_close(module(self.x), self.expected)
        compiled = torch._inductor.aoti_load_package(names["package"])
        self.assert_close(compiled(self.x), self.expected)

    def test_files_of_torch_export_are_read(self):
        names = self.python("torch.export.save(program")
        self.assert_same(names["captured"](self.x), self.expected)
        graph = names["graph"]
        y = composit.evaluate(graph.outputs[0], inputs={graph.inputs[0]: self.x.numpy()})
        self.assert_close(y, self.expected)
        self.shell("import model.pt2", FOLDER="imported")
        self.assert_same(flashlight.load("imported")(self.x), self.expected)

    # ---- .onnx ----------------------------------------------------------------------------------

    def in_engines(self, x, file="model.onnx"):
        """What the page's programs give of a model: onnxruntime, then OpenVINO."""
        np.save("x.npy", x.numpy())
        text = self.block("onnxruntime.InferenceSession").replace("model.onnx", file)
        lines = ["import numpy, onnxruntime, openvino", "x = numpy.load('x.npy')", text,
                 "numpy.savez('received.npz', results[0], compiled([x])[0])"]
        done = subprocess.run([engines.PYTHON, "-c", "\n".join(lines)], text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return list(np.load("received.npz").values())

    def test_onnx(self):
        loss = flashlight.trace(lambda x: self.model(x).square().sum(), self.x)
        sizes = {f"x_{b}x{t}": torch.randn(b, t, 3) for b, t in ((2, 16), (3, 23), (5, 12))}
        self.python('.export("bert.onnx")', loss=loss, graph=self.weights(), **sizes)
        for received in self.in_engines(self.x):
            self.assert_close(received, self.expected)
        value, *_ = self.in_engines(self.x, "gradient.onnx")
        self.assert_close(value, self.expected.square().sum())
        x = torch.randn(4, 21, 3)
        for received in self.in_engines(x, "bert.onnx"):
            self.assert_close(received, self.model(x))

    def test_onnx_by_the_command_line(self):
        self.shell("--weights-in-place", FOLDER=self.saved())
        for received in self.in_engines(self.x):
            self.assert_close(received, self.expected)

    def test_models_are_read(self):
        x = torch.randn(2, 128, 3)
        shown = [(torch.randn(b, t, 3),) for b, t in ((2, 8), (3, 123), (8, 512))]
        flashlight.trace_family(self.model, shown, sizes=["batch", "tokens"]).export("bert.onnx")
        names = self.python('composit.load_onnx("bert.onnx"', ids=x.numpy())
        self.assert_close(names["y"], self.model(x))
        self.assert_close(*leaves(names["family"](x))[:1], self.model(x))
        with torch.enable_grad():
            (expected,) = torch.autograd.grad(self.model(x).sum(), self.model.encoder.weight)
        (gradient,) = names["gradient"]
        given = {names["graph"].inputs[0]: x.numpy()}
        torch.testing.assert_close(torch.from_numpy(composit.evaluate(gradient, inputs=given)), expected,
                                   rtol=1e-4, atol=1e-4)
        pathlib.Path("bert.onnx").rename("model.onnx")
        self.shell("import model.onnx", FOLDER="imported")
        self.command("export imported -o again.onnx")
        for received in self.in_engines(x, "again.onnx"):
            self.assert_close(received, self.model(x))

    # ---- .mlir ----------------------------------------------------------------------------------

    def test_stablehlo(self):
        self.python('.export("model.mlir")')
        self.assertIn("stablehlo.dot_general", pathlib.Path("model.mlir").read_text())
        text = pathlib.Path("model.mlir").read_text()
        pathlib.Path("model.mlir").unlink()
        self.shell("-o model.mlir", FOLDER=self.saved())
        self.assertEqual(pathlib.Path("model.mlir").read_text(), text)

    def test_pjrt(self):
        """The plugin comes from the other environment, where a package has it."""
        found = sorted(pathlib.Path(engines.PYTHON).parents[1].glob("lib/python3*/site-packages/*/libpjrt_cpu.so"))
        if not found:
            self.skipTest("there is no plugin of PJRT: ./dev interchange installs one")
        names = self.python('captured.compile("pjrt"', captured=flashlight.trace(self.model, self.x),
                            plugin=str(found[0]))
        for compiled in names["values"]:
            self.assert_close(compiled(self.x), self.expected)
        with torch.no_grad():
            self.model.encoder.weight.mul_(-2)  # the copy on the device is another one now
        for compiled in names["values"]:
            self.assert_close(compiled(self.x), self.model(self.x))
        text = self.block("--backend pjrt").replace("FOLDER", self.saved())
        self.command(text.replace("PLUGIN", str(found[0])), "")

    def test_jax(self):
        """JAX comes from the other environment, torch from this one."""
        sys.path.append(str(next(pathlib.Path(engines.PYTHON).parents[1].glob("lib/python3*/site-packages"))))
        import jax

        graph = self.weights()
        y = composit.numpy.sum(graph.inputs[1] * 2)  # of a weight, which holds its value
        captured = flashlight.trace(self.model, self.x)
        gradient, sum_of_weights, compiled = self.python("composit.jax(", captured=captured, jax=jax, y=y)["values"]
        weight = self.model.encoder.weight
        self.assert_close(sum_of_weights, (2 * weight).sum().detach())
        self.assert_close(compiled(self.x), self.expected)
        with torch.enable_grad():
            x = self.x.clone().requires_grad_()
            (expected,) = torch.autograd.grad(self.model(x).sum(), x)
        self.assert_close(gradient(self.x.numpy(), weight.detach().numpy()), expected)


if __name__ == "__main__":
    if not engines.PYTHON:
        print("skipped: ./dev interchange makes what this needs")
        sys.exit(SKIPPED)
    COMMAND_LINE = pathlib.Path(sys.argv.pop(1)).absolute()
    unittest.main()
