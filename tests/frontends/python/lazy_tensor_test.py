"""LazyTensor: properties, operators, NumPy's protocols, identity, errors; random expressions against
NumPy."""

import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import composit
import composit.numpy as cnp
from array_agreement import difference
from composit.types import LazyTensor, visualize


class Properties(unittest.TestCase):
    def test_are_numpys(self):
        x = cnp.ones((2, 3), dtype="float32")
        self.assertEqual((x.shape, x.dtype, x.rank, x.ndim, x.size, len(x)),
                         ((2, 3), np.dtype("float32"), 2, 2, 6, 2))
        self.assertEqual(cnp.split(x, 2)[1].output_index, 1)
        self.assertEqual(x.T.shape, (3, 2))

    def test_names(self):
        self.assertEqual(cnp.ones((2,), name="weight").name, "weight")
        self.assertEqual(cnp.exp(cnp.ones((2,))).name, "exp")
        self.assertNotEqual(cnp.ones((2,)).name, cnp.ones((2,)).name)

    def test_source_lines(self):
        y = cnp.exp(cnp.ones((2,)))
        self.assertRegex(y.node.annotations["source"], r"^lazy_tensor_test.py:\d+ in Properties")

    def test_graph_of_one_tensor_leads_to_it_alone(self):
        x = cnp.random.random((3,))
        y, z = cnp.exp(x), cnp.tanh(x)
        self.assertEqual([len(t.graph) for t in (x, y, z)], [1, 2, 2])
        self.assertEqual(len(visualize(y, z)), 3)

    def test_pictures(self):
        y = cnp.exp(cnp.random.random((3,)))
        self.assertIn("<svg", y._repr_svg_())
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "y.svg"
            visualize(y, render=True, file_name=file)
            self.assertIn("exp", file.read_text())

    def test_needs_no_torch(self):
        program = "import sys, composit; assert 'torch' not in sys.modules"
        subprocess.run([sys.executable, "-c", program], check=True)


class Values(unittest.TestCase):
    def test_one_and_several(self):
        x = cnp.asarray([1.0, 2.0])
        np.testing.assert_array_equal(composit.evaluate(x * 2), [2, 4])
        y, z = composit.evaluate(x + 1, x - 1)
        np.testing.assert_array_equal(y, [2, 3])
        np.testing.assert_array_equal(z, [0, 1])

    def test_results_may_be_written_to(self):
        x = cnp.asarray([1.0, 2.0])
        composit.evaluate(x)[0] = 9
        np.testing.assert_array_equal(composit.evaluate(x), [1, 2])

    def test_arrays_are_what_they_were_when_they_were_used(self):
        a = np.array([1.0, 2.0])
        x, y = cnp.asarray(a), cnp.zeros((2,)) + a
        a[:] = 9
        np.testing.assert_array_equal(composit.evaluate(x), [1, 2])
        np.testing.assert_array_equal(composit.evaluate(y), [1, 2])

    def test_inputs_may_be_given(self):
        x = cnp.ndarray((2,), name="x")
        np.testing.assert_array_equal(composit.evaluate(x * 3, inputs={x: np.array([1.0, 2.0])}), [3, 6])
        held = cnp.ones((2,))
        np.testing.assert_array_equal(composit.evaluate(held + 1, inputs={held: np.zeros(2)}), [1, 1])

    def test_backends_agree(self):
        x, w = cnp.random.random((4, 8)), cnp.random.random((8, 3))
        y = cnp.tanh(x @ w) + cnp.sum(x, axis=1, keepdims=True)
        expected = composit.evaluate(y)
        for backend in ("cpp", "mosaic"):
            self.assertEqual(difference(composit.evaluate(y, backend=backend), expected), "", backend)

    def test_seeds_are_numpys(self):
        np.random.seed(3)
        expected = np.random.random((2, 3))
        cnp.random.seed(3)
        np.testing.assert_array_equal(composit.evaluate(cnp.random.random((2, 3))), expected)
        expected = np.random.default_rng(5).normal(size=4)
        np.testing.assert_array_equal(
            composit.evaluate(cnp.random.default_rng(5).normal(size=4)), expected)
        self.assertIsInstance(cnp.random.random(), float)


class Identity(unittest.TestCase):
    def test_keys_of_a_dict(self):
        x = cnp.random.random((2,))
        y = cnp.exp(x)
        table = {x: "x", y: "y"}
        self.assertEqual(table[x], "x")
        self.assertEqual(table[cnp.exp(x)], "y")  # the same value, made again
        self.assertEqual(table[y.node.operands[0]], "x")
        self.assertNotIn(cnp.tanh(x), table)

    def test_equal_arrays_are_two_inputs(self):
        a, b = cnp.zeros((2,)), cnp.zeros((2,))
        gradients = composit.nn.grad(cnp.sum(a * 2 + b * 3), [a, b])
        np.testing.assert_array_equal(composit.evaluate(*gradients), [[2, 2], [3, 3]])

    def test_comparison_is_by_element(self):
        x = cnp.asarray([1.0, 2.0])
        np.testing.assert_array_equal(composit.evaluate(x == np.array([1.0, 3.0])), [True, False])


