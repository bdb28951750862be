"""Numbers beside tensors of half precision: LibTorch's products and quotients take them as they are, its sums
round them first. Padding that crops. Every backend gives eager's bits. Sums of half precision, which leave its
range or its digits: results are as good as eager's."""

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
    lambda x: (x * 100000, x // 0.3, x % 0.3, torch.fmod(x, 0.3), torch.div(x, 0.3, rounding_mode="floor")),
    lambda x: (x > 0.3, x == 0.3, x.clamp(0.3, 0.7), F.hardshrink(x, 0.3), torch.maximum(x, torch.tensor(0.3))),
    lambda x: (F.threshold(x, 0.3, 9.1), F.leaky_relu(-x, 0.3), F.elu(-x, 0.3), F.celu(-x, 0.7)),
    lambda x: (F.softshrink(x, 0.3), F.softplus(x, 0.3, 0.7), torch.tensor(0.3) / x, torch.tensor(0.3) * x),
    lambda x: (torch.add(x, x, alpha=0.1), torch.sub(x, x, alpha=0.1), torch._foreach_mul([x], 0.3)[0]),
]
BACKENDS = ["reference", "cpp", "mosaic"]


def all_of(programs):
    return lambda x: tuple(y for program in programs for y in program(x))


def place_of(programs, x, place):
    """The result of which program it is, and which of its results: "3, 1"."""
    for number, program in enumerate(programs):
        count = len(program(x))
        if place < count:
            return f"{number}, {place}"
        place -= count


def compiled(program, x, backend):
    flags = {} if backend == "reference" else {"flags": ["-O1"]}
    return flashlight.trace(program, x).compile(backend, **flags)


class HalfNumbersTest(unittest.TestCase):
    def test_programs(self):
        for dtype in (torch.float16, torch.bfloat16):
            x = torch.tensor([1.0, 300, 6e4, 0.3, 7, 2e-3] * 6).to(dtype)
            given = all_of(PROGRAMS)(x)
            for backend in BACKENDS:  # of one program, which is compiled in less time than many
                received = compiled(all_of(PROGRAMS), x, backend)(x)
                for place, (one, ours) in enumerate(zip(given, received)):
                    with self.subTest(place_of(PROGRAMS, x, place), dtype=dtype, backend=backend):
                        self.assertTrue(torch.equal(one, ours), f"{one[:6]}, {ours[:6]}")

    def test_derivatives(self):
        x = torch.tensor([1.0, 300, 0.3]).half().requires_grad_()
        (x * 3e-8 / 1e-3).float().sum().backward()
        loss = flashlight.trace(lambda x: (x * 3e-8 / 1e-3).float().sum(), x.detach())
        for backend in BACKENDS:
            _, ours = loss.grad(wrt=["input_0"]).compile(backend)(x.detach())
            self.assertTrue(torch.equal(ours["input_0"], x.grad), f"{backend}: {ours}, {x.grad}")


INDEX = torch.zeros(300, dtype=torch.int64)


def ones(x):
    return x.reshape(-1)[:300] * 0 + 1


# Of [1, 2, 300, 300].
SUMS = [
    lambda x: (x.mean(), x.mean((2, 3)), x[0, 0, :257].mean(0), x.nanmean()),
    lambda x: (F.adaptive_avg_pool2d(x, 1), F.adaptive_avg_pool2d(x, 2), F.avg_pool2d(x, 270)),
    lambda x: (F.mse_loss(x, 3 * x), F.l1_loss(x, 3 * x), F.huber_loss(x, 3 * x)),
    lambda x: (x.var(), x.std(), (x[0, 0] * 30).std(1), (x[0, 0] + 20).var(0), torch.var_mean(x)[1]),
    lambda x: (F.layer_norm(x * 40, x.shape), F.group_norm(x * 300, 2), F.instance_norm(x * 300)),
    lambda x: (F.layer_norm(x[0, 0] * 0 + 3, (300,), eps=1e-8), F.rms_norm(x[0, 0] * 1e-4, (300,), eps=1e-8)),
    lambda x: (F.rms_norm(x[0, 0] * 300, (300,)), F.normalize(x[0, 0] * 300, dim=-1)),
    lambda x: (F.batch_norm(x * 300, None, None, training=True),
               F.batch_norm(x, torch.zeros(2).to(x), torch.zeros(2).to(x), eps=1e-8)),
    lambda x: ((x[0, 0] * 300).norm(dim=-1), x[0, 0].norm(p=3, dim=1), x[0, 0].norm(p=0.5, dim=-1)),
    lambda x: (F.cosine_similarity(x * 300, x.flip(-1), dim=-1),),
    lambda x: (x.reshape(-1).softmax(0) * 6e4, x.reshape(-1).log_softmax(0), x.logsumexp((-1, -2))),
    lambda x: (torch.baddbmm(x[0], 300 * x[0], 300 * x[0], beta=0.3, alpha=1e-3),
               torch.addmm(x[0, 0], 300 * x[0, 0], 300 * x[0, 1], beta=0, alpha=1e-3)),
    lambda x: (torch.zeros(3).to(x).scatter_add(0, INDEX, ones(x)),
               torch.zeros(3).to(x).scatter_reduce(0, INDEX, ones(x) * 3, "mean", include_self=False)),
    lambda x: (F.embedding_bag(INDEX[None], ones(x)[:40].reshape(4, 10) * 2, mode="mean"),),
]


class SumsTest(unittest.TestCase):
    def test_as_good_as_eager(self):
        torch.manual_seed(0)
        for dtype in (torch.float16, torch.bfloat16):
            x = (torch.rand(1, 2, 300, 300) + 0.5).to(dtype)
            program = all_of(SUMS)
            eager, exact = program(x), program(x.double())
            for backend in BACKENDS:
                ours = compiled(program, x, backend)(x)
                for place, (one, given, right) in enumerate(zip(ours, eager, exact)):
                    with self.subTest(place_of(SUMS, x, place), dtype=dtype, backend=backend):
                        error, of_eager = off(one, right), off(given, right)
                        # A unit in the last place, where eager is right by chance.
                        least = torch.finfo(dtype).eps * right.abs().max().item()
                        self.assertLessEqual(error, max(1.5 * of_eager, least))


def off(x, exact):
    """The greatest difference, infinite for a NaN."""
    return (x.double() - exact).abs().nan_to_num(float("inf")).max().item()


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
