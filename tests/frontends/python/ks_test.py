"""composit.ks and flashlight.ks: programs of Knossos' language on LazyTensors, arrays, tensors, and
inside of captured programs; compiled functions there in general."""

import pathlib
import tempfile
import unittest

import numpy as np
import torch

import composit
import composit as cnp
import flashlight

EXAMPLES = pathlib.Path(__file__).parents[3] / "examples" / "ks"

TEXT = """
(def soft Float (x : Float) (log (add 1.0 (exp x))))
(def total Float ((v : Vec Float) (n : Integer) (b : Bool))
  (sumbuild n (lam (i : Integer) (if b (soft (index i v)) (index i v)))))
(def rows (Tuple (Vec Float) (Vec (Tuple Float Integer)))
     ((m : Tensor 2 Float) (t : Tuple Float (Vec (Tuple Float Float))))
  (let (((r c) (size m)) ((s pairs) t))
    (tuple (build r (lam (i : Integer) (sumbuild c (lam (j : Integer) (index (tuple i j) m)))))
           (build (size pairs) (lam (i : Integer)
             (let ((x y) (index i pairs)) (tuple (mul s (add x y)) i)))))))
(def text String (x : Float) "text")
"""

RAGGED = """
(def sums (Vec Float) (rows : Vec (Vec Float))
  (map (lam (row : Vec Float) (sum (map (lam (x : Float) (exp x)) row))) rows))
(def triangle (Vec (Vec Float)) (v : Vec Float)
  (build (size v) (lam (i : Integer) (build (add i 1) (lam (j : Integer) (mul (index i v) (index j v)))))))
(def first (Vec Float) ((n : Integer) (v : Vec Float))
  (build (max 0 (min (size v) (imax v))) (lam (i : Integer) (mul 2.0 (index i v)))))
"""


def soft(x):
    return np.log1p(np.exp(x))


def slope(x):
    return 1 / (1 + np.exp(-x))


class KsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.file = pathlib.Path(cls.folder.name) / "test.ks"
        cls.file.write_text(TEXT)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()


