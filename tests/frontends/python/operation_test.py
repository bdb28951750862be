"""wrap_as_operation: functions that are traced, and functions that are called."""

import traceback
import unittest

import numpy as np

import composit
import composit.numpy as cnp
from composit.nn import chain_rule, grad


@cnp.wrap_as_operation()
def relu(x):
    return np.maximum(x, 0)


@cnp.wrap_as_operation()
def scaled(x, factor, *, offset=0.0):
    parts = np.split(x, 2)
    return parts[0] * factor + offset, parts[1]


@cnp.wrap_as_operation()
def by_sign(x):
    return x * 2 if x.sum() > 0 else -x


@cnp.wrap_as_operation(vjp=lambda x, cotangent: 3 * cotangent * np.square(x))
def cube(x):
    return np.array([float(e) ** 3 for e in x.ravel()]).reshape(x.shape)


@cnp.wrap_as_operation()
def fails_on_large(x):
    if x.max() > 10:
        raise ValueError("too large")
    return x


class Traced(unittest.TestCase):
    def test_is_one_node_that_evaluates(self):
        x = cnp.asarray([-1.0, 2.0])
        y = relu(x)
        self.assertEqual(len(y.graph), 2)
        self.assertEqual((y.node.op, y.node.attributes["name"]), ("composit::call", "relu"))
        np.testing.assert_array_equal(composit.evaluate(y), [0, 2])

    def test_types_may_differ_between_calls(self):
        x, y = relu(cnp.ones((2,))), relu(cnp.ones((3, 4), dtype="float32"))
        for backend in ("reference", "cpp", "mosaic"):
            a, b = composit.evaluate(x, y, backend=backend)
            self.assertEqual((a.shape, b.shape, b.dtype), ((2,), (3, 4), np.float32))

    def test_derivative(self):
        x = cnp.asarray([-1.0, 2.0])
        (slope,) = grad(cnp.sum(relu(x) * 3), [x])
        np.testing.assert_array_equal(composit.evaluate(slope), [0, 3])

    def test_prints_and_parses(self):
        x = cnp.ndarray((2,), name="x")
        text = str(relu(x).graph)
        self.assertEqual(str(composit.parse(text)), text)

    def test_several_results_and_other_arguments(self):
        x = cnp.asarray([1.0, 2.0, 3.0, 4.0])
        first, second = scaled(x, 10, offset=1)
        a, b = composit.evaluate(first, second)
        np.testing.assert_array_equal(a, [11, 21])
        np.testing.assert_array_equal(b, [3, 4])
        self.assertEqual(len(composit.visualize(first, second)), 2)

    def test_captured_values_are_operands(self):
        weight = cnp.asarray([2.0, 3.0])

        @cnp.wrap_as_operation()
        def times(x):
            return x * weight

        x = cnp.asarray([1.0, 1.0])
        y = times(x)
        self.assertEqual(len(y.graph), 3)
        (slope,) = grad(cnp.sum(y), [weight])
        np.testing.assert_array_equal(composit.evaluate(slope), [1, 1])

    def test_nested(self):
        @cnp.wrap_as_operation()
        def twice(x):
            return relu(x) + relu(-x)

        y = twice(cnp.asarray([-1.0, 2.0]))
        self.assertEqual(len(y.graph), 2)
        np.testing.assert_array_equal(composit.evaluate(y), [1, 2])

    def test_arrays_made_within_are_constants(self):
        @cnp.wrap_as_operation()
        def plus_one(x):
            return x + cnp.ones((2,))

        self.assertEqual(len(plus_one(cnp.zeros((2,))).graph), 2)

    def test_runs_passes(self):
        y = relu(cnp.asarray([-1.0, 2.0]))
        self.assertIn("aten::maximum", str(y.graph.run_passes("inline_calls")))


class Called(unittest.TestCase):
    def test_branch_on_values(self):
        for values, expected in (([1.0, 2.0], [2, 4]), ([-1.0, -2.0], [1, 2])):
            y = by_sign(cnp.asarray(values))
            self.assertEqual((y.node.op, len(y.graph)), ("composit::python", 2))
            np.testing.assert_array_equal(composit.evaluate(y), expected)

    def test_derivative_that_is_given(self):
        x = cnp.asarray([1.0, 2.0, -3.0])
        (slope,) = grad(cnp.sum(cube(x)), [x])
        np.testing.assert_allclose(composit.evaluate(slope), [3, 12, 27])
        (curvature,) = grad(cnp.sum(slope), [x])
        np.testing.assert_allclose(composit.evaluate(curvature), [6, 12, -18])

    def test_no_derivative(self):
        x = cnp.asarray([1.0])
        with self.assertRaisesRegex(composit.Error, "by_sign.*wrap_as_operation\\(vjp="):
            chain_rule({by_sign(x): np.ones(1)}, [x])

    def test_an_exception_is_the_functions_own(self):
        y = fails_on_large(cnp.asarray([99.0]))
        try:
            composit.evaluate(y)
        except ValueError as error:
            frames = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
            self.assertIn("fails_on_large", frames)
        else:
            self.fail("no exception")

    def test_an_exception_on_zeros_is_the_functions_own(self):
        @cnp.wrap_as_operation()
        def wrong(x):
            return x.no_such_method()

        with self.assertRaises(AttributeError):
            wrong(cnp.zeros((2,)))

    def test_types_may_not_depend_on_values(self):
        @cnp.wrap_as_operation()
        def positive(x):
            return np.asarray([e for e in x if float(e) > 0])

        with self.assertRaisesRegex(composit.Error, "may not depend on values"):
            composit.evaluate(positive(cnp.asarray([1.0, -1.0])))

    def test_backends_refuse_it_by_name(self):
        y = by_sign(cnp.asarray([1.0]))
        for backend in ("cpp", "mosaic"):
            with self.assertRaisesRegex(composit.Error, "composit::python"):
                composit.evaluate(y, backend=backend)

    def test_its_text_is_not_read_back(self):
        text = str(by_sign(cnp.asarray([1.0])).graph)
        self.assertIn('opaque("by_sign")', text)
        with self.assertRaises(composit.Error):
            composit.parse(text)

    def test_decorator_without_parentheses(self):
        with self.assertRaisesRegex(TypeError, "@wrap_as_operation\\(\\)"):
            cnp.wrap_as_operation(name=lambda x: x)


if __name__ == "__main__":
    unittest.main()
