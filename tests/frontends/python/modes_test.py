"""What stands between a program and LibTorch's operators: modes, operators made in Python. What they
put in the place of a call is captured."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import no_looks  # before flashlight
import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

import flashlight
from agreement import same_bits

aten = torch.ops.aten


class ProductsForSums(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is aten.add.Tensor:
            func = aten.mul.Tensor
        return func(*args, **(kwargs or {}))


class OneMore(TorchDispatchMode):
    """Writes into results after the call."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        return result.add_(1) if func is aten.mul.Tensor else result


class Zeros(TorchDispatchMode):
    """Gives what it makes itself."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is aten.exp.default:
            return torch.zeros_like(args[0])
        return func(*args, **(kwargs or {}))


class InPlace(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is aten.relu.default:
            return args[0].mul_(2)
        return func(*args, **(kwargs or {}))


class SumsForProducts(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in (torch.mul, torch.Tensor.mul, torch.Tensor.__mul__):
            func = torch.add
        return func(*args, **(kwargs or {}))


class CaptureTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.x, self.y = torch.randn(3, 3), torch.randn(3, 3)

    def agree(self, function, make=lambda tensor: tensor.clone()):
        captured = flashlight.trace(function, make(self.x))
        for fresh in (self.y, self.x - self.y):
            received, expected = captured(make(fresh)), function(make(fresh))
            self.assertTrue(same_bits(received, expected), f"{received}\n{expected}")
        return captured


class Modes(CaptureTest):
    def test_that_call_another_operator(self):
        def program(x):
            with ProductsForSums():
                y = x + x
            return y + 1

        captured = self.agree(program)
        self.assertIn("aten::mul.Tensor", [node.op for node in captured.graph.nodes])

    def test_around_the_capture(self):
        def program(x):
            return (x + x).sin()

        with ProductsForSums():
            self.agree(program)

    def test_that_write_results(self):
        def program(x):
            with OneMore():
                return x * x

        self.agree(program)

    def test_that_make_results(self):
        def program(x):
            with Zeros():
                return x.exp() + x

        self.agree(program)

    def test_that_write_arguments(self):
        def program(x):
            y = x * 3
            with InPlace():
                z = torch.relu(y)
            return y, z

        self.agree(program)

    def test_inside_of_each_other(self):
        def program(x):
            with ProductsForSums(), OneMore():
                return x + x

        self.agree(program)
        other = program

        def program(x):
            with OneMore(), ProductsForSums():
                return x + x

        self.agree(program)
        self.assertFalse(same_bits(program(self.x), other(self.x)))

    def test_with_composites_and_gradients(self):
        torch.manual_seed(1)
        layers = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.GELU(), torch.nn.Linear(4, 2))

        def step(x):
            with ProductsForSums():
                loss = (layers(x) + layers(x)).square().mean()
                gradients = torch.autograd.grad(loss, list(layers.parameters()))
            return loss.detach(), list(gradients)

        self.agree(step)
        with torch.inference_mode():
            self.agree(lambda x: layers(x) * 2)

    def test_of_functions(self):
        def program(x):
            with SumsForProducts():
                return x * x

        captured = self.agree(program)
        self.assertIn("aten::add.Tensor", [node.op for node in captured.graph.nodes])

    def test_of_torch_itself(self):
        counted = []

        def program(x):
            with FlopCounterMode(display=False) as counter:
                y = x @ x
            counted.append(counter.get_total_flops())
            return y

        self.agree(program)
        self.assertEqual(set(counted), {54})


@torch.library.custom_op("flashlight_modes_test::accumulate", mutates_args=())
def accumulate(x: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
    total.add_(x)  # which it does not declare
    return x * 2


@torch.library.custom_op("flashlight_modes_test::overwrite", mutates_args=())
def overwrite(x: torch.Tensor, to: torch.Tensor) -> None:
    to.numpy()[...] = x.numpy() + 1


@torch.library.custom_op("flashlight_modes_test::honest", mutates_args=("to",))
def honest(x: torch.Tensor, to: torch.Tensor) -> None:
    to.numpy()[...] = x.numpy() - 1


log = []


@torch.library.custom_op("flashlight_modes_test::logged", mutates_args=())
def logged(x: torch.Tensor) -> torch.Tensor:
    log.append(float(x.sum()))
    return x.clone()


library = torch.library.Library("flashlight_modes_test", "FRAGMENT")
library.define("by_numpy(Tensor x) -> Tensor")
library.impl(
    "by_numpy", lambda x: x * float(np.exp(x.detach().numpy()).sum()), "CompositeImplicitAutograd"
)


class Operators(CaptureTest):
    def test_that_write_in_secret(self):
        def program(x):
            total = torch.ones(3, 3)
            y = accumulate(x, total)
            before = total * 1
            overwrite(y, total)
            return y, before, total

        self.agree(program)

    def test_that_write_an_argument_in_secret(self):
        def program(x):
            accumulate(x.sin(), x)
            return x + 1

        captured = self.agree(program)
        written = self.y.clone()
        captured(written)
        self.assertTrue(same_bits(written, self.y + self.y.sin()))
        self.assertIn(
            "flashlight_modes_test::accumulate writes its argument 'total', which its schema does "
            "not declare",
            captured.assumptions(),
        )

    def test_that_say_what_they_write(self):
        def program(x):
            to = torch.zeros(3, 3)
            honest(x, to)
            return to * 2

        captured = self.agree(program)
        self.assertFalse([line for line in captured.assumptions() if "schema" in line])

    def test_that_do_more_than_compute(self):
        def program(x):
            logged(x)
            return x + 1

        captured = flashlight.trace(program, self.x)
        log.clear()
        captured(self.y)
        captured(self.x)
        self.assertEqual(log, [float(self.y.sum()), float(self.x.sum())])

    def test_without_a_key_are_one_node(self):
        captured = self.agree(lambda x: torch.ops.flashlight_modes_test.by_numpy(x) + 1)
        self.assertIn("flashlight_modes_test::by_numpy", [n.op for n in captured.graph.nodes])

    def test_without_a_key_that_read_elements_under_autograd_are_guarded(self):
        weight = torch.randn(3, 3, requires_grad=True)
        captured = flashlight.trace(
            lambda x: torch.ops.flashlight_modes_test.by_numpy(x * weight), self.x)
        captured(self.x)
        with self.assertRaisesRegex(flashlight.Error, "guard"):
            captured(self.y)


if __name__ == "__main__":
    no_looks.main()
