"""Models that were captured by way of the C interface, in C, in Rust and by ctypes: onnxruntime and OpenVINO
give what LibTorch gave the program.

The other side lives in an environment of its own (../../interchange), without which the test is skipped."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
RUN = HERE.parents[1] / "interchange/run_onnx.py"
PYTHON = os.environ.get("FLASHLIGHT_INTERCHANGE_PYTHON", "")
SKIPPED = 77
# Of the largest element; both engines sum in other orders.
CLOSE = {"onnxruntime": 1e-5, "openvino": 2e-5}

if not pathlib.Path(PYTHON).exists():
    print("skipped: ./dev interchange makes what this needs")
    sys.exit(SKIPPED)

import numpy as np
import torch

import binding
import ctypes_test
import languages


def results(folder, name, **inputs):
    """By engine, the outputs of folder/name.onnx by name."""
    np.savez(f"{folder}/{name}.npz", **inputs)
    subprocess.run([PYTHON, RUN, folder, *CLOSE], check=True)
    for engine in CLOSE:
        error = pathlib.Path(folder) / f"{name}.{engine}.error"
        if error.exists():
            raise RuntimeError(f"{engine}: {error.read_text()}")
    return {engine: dict(np.load(f"{folder}/{name}.{engine}.npz")) for engine in CLOSE}


class OnnxTest(unittest.TestCase):
    def assert_close(self, received, expected):
        for engine, outputs in received.items():
            for number, one in enumerate(expected):
                ours = outputs[f"output_{number}"]
                self.assertEqual(ours.shape, one.shape)
                self.assertLessEqual(np.abs(ours - one).max(), CLOSE[engine] * np.abs(one).max(), engine)

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name

    def only(self, name):
        """Without the models that the other test of this folder runs."""
        for file in pathlib.Path(self.folder).glob("*.onnx"):
            if file.stem != name:
                file.unlink()

    def test_c(self):
        languages.run_c(self.folder)
        self.only("perceptron")
        known = {name: languages.numbers(self.folder, name) for name in languages.SHAPES}
        self.assert_close(results(self.folder, "perceptron", x=known["x"]), [known["y"], known["loss"]])

    def test_weights_in_a_saved_capture(self):
        languages.run_c(self.folder)
        self.only("shared")
        self.assertFalse((pathlib.Path(self.folder) / "shared.onnx.data").exists())
        known = {name: languages.numbers(self.folder, name) for name in languages.SHAPES}
        self.assert_close(results(self.folder, "shared", x=known["x"]), [known["y"], known["loss"]])

    def test_a_gradient_of_c(self):
        languages.run_c(self.folder)
        self.only("gradient")
        known = {name: languages.numbers(self.folder, name) for name in languages.SHAPES}
        p = {name: torch.tensor(value, dtype=torch.float64, requires_grad=True)
             for name, value in known.items() if name.startswith("fc")}
        h = torch.relu(torch.tensor(known["x"]).double() @ p["fc1.weight"].T + p["fc1.bias"])
        loss = torch.softmax(h @ p["fc2.weight"].T + p["fc2.bias"], 1).square().mean()
        loss.backward()
        expected = [loss.detach().numpy(), *(one.grad.numpy() for one in p.values())]
        self.assert_close(results(self.folder, "gradient", x=known["x"]), expected)

    @unittest.skipUnless(languages.RUSTC, "there is no rustc")
    def test_rust(self):
        languages.run_rust(self.folder)
        x, y = (languages.numbers(self.folder, name) for name in "xy")
        self.assert_close(results(self.folder, "rust", x=x), [y])

    @torch.no_grad()
    def test_ctypes(self):
        model = ctypes_test.network().eval()
        ctypes_test.captured(model, torch.randn(ctypes_test.PICTURE)).export(f"{self.folder}/network.onnx")
        x = torch.randn(ctypes_test.PICTURE)
        self.assert_close(results(self.folder, "network", x=x.numpy()), [model(x).numpy()])


class Pt2Test(unittest.TestCase):
    def test_torch_opens_what_c_wrote(self):
        with tempfile.TemporaryDirectory() as folder:
            languages.run_c(folder)
            program = torch.export.load(f"{folder}/perceptron.pt2").module()
            received = program(torch.from_numpy(languages.numbers(folder, "x")))
            self.assertEqual(list(received), ["y", "loss"])
            for name, tensor in received.items():
                np.testing.assert_array_equal(tensor.detach().numpy(), languages.numbers(folder, name))


if __name__ == "__main__":
    unittest.main()