class Protocols(unittest.TestCase):
    def test_functions_of_numpy_make_nodes(self):
        x = cnp.random.random((2, 3))
        a = composit.evaluate(x)
        for function in (lambda x: np.maximum(x, 0.5), np.exp, lambda x: np.sum(x, axis=1),
                         lambda x: np.concatenate([x, np.ones((1, 3))]), lambda x: np.ones((2, 3)) + x,
                         lambda x: np.float32(2) * x, lambda x: np.linalg.norm(x, axis=1),
                         np.add.reduce, np.add.accumulate, lambda x: np.multiply.outer(x, x),
                         lambda x: np.where(x > 0.5, x, 0), lambda x: np.zeros_like(x) + np.shape(x)[0],
                         lambda x: np.einsum("ij,kj->ik", x, x)):
            result = function(x)
            self.assertIsInstance(result, LazyTensor)
            self.assertEqual(difference(composit.evaluate(result), function(a)), "")

    def test_in_place_operators_keep_the_dtype(self):
        x = cnp.ones((2,), dtype="float32")
        x += np.ones(2)
        self.assertEqual(x.dtype, np.float32)
        y = cnp.ones((2,), dtype="int32")
        with self.assertRaisesRegex(composit.Error, "in place of an operand"):
            y += 0.5


class Errors(unittest.TestCase):
    def check(self, error, message, function):
        with self.assertRaisesRegex(error, message):
            function()

    def test_values_are_needed(self):
        x = cnp.random.random((2, 3))
        needed = composit.ValuesNeeded
        self.assertTrue(issubclass(needed, TypeError) and issubclass(needed, composit.Error))
        self.check(needed, "condition .* and bool\\[\\] has none", lambda: bool(x.sum() > 0))
        self.check(needed, "a float needs values", lambda: float(x[0, 0]))
        self.check(needed, "numpy.ndarray needs values", lambda: np.asarray(x))
        self.check(needed, "set_item", lambda: x.__setitem__(0, 1))
        self.check(needed, "numpy.linalg.svd", lambda: np.linalg.svd(x))
        self.check(needed, "written into an array", lambda: np.add(np.ones(3), x, out=np.ones((2, 3))))

    def test_name_function_and_what_was_received(self):
        x = cnp.random.random((2, 3))
        self.check(composit.Error, r"numpy.sum\] expected an axis in \[-2, 2\), received 7", lambda: cnp.sum(x, axis=7))
        self.check(composit.Error, "numpy.matmul", lambda: x @ x)
        self.check(composit.Error, "numpy.get_item", lambda: x[5])
        self.check(TypeError, "unsupported operand", lambda: x + "a")
        self.check(composit.Error, "expected one of cpp, cuda, devices, mosaic, pjrt, reference",
                   lambda: composit.evaluate(x, backend="gpu"))
        self.check(composit.Error, "at least one tensor", lambda: composit.evaluate())

    def test_name_the_line_that_made_the_node(self):
        y = cnp.take(cnp.arange(3), cnp.asarray([5]))
        message = r"out of range.*made at lazy_tensor_test.py:\d+ in Errors"
        self.check(composit.Error, message, lambda: composit.evaluate(y))


class RandomExpressions(unittest.TestCase):
    """A failing expression is printed as a program."""

    UNARY = ["{m}.exp({0})", "{m}.tanh({0})", "-{0}", "{m}.abs({0})", "{0}.T", "{0}[0]", "{0}[..., ::-1]",
             "{0}.sum(axis=0)", "{0}.mean(axis=-1, keepdims=True)", "{m}.sqrt({m}.abs({0}))",
             "{m}.reshape({0}, (-1,))", "{m}.where({0} > 0, {0}, 1)", "{0}.astype('float32')",
             "{m}.cumsum({0}, axis=0)", "{m}.sort({0}, axis=-1)", "{0}[:, None]", "{m}.clip({0}, -1, 1)"]
    BINARY = ["{0} + {1}", "{0} * {1}", "{0} - {1}", "{m}.maximum({0}, {1})", "{0} / ({m}.abs({1}) + 1)",
              "{0} @ {1}", "{m}.concatenate([{0}, {1}])", "{m}.stack([{0}, {1}])", "({0} < {1}) * 1",
              "{m}.hypot({0}, {1})"]

    def program(self, rng):
        """Lines of assignments; {m} is the module."""
        shapes = [rng.choice([(3, 3), (3,), (1, 3), (3, 1)]) for _ in range(2)]
        lines = [f"v{i} = {{m}}.asarray(np.random.default_rng({rng.randrange(99)}).normal(size={shape}))"
                 for i, shape in enumerate(shapes)]
        for i in range(2, 8):
            operands = [f"v{rng.randrange(i)}" for _ in range(2)]
            template = rng.choice(self.UNARY + self.BINARY)
            lines.append(f"v{i} = " + template.replace("{0}", operands[0]).replace("{1}", operands[1]))
        return lines

    def run_with(self, lines, module):
        names = {"np": np, module: __import__("composit").numpy if module == "cnp" else np}
        for number, line in enumerate(lines):
            try:
                exec(line.replace("{m}", module), names)
                if names[f"v{number}"].ndim == 0:
                    return number, None  # NumPy takes axis 0 of numbers, for history's sake
            except (ValueError, IndexError, TypeError, composit.Error):
                return number, None
        return None, names[f"v{len(lines) - 1}"]

    def test_as_numpys(self):
        completed = 0
        for seed in range(400):
            lines = self.program(random.Random(seed))
            stopped, expected = self.run_with(lines, "np")
            ours_stopped, ours = self.run_with(lines, "cnp")
            code = "\n".join(["", "import numpy as np, composit, composit.numpy as cnp",
                              *(line.replace("{m}", "cnp") for line in lines),
                              f"print(composit.evaluate(v{len(lines) - 1}))"])
            self.assertEqual(stopped, ours_stopped, code)
            if stopped is None:
                completed += 1
                found = difference(composit.evaluate(ours), np.asarray(expected), times=10)
                self.assertEqual(found, "", code)
        self.assertGreater(completed, 100)


if __name__ == "__main__":
    unittest.main()
