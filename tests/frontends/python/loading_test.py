"""`flashlight.load` of folders and of files of other tools, by their content: values and gradients are torch's."""

import pathlib
import tempfile
import unittest

import no_looks  # before flashlight
import torch

import flashlight


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = torch.nn.Linear(6, 5), torch.nn.Linear(5, 3)

    def forward(self, x):
        return torch.softmax(self.second(torch.relu(self.first(x))), -1)


class Counting(torch.nn.Module):
    """Its results follow from its state, which a call changes; and it draws."""

    def __init__(self):
        super().__init__()
        self.register_buffer("sum", torch.zeros(3))

    def forward(self, x):
        self.sum.add_(1)
        return x + self.sum, torch.rand(2)


class Loss(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x).square().sum()


class Loading(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.model = Net()
        self.x = torch.randn(4, 6)

    def test_an_example_is_of_the_state_that_is_saved(self):
        """Whatever runs the folder compares with it: a check, a program in C++."""
        model = Counting()
        captured = flashlight.trace(model, torch.ones(2, 3))
        before, state = model.sum.clone(), torch.get_rng_state()
        captured.save(self.folder / "counting")
        self.assertTrue(torch.equal(model.sum, before))
        self.assertTrue(torch.equal(torch.get_rng_state(), state))
        loaded = flashlight.load(self.folder / "counting")
        given = loaded._native.example_results
        self.assertTrue(torch.equal(given[0], torch.full((2, 3), 3.0)))
        for _ in range(2):  # whatever state it has by now
            loaded.save(self.folder / "again")
            torch.testing.assert_close(flashlight.load(self.folder / "again")(torch.ones(2, 3))[0],
                                       flashlight.load(self.folder / "again")._native.example_results[0])
            loaded(torch.ones(2, 3))

    def exported(self, name):
        with torch.no_grad():
            flashlight.trace(self.model, torch.ones(4, 6)).export(self.folder / name)
        return self.folder / name

    def expect_model(self, captured):
        with torch.no_grad():
            result = captured(self.x)
            if isinstance(result, dict):  # of an ONNX family: by the names of outputs, guards last
                result = next(iter(result.values()))
            torch.testing.assert_close(result, self.model(self.x))

    def family(self, name):
        with torch.no_grad():
            family = flashlight.trace_family(
                self.model, [(torch.ones(rows, 6),) for rows in (2, 5, 9)], sizes=["batch"])
            family.export(self.folder / name)
        return self.folder / name

    def test_folders(self):
        flashlight.trace(self.model, torch.ones(4, 6)).save(self.folder / "saved.onnx")  # a folder
        self.expect_model(flashlight.load(self.folder / "saved.onnx"))

    def test_files_by_their_content(self):
        for name, other in (("a.pt2", "a.bin"), ("b.onnx", "b.model")):
            file = self.exported(name)
            self.expect_model(flashlight.load(file))
            self.expect_model(flashlight.load(str(file)))
            self.expect_model(flashlight.load(file.rename(self.folder / other)))

    def test_onnx_with_sizes_in_ranges(self):
        self.family("a.onnx")
        file = self.folder / "a.onnx"
        family = flashlight.load(file, sizes={"batch": (2, 12)})
        self.assertIsInstance(family, flashlight.Family)
        for rows in (2, 4, 11, 12):
            self.x = torch.randn(rows, 6)
            self.expect_model(family)
        with self.assertRaisesRegex(flashlight.Error, "batch"):
            family(torch.ones(13, 6))
        self.expect_model(flashlight.load(file, sizes={"batch": 12}))

    def test_onnx_is_a_capture_like_others(self):
        captured = flashlight.load_onnx(self.exported("model.onnx"))
        self.assertTrue(captured.check_compiled(backend="cpp"))
        torch.testing.assert_close(captured.compile("cpp")(self.x), self.model(self.x))
        # What saved captures have: an example, and torch's results for it.
        (example,), _ = captured.example_inputs
        with torch.no_grad():
            torch.testing.assert_close(captured._native.example_results[0], self.model(example))
        captured.save(self.folder / "again")
        self.expect_model(flashlight.load(self.folder / "again"))

    def test_gradients_of_an_onnx_model(self):
        with torch.no_grad():
            flashlight.trace(Loss(self.model), torch.ones(4, 6)).export(self.folder / "loss.onnx")
        captured = flashlight.load(self.folder / "loss.onnx")
        names = [name for name in captured.state() if name.endswith("first.weight")]
        self.assertEqual(len(names), 1)
        loss, gradients = captured.grad(wrt=names)(self.x)
        expected = self.model(self.x).square().sum()
        expected.backward()
        torch.testing.assert_close(loss, expected.detach())
        torch.testing.assert_close(gradients[names[0]], self.model.first.weight.grad)

    def test_sizes_that_a_model_leaves_open(self):
        file = self.family("open.onnx")
        self.expect_model(flashlight.load(file, sizes={"batch": 4}))
        self.expect_model(flashlight.load_onnx(file, {"input_0.0": 4}))
        with self.assertRaisesRegex(flashlight.Error, r"\[onnx\] .*batch"):
            flashlight.load(file)

    def test_dynamic_shapes_are_a_family(self):
        loaded = flashlight.load(self.family("open.pt2"))
        self.assertIsInstance(loaded, flashlight.Family)
        self.expect_model(loaded)

    def test_what_is_no_such_file_is_refused(self):
        with self.assertRaisesRegex(flashlight.Error, r"\[pt2\] .*none\.pt2"):
            flashlight.load(self.folder / "none.pt2")
        with self.assertRaisesRegex(flashlight.Error, r"none\.onnx"):
            flashlight.load(self.folder / "none.onnx")
        with self.assertRaisesRegex(flashlight.Error, r"none"):
            flashlight.load(self.folder / "none")
        (self.folder / "text.onnx").write_text("def f(x): return x")
        with self.assertRaisesRegex(flashlight.Error, r"\[onnx\] .*text\.onnx"):
            flashlight.load(self.folder / "text.onnx")
        with self.assertRaisesRegex(flashlight.Error, r"expected sizes for an ONNX model alone"):
            flashlight.load(self.exported("model.pt2"), sizes={"batch": 4})


if __name__ == "__main__":
    unittest.main()
