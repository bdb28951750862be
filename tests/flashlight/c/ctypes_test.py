"""The C interface from Python by ctypes (binding.py), beside plain torch."""

import gc
import os
import pathlib
import sys
import tempfile
import threading
import unittest

os.environ["FLASHLIGHT_SEEN_ONCE"] = "1"  # no warnings that captures were seen once

import torch

import binding

PICTURE = (2, 3, 8, 8)


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.BatchNorm2d(4),
                               torch.nn.SiLU(), torch.nn.Flatten(), torch.nn.Linear(256, 5),
                               torch.nn.LayerNorm(5))


def scope_of(model, x):
    return binding.Scope({"x": x}, dict(model.named_parameters()), dict(model.named_buffers()))


def captured(model, x, program=None):
    with scope_of(model, x) as scope:
        scope.outputs["y"] = (program or model)(x)
    return scope.capture


class CtypesTest(unittest.TestCase):
    def test_flashlights_package_takes_no_part(self):
        self.assertNotIn("flashlight", sys.modules)

    def test_a_replay_has_the_bits_of_the_program(self):
        model = network().eval()
        capture = captured(model, torch.randn(PICTURE))
        with tempfile.TemporaryDirectory() as folder:
            capture.save(folder + "/saved")
            loaded = binding.Capture.load(folder + "/saved")
            for _ in range(3):
                x = torch.randn(PICTURE)
                for one in capture, loaded:
                    [y] = one.replay(x)
                    self.assertTrue(torch.equal(y, model(x)))
                    self.assertFalse(y.requires_grad)

    def test_a_replay_writes_what_the_program_writes(self):
        model, same = network().train(), network().train()
        x = torch.randn(PICTURE)
        capture = captured(model, x)
        same(x)
        [y] = capture.replay(2 * x)
        self.assertTrue(torch.equal(y, same(2 * x)))
        for ours, torchs in zip(model.buffers(), same.buffers()):
            self.assertTrue(torch.equal(ours, torchs))

    def test_gradients_are_autograds(self):
        model = network().eval().double()

        def loss_of(x):
            return model(x).square().mean()

        x = torch.randn(PICTURE, dtype=torch.float64)
        value, gradients = captured(model, x, loss_of).gradient(0, 2 * x)
        loss = loss_of(2 * x)
        loss.backward()
        self.assertTrue(torch.equal(value, loss.detach()))
        self.assertEqual(list(gradients), [name for name, _ in model.named_parameters()])
        for name, parameter in model.named_parameters():
            torch.testing.assert_close(gradients[name], parameter.grad, rtol=1e-10, atol=1e-12)

    def test_a_second_run_confirms_or_refutes(self):
        model = network().eval()
        capture = captured(model, torch.randn(PICTURE))
        x = torch.randn(PICTURE)
        for program, expected in (model, True), (lambda x: model(x) + 1, False):
            scope = scope_of(model, x).begin()
            scope.outputs["y"] = program(x)
            same, report = scope.check(capture)
            self.assertEqual(same, expected, report)

    def test_a_module_for_compilers(self):
        capture = captured(network().eval(), torch.randn(PICTURE))
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "model.mlir"
            capture.export(str(file))
            self.assertIn("stablehlo.convolution", file.read_text())
            self.assertTrue(pathlib.Path(f"{file}.safetensors").exists())

    def test_errors_are_texts(self):
        model = network().eval()
        capture = captured(model, torch.randn(PICTURE))
        with self.assertRaisesRegex(binding.Error, r"\[2, 3, 8, 8\]"):
            capture.replay(torch.randn(1, 3, 8, 8))
        with self.assertRaisesRegex(binding.Error, "ends in .onnx, .pt2 or .mlir"):
            capture.export("/tmp/never.h5")
        with self.assertRaisesRegex(binding.Error, "expected a capture, received NULL"):
            binding._call("capture_save", None, b"never")

    def test_what_the_program_raises_ends_the_scope(self):
        with self.assertRaises(ZeroDivisionError):
            with binding.Scope({"x": torch.ones(3)}):
                1 / 0
        self.assertTrue(torch.equal(captured(torch.nn.ReLU(), torch.ones(3)).replay(-torch.ones(3))[0],
                                    torch.zeros(3)))

    def test_other_threads_replay_and_free(self):
        model = network().eval()
        captures = [captured(model, torch.randn(PICTURE))]
        x = torch.randn(PICTURE)
        with torch.no_grad():
            expected, results = model(x), []
        threads = [threading.Thread(target=lambda: results.extend(captures[0].replay(x))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertTrue(len(results) == 4 and all(torch.equal(y, expected) for y in results))
        thread = threading.Thread(target=captures.clear)
        thread.start()
        thread.join()

    def test_nothing_is_kept(self):
        """A replay leaves no reference to its arguments and results."""
        capture = captured(network().eval(), torch.randn(PICTURE))
        x = torch.randn(PICTURE)

        def owners(tensor):
            return torch._C._storage_Use_Count(tensor.untyped_storage()._cdata)

        before = owners(x)
        [y] = capture.replay(x)
        gc.collect()
        self.assertEqual((owners(x), owners(y)), (before, before))


if __name__ == "__main__":
    unittest.main()
