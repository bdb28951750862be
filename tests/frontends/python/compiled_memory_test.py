"""What compiled code does about memory: arguments that overlap, values that LibTorch leaves to readers."""

import unittest

import no_looks  # before flashlight
import torch

import flashlight


def written(x, y):
    x.add_(1)
    return x + y


def compiled(program, *inputs, backend="cpp", **options):
    flags = {"flags": ["-O1"]} if backend == "cpp" else {}
    return flashlight.trace(program, *inputs).compile(backend, **flags, **options)


class OverlapTest(unittest.TestCase):
    """Compiled code holds for arguments that lie in memory as those of the capture did."""

    def test_arguments_that_overlap_now(self):
        for backend in ("cpp", "aten"):
            f = compiled(written, torch.zeros(3), torch.zeros(3), backend=backend)
            memory = torch.zeros(4)
            for x, y in ((memory[:3], memory[:3]), (memory[:3], memory[1:])):
                with self.assertRaisesRegex(RuntimeError, "overlap in memory, one of them is written"):
                    f(x, y)
            self.assertTrue(torch.equal(memory, torch.zeros(4)))
            self.assertTrue(torch.equal(f(memory[:2].new_zeros(3), memory[1:]), torch.ones(3)))

    def test_arguments_that_overlapped(self):
        x = torch.zeros(3)
        f = compiled(written, x, x)
        memory = torch.zeros(3)
        self.assertTrue(torch.equal(f(memory, memory), torch.full((3,), 2.0)))
        self.assertTrue(torch.equal(memory, torch.ones(3)))
        with self.assertRaisesRegex(RuntimeError, "lay in the same memory"):
            f(torch.zeros(3), torch.zeros(3))

    def test_arguments_that_are_read_alone_may_overlap(self):
        f = compiled(lambda x, y: x * y, torch.ones(3), torch.ones(3))
        x = torch.tensor([1.0, 2.0, 3.0])
        self.assertTrue(torch.equal(f(x, x), x * x))

    def test_gradients_of_arguments_that_overlapped(self):
        x = torch.randn(3, requires_grad=True)
        f = compiled(lambda x, y: (x * y).sum(), x, x)
        f(x, x).backward()
        self.assertTrue(torch.equal(x.grad, 2 * x.detach()))


class LeftToReadersTest(unittest.TestCase):
    """LibTorch conjugates and negates when somebody reads. Backends pass elements on."""

    def setUp(self):
        torch.manual_seed(0)
        self.z = torch.randn(3, dtype=torch.complex64)

    def test_results(self):
        for program in (lambda z: z.conj(), lambda z: (z * 2).conj().imag, lambda z: z.conj() * z):
            received = compiled(program, self.z, backend="aten")(self.z)
            self.assertTrue(torch.equal(received, program(self.z)))

    def test_state(self):
        class Module(torch.nn.Module):
            def __init__(self, c):
                super().__init__()
                self.register_buffer("c", c)

            def forward(self, x):
                return x * self.c + self.c

        z = torch.randn(3, dtype=torch.complex64)
        for c in (z.conj(), z.conj().imag, z.reshape(3, 1).expand(3, 2).conj()[:, 0]):
            module = Module(c)
            expected = module(self.z)
            self.assertTrue(torch.equal(compiled(module, self.z, backend="aten")(self.z), expected))

    def test_values_between_devices(self):
        for program, name in ((lambda z: z.conj() * z, "conj"), (lambda z: (z * 2).conj().imag + 1, "mul")):
            for choices in (f"{name}: on aten\n*: on reference", f"{name}: on reference\n*: on aten",
                            f"device far: aten, memory far\n{name}: on aten\n*: on far"):  # fmt: skip
                received = compiled(program, self.z, backend="devices", choices=choices)(self.z)
                self.assertTrue(torch.allclose(received, program(self.z), rtol=1e-6), choices)

    def test_quantized_values_do_not_pass(self):
        def program(x):
            return torch.quantize_per_tensor(x, 0.1, 3, torch.quint8).dequantize() * 2

        x = torch.randn(4)
        self.assertTrue(torch.equal(compiled(program, x, backend="aten")(x), program(x)))
        with self.assertRaisesRegex(RuntimeError, "its elements in memory, received one that is quantized"):
            compiled(program, x, backend="devices",
                     choices="device g: aten\nquantize_per_tensor: on aten\n*: on g")  # fmt: skip

    def test_draws_beside_numbers(self):
        """Guards, also within operators that ask for a number, do not draw."""

        def program(x):
            r = torch.rand(3)
            return r * x if bool(x.sum() > 0) else r

        x = torch.ones(3)
        f = compiled(program, x, backend="devices", choices="*: on aten")
        torch.manual_seed(3)
        expected = program(x)
        torch.manual_seed(3)
        self.assertTrue(torch.equal(f(x), expected))


class PowerTest(unittest.TestCase):
    def test_of_zeros_and_infinities(self):
        inf = float("inf")
        real = torch.tensor([0.0, -0.0, inf, -inf, -1.0, 2.0, 0.3])
        for x in (real, real.double(), real.bfloat16(), real.half(), torch.complex(real, torch.zeros(7))[[0, 4, 5, 6]]):
            for exponent in (0, 1, 2, 3, -1, -2, 0.5, -0.5, 0.3):
                with self.subTest(x=x, exponent=exponent):
                    expected = x**exponent
                    received = flashlight.trace(lambda x: x**exponent, x).evaluate(x)
                    if x.is_complex():  # a zero's sign and C's power aside
                        received, expected = received[1:], expected[1:]
                    else:
                        self.assertTrue(torch.equal(received.signbit(), expected.signbit() & ~expected.isnan() |
                                                    received.signbit() & expected.isnan()))
                    rtol = 1e-2 if x.itemsize == 2 else 1e-5
                    self.assertTrue(torch.allclose(received, expected, rtol=rtol, atol=1e-6, equal_nan=True))

    def test_of_complex_zero(self):
        zero = torch.zeros(1, dtype=torch.complex64)
        for exponent in (0, 1, 2, 3, 0.5):
            received = flashlight.trace(lambda x: x**exponent, zero).evaluate(zero)
            self.assertTrue(torch.equal(received, zero**exponent), exponent)


class LargeIntegersTest(unittest.TestCase):
    """Indices are ints where they fit. What a program makes of them is int64."""

    def test_products_of_indices(self):
        i, square = torch.arange, torch.arange(70000) * torch.arange(70000)
        programs = {
            "square": lambda x: i(70000) ** 2 + x,
            "of quotients": lambda x: (i(140000) // 2) * (i(140000) // 2) + x,
            "remainder": lambda x: i(70000) * i(70000) % 1000 + x,
            "difference": lambda x: (i(70000) - 35000) * i(70000) * 4 + x,
            "sum": lambda x: (i(70000) * i(70000)).sum() + x,
            "where": lambda x: torch.where(i(70000) > 5, i(70000) * i(70000), x),
            "float": lambda x: (i(70000) * i(70000)).double() + x,
            "of bytes": lambda x: i(70000) * i(70000) * x.to(torch.uint8),
        }  # fmt: skip
        x = torch.tensor([3])
        self.assertGreater(int(square.max()), 2**32)
        for name, program in programs.items():
            for backend in ("cpp", "mosaic"):
                with self.subTest(program=name, backend=backend):
                    captured = flashlight.trace(program, x)
                    received = captured.compile(backend, flags=["-O1"])(x)
                    self.assertTrue(torch.equal(received, program(x)))


if __name__ == "__main__":
    unittest.main()