class RaggedTensors(unittest.TestCase):
    def setUp(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "ragged.ks"
            file.write_text(RAGGED)
            self.lazy, self.compiled = composit.ks.load(file), flashlight.ks(file)
        self.rows = [np.array([.5]), np.array([1., -2.]), np.zeros(0)]

    def test_arguments_are_rows_of_different_sizes(self):
        expected = [np.exp(row).sum() for row in self.rows]
        ragged = composit.ks.Ragged.of(self.rows)
        np.testing.assert_allclose(cnp.evaluate(self.lazy.sums(ragged)), expected, 1e-14)
        np.testing.assert_allclose(self.compiled.sums(ragged), expected, 1e-14)

    def test_gradients_of_rows_are_those_of_torch(self):
        padded, lengths = composit.ks.Ragged.of(self.rows)
        values = torch.tensor(padded, requires_grad=True)
        self.compiled.sums(composit.ks.Ragged(values, torch.tensor(lengths))).sum().backward()
        np.testing.assert_allclose(values.grad, [[np.exp(.5), 0], [np.exp(1), np.exp(-2)], [0, 0]], 1e-14)

    def test_results_are_rows_of_different_sizes(self):
        v = np.array([2., 3., 5.])
        for received in (self.compiled.triangle(v), self.compiled.triangle(torch.tensor(v))):
            for i, row in enumerate(received.rows()):
                np.testing.assert_allclose(row, v[i] * v[:i + 1], 1e-14)
        values, lengths = self.lazy.triangle(v)
        np.testing.assert_array_equal(cnp.evaluate(lengths), [1, 2, 3])
        np.testing.assert_allclose(cnp.evaluate(values), np.tril(np.outer(v, v)), 1e-14)
        values, length = self.compiled.first(1, v)  # as long as a value says
        np.testing.assert_array_equal((length, *values), (2, 4, 6, 0))


class OnLazyTensors(KsTest):
    def test_values_and_structures(self):
        program = composit.ks.load(self.file)
        self.assertEqual(list(program), ["soft", "total", "rows", "text"])
        x = cnp.asarray(np.array([.5, -1, 2]))
        y = 2 * program.total(cnp.exp(x), 2, True)
        np.testing.assert_allclose(cnp.evaluate(y), 2 * soft(np.exp([.5, -1])).sum(), 1e-14)
        [gradient] = cnp.nn.chain_rule({y: cnp.asarray(np.array(1.0))}, [x])
        np.testing.assert_allclose(
            cnp.evaluate(gradient), [*(2 * slope(np.exp([.5, -1])) * np.exp([.5, -1])), 0], 1e-14)
        m = np.arange(6.0).reshape(2, 3)
        sums, pairs = program.rows(m, (2.0, (np.array([1.0, 2, 3]), np.array([4.0, 5, 6]))))
        np.testing.assert_array_equal(cnp.evaluate(sums), [3, 12])
        np.testing.assert_array_equal(cnp.evaluate(pairs[0]), [10, 14, 18])
        np.testing.assert_array_equal(cnp.evaluate(pairs[1]), [0, 1, 2])

    def test_float32_and_main(self):
        program = composit.ks.load(self.file)
        self.assertEqual(cnp.evaluate(program.soft(np.float32(1.5))).dtype, np.float32)
        self.assertEqual(cnp.evaluate(program.soft(1.5)).dtype, np.float64)
        self.assertIn("loss 0.139976", composit.ks.load(EXAMPLES / "lstm.ks").run())

    def test_errors(self):
        program = composit.ks.load(self.file)
        for call, message in [
            (lambda: program.total(np.ones(3), 2), r"total\(v, n, b\) expects 3 arguments, received 2"),
            (lambda: program.total("x", 2, True), "v: expected an array of Float, received a str"),
            (lambda: program.soft(None), "x: expected Float, received a NoneType"),
            (lambda: program.rows(np.ones((2, 2)), 1.0), "t: expected a tuple of 2, received a float"),
            (lambda: program.rows(np.ones((2, 2)), (1.0, np.ones(3))),
             r"t\[1\]: expected a tuple of 2 arrays for a tensor of tuples, received a ndarray"),
            (lambda: program.total(np.ones((3, 3)), 2, True), "expected Float with 1 dimensions"),
            (lambda: program["[rev total]"](np.ones(3), 1.0), "x: expected a tuple of 3"),
            (lambda: program["nothing"], "there is no function 'nothing'"),
            (lambda: program.text(1.0), "Python has no value of type String"),
            (lambda: composit.ks.load("nothing.ks"), "nothing.ks cannot be read"),
            (lambda: composit.ks.load(self.folder.name), "cannot be read"),
            (lambda: program.total(np.ones(3), 2**63, True), "n: expected an Integer of 64 bits"),
            (lambda: program.total(np.ones(3), True, True), "n: expected Integer, received a bool"),
            (lambda: program.soft(True), "x: expected Float, received a bool"),
            (lambda: program.total([[1.0], [2.0, 3.0]], 2, True), "rows of different sizes; composit.ks.Ragged.of"),
        ]:
            with self.subTest(message), self.assertRaisesRegex(composit.Error, message):
                call()
        self.assertFalse(hasattr(program, "nothing"))


class OnTensors(KsTest):
    def test_values_and_autograd(self):
        program = flashlight.ks(self.file)
        x = torch.tensor([.5, -1, 2], dtype=torch.float64, requires_grad=True)
        y = program.total(x, 2, True)
        np.testing.assert_allclose(y.item(), soft(np.array([.5, -1])).sum(), 1e-14)
        y.backward()
        np.testing.assert_allclose(x.grad, [*slope(np.array([.5, -1])), 0], 1e-14)
        self.assertTrue(torch.autograd.gradgradcheck(program.soft, (x[0].detach().requires_grad_(),)))
        self.assertEqual(program.soft(torch.tensor(1.5)).dtype, torch.float32)
        np.testing.assert_allclose(program.soft(1.5), soft(1.5), 1e-15)
        self.assertIsInstance(program.total(np.ones(3), 3, False), float)
        self.assertIsInstance(program.soft(cnp.asarray(np.array(1.5))), composit.LazyTensor)

    def test_takes_what_holds_the_numbers(self):
        program = flashlight.ks(self.file)
        self.assertEqual(program.soft(2), program.soft(2.0))
        turned = np.arange(3.0)[::-1]
        self.assertEqual(program.total(turned, 2, True), program.total(turned.copy(), 2, True))
        self.assertEqual(cnp.evaluate(composit.ks.load(self.file).soft(torch.tensor(2.0))).dtype, np.float32)
        (pathlib.Path(self.folder.name) / "at.ks").write_text(
            "(def at Float ((n : Integer) (v : Vec Float)) (index n v))\n"
            "(def pairs Float (v : Vec (Tuple Float Float))\n"
            "  (sumbuild (size v) (lam (i : Integer) (get$2$2 (index i v)))))")
        program = flashlight.ks(pathlib.Path(self.folder.name) / "at.ks")
        self.assertEqual(program.at(torch.tensor(1, dtype=torch.int32), torch.arange(3.0)), 1)
        for call, message in [
            (lambda: program.pairs((torch.ones(3), torch.ones(1))), "expected inputs of one size .* 3 and 1"),
            (lambda: program.pairs((torch.ones(3), torch.ones(3).double())), "Floats of one dtype, received fl"),
            (lambda: torch.func.vmap(lambda v: program.at(1, v))(torch.ones(2, 3)), "torch.func's transformations"),
        ]:
            with self.subTest(message), self.assertRaisesRegex(composit.Error, message):
                call()

    def test_true_is_not_one(self):
        (pathlib.Path(self.folder.name) / "of.ks").write_text(
            "(def f Integer (n : Integer) (add n 1))\n(def g Bool (n : Bool) (not n))")
        program = flashlight.ks(pathlib.Path(self.folder.name) / "of.ks")
        self.assertEqual(program.f(1), 2)
        self.assertIs(program.g(True), False)

    def test_gmm_is_adbenchs(self):
        """Against the same formula in torch."""
        program = flashlight.ks(EXAMPLES / "gmm.ks", backend="mosaic")
        rng = np.random.default_rng(0)
        k, d, n, gamma, m = 4, 3, 7, 1.5, 2
        alphas, means, icf, x = (torch.tensor(rng.normal(size=s), requires_grad=True)
                                 for s in [(k,), (k, d), (k, d * (d + 1) // 2), (n, d)])
        ours = program.gmm(alphas, means, icf, x, gamma, m)
        q = torch.diag_embed(icf[:, :d].exp())
        places = [(i, j) for j in range(d) for i in range(j + 1, d)]
        for number, (i, j) in enumerate(places):
            q = q.index_put((torch.arange(k), torch.tensor(i), torch.tensor(j)), icf[:, d + number])
        z = torch.einsum("kij,nkj->nki", q, x[:, None] - means[None]).square().sum(-1)
        logs = icf[:, :d].sum(1)
        likelihood = (torch.logsumexp(alphas + logs - z / 2, 1).sum() - n * torch.logsumexp(alphas, 0))
        prior = gamma ** 2 / 2 * q.square().sum() - m * logs.sum()
        expected = likelihood + prior
        gradients = torch.autograd.grad(ours, (alphas, means, icf, x))
        for one, other in zip(gradients, torch.autograd.grad(expected, (alphas, means, icf, x))):
            torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-11)
        constant = (ours - expected).item()
        moved = program.gmm(alphas + 1, 2 * means, icf, x, gamma, m)
        self.assertNotAlmostEqual(moved.item(), ours.item())
        self.assertTrue(np.isfinite(constant))


@flashlight.vmap
def wave(x: float) -> float:
    return x * x if x > 0.5 else 2 * x


class Layer(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3).double()
        self.function = function

    def forward(self, x):
        return self.function(self.linear(x).flatten()).sum()


class InsideOfCaptures(KsTest):
    def check(self, function):
        torch.manual_seed(0)
        model = Layer(function)
        x, y = torch.randn(2, 2, 3, dtype=torch.float64)
        captured = flashlight.trace(model, x)
        self.assertEqual(str(captured.graph).count("composit::evaluate("), 1)
        for _ in range(3):
            self.assertEqual(captured(y).item(), model(y).item())
        self.assertTrue(captured.check(y))
        loss, gradients = captured.grad()(y)
        model(y).backward()
        for name, parameter in model.named_parameters():
            torch.testing.assert_close(gradients[name], parameter.grad, rtol=1e-12, atol=1e-14)
        for backend in ("cpp", "mosaic"):
            torch.testing.assert_close(captured.compile(backend)(y), model(y), rtol=1e-12, atol=0)
        folder = pathlib.Path(self.folder.name) / ("saved_" + getattr(function, "__name__", "f"))
        captured.save(folder)
        self.assertEqual(flashlight.load(folder)(y).item(), model(y).item())

    def test_of_knossos(self):
        program = flashlight.ks(self.file)
        self.check(lambda v: program.total(v, 5, True))

    def test_of_vmap(self):
        self.check(wave)

    def test_training_step(self):
        program = flashlight.ks(self.file)
        model = Layer(lambda v: program.total(v, 6, True))

        def step(x):
            model.zero_grad(set_to_none=True)
            loss = model(x)
            loss.backward()
            return loss.detach(), model.linear.weight.grad

        x, y = torch.randn(2, 2, 3, dtype=torch.float64)
        captured = flashlight.trace(step, x)
        for _ in range(3):
            loss, gradient = captured(y)
            expected_loss, expected = step(y)
            self.assertEqual(loss.item(), expected_loss.item())
            self.assertTrue(torch.equal(gradient, expected))


if __name__ == "__main__":
    unittest.main()
