"""Numbers beside tensors of half precision: LibTorch's products and quotients take them as they are, its sums
round them first. Padding that crops. Every backend gives eager's bits."""

import unittest

import no_looks  # before flashlight
import torch
import torch.nn.functional as F

import flashlight

aten = torch.ops.aten
# The numbers that float16 rounds to infinity, to 0, to another one; those that it has.
PROGRAMS = [
    lambda x: (x / 1e5, x * 3e-8, x * 0.1, x / 8, x * 0.5),
    lambda x: ((1.0 - (x > 100).to(x.dtype)) * -1e5, x + 1e-3, x - 0.1),
    lambda x: (x * torch.tensor(3e-8), x / torch.tensor(1e5), x * torch.tensor(3e-8, dtype=torch.float64)),
    lambda x: (aten.mul.Scalar(x, 3e-8), aten.div.Scalar(x, 1e5), aten.add.Scalar(x, 0.1)),
    lambda x: (torch.addcmul(x, x, x, value=1e-8), torch.addcdiv(x, x, x, value=1e-3), torch.lerp(x, x * 2, 1 / 3)),
    lambda x: tuple(torch._foreach_mul([x], 3e-8)) + tuple(torch._foreach_div([x], 1e5)),
    lambda x: (x.clone().mul_(3e-8), x.clone().div_(1e5)),
]
BACKENDS = ["reference", "cpp", "mosaic"]


def compiled(program, x, backend):
    flags = {} if backend == "reference" else {"flags": ["-O1"]}
    return flashlight.trace(program, x).compile(backend, **flags)


class HalfNumbersTest(unittest.TestCase):
    def test_programs(self):
        for dtype in (torch.float16, torch.bfloat16):
            x = torch.tensor([1.0, 300, 6e4, 0.3, 7, 2e-3] * 6).to(dtype)
            for number, program in enumerate(PROGRAMS):
                for backend in BACKENDS:
                    given, received = program(x), compiled(program, x, backend)(x)
                    for place, (one, ours) in enumerate(zip(given, received)):
                        with self.subTest(program=number, place=place, dtype=dtype, backend=backend):
                            self.assertTrue(torch.equal(one, ours), f"{one[:6]}, {ours[:6]}")

    def test_derivatives(self):
        x = torch.tensor([1.0, 300, 0.3]).half().requires_grad_()
        (x * 3e-8 / 1e-3).float().sum().backward()
        loss = flashlight.trace(lambda x: (x * 3e-8 / 1e-3).float().sum(), x.detach())
        for backend in BACKENDS:
            _, ours = loss.grad(wrt=["input_0"]).compile(backend)(x.detach())
            self.assertTrue(torch.equal(ours["input_0"], x.grad), f"{backend}: {ours}, {x.grad}")


class CroppedPaddingTest(unittest.TestCase):
    def test_what_is_left_goes_around(self):
        x = torch.arange(30.0).reshape(1, 2, 3, 5)
        for pads in ((1, -1), (-2, 3), (-1, 0), (2, 2), (1, -1, -1, 2), (-1, 3, 2, -1)):
            y = x if len(pads) == 4 else x[0]
            program = lambda a, pads=pads: F.pad(a, pads, mode="circular")
            for backend in BACKENDS:
                self.assertTrue(torch.equal(compiled(program, y, backend)(y), program(y)), f"{pads} {backend}")


if __name__ == "__main__":
    unittest.main()
