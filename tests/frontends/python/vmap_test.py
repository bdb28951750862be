"""flashlight.vmap and compile_function: Knossos' functions on numbers, arrays and tensors, under
autograd, and their errors."""

import copy
import math
import pickle
import unittest

import numpy as np
import torch

import flashlight

LIMIT = 1.0


@flashlight.vmap
def relu3(x: float) -> float:
    if x < 0.0:
        return 0.0
    elif x < LIMIT:
        return third_of_cube(x)
    else:
        return x - 2 / 3


def third_of_cube(x: float) -> float:
    return 1 / 3 * x ** 3


@flashlight.vmap
def wave(x: float, y: float) -> float:
    return x * math.sin(y) if x > y else x - y


@flashlight.vmap
def both(x: float):
    return 2 * x, x + 1


@flashlight.vmap
def halved(x: float) -> float:
    y = x
    for _ in range(3):
        y = y * x
    while y > 10.0:
        y = y / 2
    return y


@flashlight.compile_function
def sqrl(x: torch.Tensor):
    if torch.sum(x) < 0.0:
        y = -0.125 * x
    else:
        y = 1 / 2 * x ** 2
    return torch.mean(torch.sin(y) * x)


def relu3_by_torch(x):
    return torch.where(x < 0, 0 * x, torch.where(x < 1, x**3 / 3, x - 2 / 3))


def wave_by_torch(x, y):
    return torch.where(x > y, x * torch.sin(y), x - y)


class Values(unittest.TestCase):
    def test_numbers(self):
        self.assertEqual(relu3(0.5), 0.5**3 / 3)
        self.assertIsInstance(relu3(2), float)
        self.assertEqual([relu3(t) for t in np.arange(-1, 1, 0.5)], [0, 0, 0, 0.5**3 / 3])

    def test_tensors_of_all_shapes_and_dtypes(self):
        for shape in ((), (7,), (2, 3, 4), (0,), (3, 0)):
            for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
                x = torch.randn(shape).to(dtype)
                tolerance = {} if dtype.itemsize > 2 else {"rtol": 2e-2, "atol": 1e-2}
                torch.testing.assert_close(relu3(x), relu3_by_torch(x), **tolerance)
        x = torch.randn(4, 5).T
        torch.testing.assert_close(relu3(x), relu3_by_torch(x))

    def test_integers_are_floats(self):
        torch.testing.assert_close(relu3(torch.arange(3)), relu3_by_torch(torch.arange(3.0)))
        np.testing.assert_allclose(relu3(np.arange(3)), relu3_by_torch(torch.arange(3.0).double()))

    def test_arguments_broadcast(self):
        x, y = torch.randn(4), torch.randn(3, 1)
        torch.testing.assert_close(wave(x, y), wave_by_torch(x, y))

    def test_numbers_beside_tensors_take_their_dtype(self):
        x = torch.randn(4)
        torch.testing.assert_close(wave(x, 0.5), wave_by_torch(x, torch.tensor(0.5)))

    def test_several_results(self):
        self.assertEqual(both(1.0), (2.0, 2.0))
        x = torch.randn(3)
        torch.testing.assert_close(both(x), (2 * x, x + 1))

    def test_loops(self):
        self.assertEqual(halved(3.0), 81 / 16)
        self.assertEqual(halved(torch.tensor([3.0, 1.0])).tolist(), [81 / 16, 1])

    def test_tensor_function(self):
        for x in (torch.randn(3, 3) + 2, torch.randn(3, 3) - 2):
            torch.testing.assert_close(sqrl(x), sqrl.__wrapped__(x))


class Derivatives(unittest.TestCase):
    def test_vjp(self):
        x = torch.linspace(-2, 2, 9)
        slope = torch.where(x < 0, 0 * x, torch.where(x < 1, x**2, 1 + 0 * x))
        torch.testing.assert_close(relu3.vjp(x, torch.full_like(x, 2)), 2 * slope)
        self.assertEqual(relu3.vjp(0.5, 1.0), 0.25)

    def test_autograd_twice(self):
        torch.manual_seed(0)
        x = torch.randn(5, dtype=torch.float64, requires_grad=True)
        y = torch.randn(5, dtype=torch.float64, requires_grad=True)
        self.assertTrue(torch.autograd.gradcheck(wave, (x, y)))
        self.assertTrue(torch.autograd.gradgradcheck(wave, (x, y)))
        m = torch.randn(3, 3, dtype=torch.float64, requires_grad=True)
        self.assertTrue(torch.autograd.gradcheck(sqrl, (m,)))

    def test_module_trains_copies_and_pickles(self):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), relu3.nnModule, torch.nn.Linear(8, 1))
        x = torch.randn(16, 4)
        expected = model[2](relu3_by_torch(model[0](x)))
        for one in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            torch.testing.assert_close(one(x), expected)
        model(x).sum().backward()
        self.assertIsNotNone(model[0].weight.grad)
        self.assertEqual(list(model.state_dict()), ["0.weight", "0.bias", "2.weight", "2.bias"])


class Errors(unittest.TestCase):
    def test_name_the_line(self):
        def unknown(x: float) -> float:
            y = x + 1
            return no_such_function(y)  # noqa: F821

        line = unknown.__code__.co_firstlineno + 2
        with self.assertRaisesRegex(flashlight.Error, rf"vmap_test.py:{line}:\d+: undefined value no_such_function"):
            flashlight.vmap(unknown)(1.0)

    def test_lambda(self):
        with self.assertRaisesRegex(flashlight.Error, r"vmap_test.py:\d+: expected a function made by def"):
            flashlight.vmap(lambda x: x)(1.0)

    def test_arguments(self):
        with self.assertRaisesRegex(flashlight.Error, "received a str: 'a'"):
            relu3("a")
        with self.assertRaisesRegex(flashlight.Error, "expected a tensor for 'y'"):
            wave(torch.ones(2))
        with self.assertRaisesRegex(flashlight.Error, "a cotangent per result"):
            relu3.vjp(torch.ones(2))


if __name__ == "__main__":
    unittest.main()
