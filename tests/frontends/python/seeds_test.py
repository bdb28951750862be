"""Every code block of three documents runs as written, apart from import names: composit's README, and
Knossos' page as text and as source. Blocks are read from the documents (seeds/).

What a page leaves to its reader is given here: imports, `train_model`, a number of iterations."""

import collections
import os
import pathlib
import tempfile
import unittest

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402

import flashlight  # noqa: E402
from blocks import plain_text_blocks, restructured_text_blocks  # noqa: E402

SEEDS = pathlib.Path(__file__).parent / "seeds"
README = SEEDS / "002_6789a29430b77378.txt"
PAGE = SEEDS / "000_e551546301e8ee4c.txt"
SOURCE = SEEDS / "001_1a5fbfc05fcfbd0c.txt"


def relu3_by_torch(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x < 0, 0 * x, torch.where(x < 1, x**3 / 3, x - 2 / 3))


def slope_of_relu3(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x < 0, 0 * x, torch.where(x < 1, x**2, 1 + 0 * x))


class InScratchFolder(unittest.TestCase):
    """Blocks write pictures where they run."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)


class CompositReadme(InScratchFolder):
    def test_every_block(self):
        blocks = plain_text_blocks(README)
        self.assertEqual([block.first_line for block in blocks],
                         [45, 66, 76, 87, 94, 101, 126, 146, 209])
        simple, value, several, draw_two, draw_one, values, relu, training, trace = blocks
        names = {"np": np}

        simple.run(names)
        self.assertEqual(names["output"].shape, (2, 3))
        self.assertEqual(names["output"].dtype, np.float32)
        value.run(names)
        np.testing.assert_allclose(names["np_output"], np.exp(np.ones((2, 3), np.float32)),
                                   rtol=1e-6)

        several.run(names)
        draw_two.run(names)
        both = pathlib.Path("graph.svg").read_text()
        draw_one.run(names)
        one = pathlib.Path("graph.svg").read_text()
        self.assertIn("tanh", both)
        self.assertNotIn("tanh", one)
        values.run(names)
        b, c = (names["cnp"].evaluate(names[name]) for name in ("input_b", "input_c"))
        np.testing.assert_array_equal(names["np_input_c"], c)
        np.testing.assert_allclose(names["np_exp"], np.exp(np.ones((5, 10)) + b), rtol=1e-12)
        np.testing.assert_allclose(names["np_tanh"], np.tanh(np.ones((5, 10)) + c), rtol=1e-12)

        relu.run(names)
        x, y = names["cnp"].evaluate(names["input"], names["output"])
        np.testing.assert_array_equal(y, np.maximum(x, 0))

        self.check_training(training, names)

        trace.run(names)
        expected = names["model"](names["activations"]).detach().numpy()
        np.testing.assert_allclose(names["np_output"], expected, rtol=1e-4, atol=1e-6)

    def check_training(self, block, names):
        """The new weight is what plain NumPy makes of the same draws. What flows back into a loss
        that maps to itself is its value."""
        np.random.seed(0)
        block.run(names, num_iterations="3")
        np.random.seed(0)
        weight = np.random.random((32, 8))
        for _ in range(3):
            x = np.random.random((16, 32))
            loss = np.mean(x @ weight)
            weight = weight - 1e-3 * x.T @ np.full((16, 8), loss / (16 * 8))
        np.testing.assert_allclose(names["cnp"].evaluate(names["weight"]), weight, rtol=1e-12)


class Knossos(InScratchFolder):
    def setUp(self):
        super().setUp()
        plt.close("all")
        torch.manual_seed(0)
        self.losses = []

    def names(self):
        return {"knossos": flashlight, "np": np, "plt": plt, "torch": torch, "nn": torch.nn,
                "OrderedDict": collections.OrderedDict, "train_model": self.train_model}

    def train_model(self, model):
        """What the page leaves out: some steps of training, here on labels that can be learned."""
        images = torch.randn(64, 784)
        labels = images[:, :10].argmax(1)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        for _ in range(30):
            optimizer.zero_grad()
            loss = torch.nn.functional.nll_loss(model(images), labels)
            loss.backward()
            optimizer.step()
            self.losses.append(loss.item())

    def check_lines(self, names):
        """relu3 by numbers, by tensor, and its derivative were drawn."""
        by_number, by_tensor, slope = (
            torch.from_numpy(np.asarray(line.get_ydata())) for line in plt.gca().get_lines())
        t = names["t"]
        torch.testing.assert_close(by_number, relu3_by_torch(torch.arange(-3, 3, 0.1).double()),
                                   rtol=0, atol=1e-6)
        torch.testing.assert_close(by_tensor, relu3_by_torch(t))
        torch.testing.assert_close(slope, slope_of_relu3(t))
        plt.savefig("plot.png")
        self.assertGreater(pathlib.Path("plot.png").stat().st_size, 1000)

    def check_trained(self):
        self.assertEqual(len(self.losses), 30)
        self.assertLess(self.losses[-1], 0.5 * self.losses[0])

    def test_every_block_of_the_page(self):
        blocks = plain_text_blocks(PAGE)
        self.assertEqual([block.first_line for block in blocks],
                         [13, 28, 35, 39, 52, 69, 79, 90, 106])
        names = self.names()
        for block in blocks:
            block.run(names)
        self.check_lines(names)
        t = torch.linspace(-2, 2, 41)
        torch.testing.assert_close(names["vrelu3_knossos"](t), names["vrelu3_pytorch"](t))
        self.assertAlmostEqual(names["vrelu3_knossos"](0.5), 0.5**3 / 3)
        self.assertIsInstance(names["vrelu3_knossos"](0.5), float)
        self.check_trained()

    def test_every_block_of_its_source(self):
        blocks = restructured_text_blocks(SOURCE)
        self.assertEqual([block.first_line for block in blocks], [34, 48, 52, 86, 143])
        names = self.names()
        plain_text_blocks(PAGE)[0].run(names)  # relu3, which the source includes from a file
        for block in blocks:
            block.run(names)
        self.check_lines(names)
        self.check_trained()


if __name__ == "__main__":
    unittest.main()
