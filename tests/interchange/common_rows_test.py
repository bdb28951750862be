"""Operators that targets get in terms of others (composit/interchange/rows), and complex numbers as
pairs: onnxruntime and XLA give what torch gives, at the ends of domains as well.

The other side lives in an environment of its own (engines.py), without which the test is skipped."""

import functools
import math
import pathlib
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "frontends/python"))

import no_looks  # before flashlight
import composit
import mpmath
import torch

import engines
import flashlight

SKIPPED = 77
ENGINES = ["onnxruntime", "xla"]
INF, NAN = math.inf, math.nan
# Of float64: interpolants and series sum tens of terms. Near zeros of what oscillates, of the size of
# its waves.
RELATIVE, OF_WAVES = 1e-12, 1e-13

ALL = [-INF, -300.5, -31, -29.5, -16.5, -12.25, -11.5, -2.5, -1, -1e-9, -0.0, 0.0, 1e-9, 0.3, 1, 1.999, 2,
       2.001, 7.5, 11.9, 15.9, 16.1, 29.9, 30, 30.1, 64, 300.5, INF, NAN]  # fmt: skip
POSITIVE = [x for x in ALL if not x < 0]
SMALL = [x for x in ALL if not abs(x) > 20]
# Those of which torch has 8 digits only, by mpmath instead.
WAVES = {"bessel_j0": lambda x: mpmath.besselj(0, x), "bessel_j1": lambda x: mpmath.besselj(1, x),
         "bessel_y0": lambda x: mpmath.bessely(0, x), "bessel_y1": lambda x: mpmath.bessely(1, x),
         "airy_ai": mpmath.airyai}  # fmt: skip
ONE_NUMBER = {
    "bessel_j0": ALL, "bessel_j1": ALL, "bessel_y0": ALL, "bessel_y1": ALL, "airy_ai": ALL,
    "spherical_bessel_j0": ALL, "i0": ALL, "i0e": ALL, "i1": ALL, "i1e": ALL,
    "modified_bessel_i0": SMALL, "modified_bessel_i1": SMALL, "modified_bessel_k0": ALL,
    "modified_bessel_k1": ALL, "scaled_modified_bessel_k0": ALL, "scaled_modified_bessel_k1": ALL,
    "erfcx": ALL, "log_ndtr": ALL,
    "ndtri": [-0.5, 0, 1e-300, 1e-20, 0.009, 0.011, 0.3, 0.5, 0.7, 0.99, 1 - 1e-12, 1, 1.5, NAN],
}  # fmt: skip
PAIRS = [(a, b) for a in (0, 0.25, 1, 2, 7.5, 40, INF, NAN, -1) for b in (0, 0.5, 1, 3, 8, 60, INF, NAN, -2)]


def doubles(values):
    return torch.tensor(values, dtype=torch.float64)


def exact(name, values):
    """What torch gives, with the digits of mpmath."""
    of_torch = getattr(torch.special, name)(doubles(values))
    if name not in WAVES:
        return of_torch
    digits = [float(WAVES[name](x)) if math.isfinite(t) else t for x, t in zip(values, of_torch.tolist())]
    return doubles(digits)


class EngineTest(unittest.TestCase):
    """Programs are gathered, and run by one process per engine when a test ends."""

    def setUp(self):
        torch.manual_seed(1)
        self._models = self.enterContext(engines.Models())
        self._checks = []

    def tearDown(self):
        self._models.run(sorted({engine for _, engine, _ in self._checks}))
        for name, engine, check in self._checks:
            check(engine, self._models.results(name, engine))

    @torch.no_grad()
    def gathers(self, program, arguments, others, names, check):
        """`check(engine, outputs, guards)`, of the tensors that an engine gives for `others`."""
        captured = flashlight.trace(program, *arguments)
        given = program(*others)
        dtypes = [one.dtype for one in (given if isinstance(given, (tuple, list)) else [given])]

        def checked(engine, received):
            outputs = [engines.as_tensor(received[f"output_{i}"], dtype) for i, dtype in enumerate(dtypes)]
            check(engine, outputs, [bool(v) for n, v in received.items() if n.startswith("guard_")])

        for engine in names:
            name = f"case_{len(self._checks)}"
            self._models.add(name, captured, others, {}, engines.FORMATS[engine])
            self._checks.append((name, engine, checked))

    @torch.no_grad()
    def agrees(self, program, *arguments, expected=None, rtol=RELATIVE, atol=0.0, names=ENGINES, what=""):
        given = program(*arguments) if expected is None else expected
        given = given if isinstance(given, (tuple, list)) else [given]

        def check(engine, outputs, guards):
            self.assertTrue(all(guards), f"{engine} {what}")
            for ours, one in zip(outputs, given, strict=True):
                torch.testing.assert_close(ours, one, rtol=rtol, atol=atol, equal_nan=True,
                                           msg=lambda text: f"{engine} {what}: {text}, {ours}, {one}")  # fmt: skip

        self.gathers(program, arguments, arguments, names, check)


class CommonRowsTest(EngineTest):
    def test_functions_of_one_number(self):
        for name, values in ONE_NUMBER.items():
            function = getattr(torch.special, name)
            self.agrees(function, doubles(values), expected=exact(name, values), what=name,
                        atol=OF_WAVES if name in WAVES else 0.0)  # fmt: skip
            self.agrees(function, torch.tensor([0.25, 0.75, 0.5]), rtol=2e-6, atol=1e-6, what=name,
                        names=["onnxruntime"])  # fmt: skip

    def test_incomplete_gammas_and_zeta(self):
        a, b = doubles([a for a, _ in PAIRS]), doubles([b for _, b in PAIRS])
        # torch's own series stop at 2000 terms, and at its asymptotic forms: within 1e-10 of the truth.
        self.agrees(torch.special.gammainc, a, b, rtol=1e-10, atol=1e-300)
        self.agrees(torch.special.gammaincc, a, b, rtol=1e-9, atol=1e-300)
        s, q = doubles([1.0, 1.5, 2, 3, 12, 40]), doubles([0.001, 0.5, 1, 2.5, 30, -0.5, -7.25, 0, -3])
        s, q = (x.reshape(-1) for x in torch.meshgrid(s, q, indexing="ij"))
        self.agrees(torch.special.zeta, s, q, rtol=1e-11)
        for n in (1, 2, 5):  # torch's trigamma has 9 digits
            places = [0.01, 0.5, 1, 9, 50, -0.25, -7.5]
            self.agrees(lambda x, n=n: torch.polygamma(n, x), doubles(places), rtol=1e-11,
                        expected=doubles([float(mpmath.psi(n, x)) for x in places]))  # fmt: skip

    def test_polynomials(self):
        x = doubles([-1.5, -1, -0.2, 0, 0.4, 1, 1.7])[:, None]
        n = torch.tensor([-1, 0, 1, 2, 5, 11])
        for name in ("chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v",
                     "chebyshev_polynomial_w", "shifted_chebyshev_polynomial_t",
                     "shifted_chebyshev_polynomial_w", "hermite_polynomial_h", "hermite_polynomial_he",
                     "laguerre_polynomial_l", "legendre_polynomial_p"):  # fmt: skip
            self.agrees(getattr(torch.special, name), x, n, atol=1e-11, what=name)

    def test_parts_and_neighbours_of_numbers(self):
        values = [0.0, -0.0, 1, -1, 0.5, 3.7, 1e-310, 5e-324, -2.0**-1022, 1.7e308, 2.0**-1074, INF, -INF, NAN]
        # XLA takes numbers below the least normal one as 0.
        self.agrees(torch.frexp, doubles(values), rtol=0, names=["onnxruntime"])
        self.agrees(torch.frexp, doubles([x for x in values if not 0 < abs(x) < 1e-300]), rtol=0)
        x, y = (t.reshape(-1) for t in torch.meshgrid(doubles(values), doubles(values), indexing="ij"))
        self.agrees(torch.nextafter, x, y, rtol=0, names=["onnxruntime"])
        single = torch.tensor([1.0, -1, 2, 0.75, 3.4028235e38, -0.5, 0, 1.2e-38, 5, INF, -INF])
        self.agrees(torch.nextafter, single, single.flip(0), rtol=0)
        self.agrees(torch.frexp, torch.cat([single, torch.tensor([1e-20, -3e38, NAN])]), rtol=0)
        least = torch.tensor([1e-45, 1e-40, -1.1754944e-38, 0.0])
        self.agrees(torch.frexp, least, rtol=0, names=["onnxruntime"])
        self.agrees(torch.nextafter, least, least.flip(0), rtol=0, names=["onnxruntime"])
        a, b = torch.tensor([0, 12, -18, 7, 2**40]), torch.tensor([0, 18, 12, 0, 2**35 * 3])
        self.agrees(torch.gcd, a, b)
        self.agrees(torch.lcm, a[:4].int(), b[:4].int())

    def test_numbers_at_the_ends(self):
        """Of what is empty, integers next to the largest ones, numbers that half precision rounds."""
        self.agrees(lambda x: (x.any(), x.any(0), x.all(), x.all(0)), torch.zeros(0, 3))
        for dtype in (torch.int32, torch.int64):
            info = torch.iinfo(dtype)
            a = torch.tensor([info.min, info.min + 1, info.max, info.max, -7, 7, 0], dtype=dtype)
            b = torch.tensor([3, -3, -3, 2, 2, -2, 5], dtype=dtype)
            self.agrees(lambda a, b: (a // b, a % b, torch.div(a, b, rounding_mode="trunc")), a, b)
        a, b = doubles([3, -3, 3, -3, 0, 5.5, -5.5]), doubles([INF, INF, -INF, -INF, INF, 2, 2])
        self.agrees(lambda a, b: a % b, a, b)
        x = torch.tensor([1, 300, 6e4, 0.3]).half()
        self.agrees(lambda x: (x / 1e5, x * 3e-8, (1.0 - (x > 100).half()) * -1e5, x * 0.5, x + 0.1), x, rtol=0)
        large = torch.tensor([2**53 + 1, 2**62, 5])
        self.agrees(lambda x: x.clamp(max=2**53 + 1), large, names=["xla"])

    def test_factors(self):
        a = torch.randn(2, 3, 4, 4, dtype=torch.float64)
        self.agrees(torch.linalg.lu, a, atol=1e-12)
        self.agrees(torch.linalg.qr, torch.randn(2, 5, 3, dtype=torch.float64), atol=1e-12)
        self.agrees(lambda x: torch.linalg.qr(x, "complete"), torch.randn(3, 5, dtype=torch.float64), atol=1e-12)
        positive = a @ a.mT + 4 * torch.eye(4, dtype=torch.float64)
        for upper in (False, True):
            self.agrees(lambda x, upper=upper: torch.linalg.cholesky(x, upper=upper), positive, atol=1e-12)
        b = torch.randn(4, 2, dtype=torch.float64)
        self.agrees(torch.linalg.solve, a, b.expand(2, 3, 4, 2), rtol=1e-10)
        self.agrees(torch.linalg.det, a, rtol=1e-11)
        for upper, transposed, unit in ((True, False, False), (False, True, True), (True, True, False)):
            self.agrees(lambda x, y: torch.triangular_solve(x, y, upper, transposed, unit)[0], b, positive[0, 0],
                        rtol=1e-11)  # fmt: skip

    def test_what_is_not_positive_definite(self):
        indefinite = torch.tensor([[1.0, 2, 0], [2, 1, 0], [0, 0, 1]])
        singular = torch.tensor([[1.0, 0, 0], [0, 1, 1], [0, 1, 1]])
        for bad in (indefinite, singular):
            self.gathers(lambda x: torch.linalg.cholesky_ex(x)[0], (torch.eye(3),), (bad,), ENGINES,
                         lambda engine, outputs, guards: self.assertIn(False, guards, engine))  # fmt: skip

    def test_singular_values(self):
        low_rank = torch.randn(6, 2, dtype=torch.float64) @ torch.randn(2, 5, dtype=torch.float64)
        cases = [torch.randn(2, 7, 4, dtype=torch.float64), torch.randn(3, 8, dtype=torch.float64), low_rank,
                 torch.zeros(3, 2, dtype=torch.float64), torch.randn(5, 1, dtype=torch.float64)]  # fmt: skip
        for x in cases:
            for full in (False, True):
                self.gathers(lambda a, full=full: torch.linalg.svd(a, full), (x,), (x,), ENGINES,
                             functools.partial(self.check_singular_values, x))  # fmt: skip

    def check_singular_values(self, x, engine, outputs, guards):
        u, s, vh = outputs
        torch.testing.assert_close(s, torch.linalg.svdvals(x), rtol=1e-12, atol=1e-14)
        k = s.shape[-1]
        torch.testing.assert_close((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], x, rtol=1e-12, atol=1e-13)
        for q in (u, vh.mT):
            unit = torch.eye(q.shape[-1], dtype=q.dtype).expand(q.shape[:-2] + (-1, -1))
            torch.testing.assert_close(q.mT @ q, unit, rtol=0, atol=1e-13)

    def test_eigenvalues(self):
        x = torch.randn(2, 9, 9, dtype=torch.float64)
        for side in ("L", "U"):
            half = x.tril() if side == "L" else x.triu().mT
            self.gathers(lambda a, side=side: torch.linalg.eigh(a, side), (x,), (x,), ENGINES,
                         functools.partial(self.check_eigenvalues, half + half.tril(-1).mT))  # fmt: skip

    def check_eigenvalues(self, symmetric, engine, outputs, guards):
        values, vectors = outputs
        torch.testing.assert_close(values, torch.linalg.eigvalsh(symmetric), rtol=1e-12, atol=1e-13)
        torch.testing.assert_close(symmetric @ vectors, vectors * values[..., None, :], rtol=0, atol=1e-12)

    def test_sizes_that_values_say(self):
        x = torch.tensor([3.0, 1, 3, 2, 2, 1, NAN])
        rows = torch.tensor([[1, 2], [0, 5], [1, 2], [0, 4], [1, 2]])
        for program, argument in (
            (lambda v: torch.unique(v, return_inverse=True, return_counts=True), x),
            (lambda v: torch.unique(v, dim=0, return_inverse=True, return_counts=True), rows),
            (lambda v: torch.unique(v, dim=1), rows),
            (lambda v: torch.unique_consecutive(v, return_counts=True), x),
            (lambda v: torch.unique_consecutive(v, dim=0), rows),
            (torch.bincount, rows.reshape(-1)),
            (lambda v: torch.repeat_interleave(v, torch.tensor([1, 0, 2, 0, 3]), dim=0), rows),
            (torch.nn.functional.one_hot, rows),
            (torch.nonzero, torch.tensor(3.0)),
        ):
            self.agrees(program, argument, rtol=0)
        self.gathers(torch.unique, (torch.tensor([1, 2, 2, 3]),), (torch.tensor([1, 1, 2, 2]),), ENGINES,
                     lambda engine, outputs, guards: self.assertIn(False, guards, engine))  # fmt: skip

    def test_windows_of_several_sizes(self):
        x = torch.tensor([[5.0, 1, 5, 2, 7, 7, 3], [1, 1, 1, 1, 1, 1, 1]])[None, None].repeat(1, 2, 3, 1)
        for sizes in ((2, 3), (5, 4), (1, 7)):
            self.agrees(lambda v: torch.nn.functional.adaptive_max_pool2d(v, sizes, True), x, rtol=0)


class ComplexPairsTest(EngineTest):
    """Of ONNX, which has no complex numbers."""

    def agrees(self, program, *arguments, rtol=1e-12, atol=1e-13, what=""):
        super().agrees(program, *arguments, rtol=rtol, atol=atol, names=["onnxruntime"], what=what)

    def test_functions(self):
        z = torch.randn(40, dtype=torch.complex128)
        w = torch.randn(40, dtype=torch.complex128)
        w[:4] = torch.tensor([1, -1, 1j, 1e100 + 1e100j], dtype=torch.complex128)
        for function in (torch.exp, torch.log, torch.log2, torch.sqrt, torch.rsqrt, torch.sin, torch.cos, torch.tan,
                         torch.sinh, torch.cosh, torch.tanh, torch.abs, torch.angle, torch.reciprocal, torch.sgn,
                         torch.sigmoid, torch.square, torch.conj, torch.exp2):  # fmt: skip
            # onnxruntime has no hyperbolic functions and arc tangents in float64.
            self.agrees(function, z.to(torch.complex64), rtol=1e-5, atol=1e-6, what=function.__name__)
        for program in (lambda a, b: a * b, lambda a, b: a / b, lambda a, b: a - 2j * b, lambda a, b: a == b,
                        lambda a, b: torch.where(a.real > 0, a, b), lambda a, b: torch.add(a, b, alpha=3),
                        lambda a, b: torch.cat([a, b.real]), lambda a, b: a * 1j + b.real,
                        lambda a, b: a.pow(2), lambda a, b: b.pow(3)):  # fmt: skip
            self.agrees(program, z, w)
        exponents = w[4:].repeat(2)[:40].to(torch.complex64)
        self.agrees(torch.pow, z.to(torch.complex64), exponents, rtol=1e-4, atol=1e-5)

    def test_ends(self):
        parts = [0.0, -0.0, 1.0, -1.0]
        z = torch.tensor([complex(a, b) for a in parts for b in parts], dtype=torch.complex64)
        self.agrees(torch.sqrt, z, rtol=1e-6)
        self.agrees(lambda x: torch.view_as_real(torch.sqrt(x)).signbit(), z[z.imag != 0])
        self.agrees(torch.log, z, rtol=1e-6)

    def test_movement_and_products(self):
        a = torch.randn(2, 3, 4, dtype=torch.complex64)
        self.agrees(lambda x: (x.mT @ x).sum(0), a, rtol=1e-5, atol=1e-5)
        self.agrees(lambda x: torch.einsum("bij,bij->i", x, x.conj()), a, rtol=1e-5, atol=1e-5)
        self.agrees(lambda x: torch.nn.functional.pad(x.flip(1).roll(1, 2), (1, 2), value=3.0), a)
        self.agrees(lambda x: (x[:, 1:, ::2], torch.stack([x, 2 * x]).mean(0), x.cumsum(1)), a, rtol=1e-5, atol=1e-6)

    def test_transforms(self):
        signal = torch.randn(3, 64)
        for program in (lambda x: torch.fft.rfft(x, norm="ortho"), lambda x: torch.fft.irfft(torch.fft.rfft(x) * 1j),
                        lambda x: torch.fft.fft2(x), lambda x: torch.fft.fft(x).abs()):  # fmt: skip
            self.agrees(program, signal, rtol=1e-5, atol=1e-4)
        window = torch.hann_window(16)
        self.agrees(lambda x: torch.stft(x, 16, window=window, return_complex=True), signal, rtol=1e-5, atol=1e-4)

    def test_weights_and_names(self):
        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = torch.nn.Parameter(torch.randn(300, dtype=torch.complex64))
                self.register_buffer("state", torch.zeros(300, dtype=torch.complex64))

            def forward(self, x):
                self.state.add_(x)
                return self.weight * x, x.abs()

        model, x = Model(), torch.randn(300, dtype=torch.complex64)
        expected = [one.detach() for one in Model.forward(model, x)]
        model.state.zero_()
        with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
            captured = flashlight.trace(model, x)
            received = engines.run(captured, (x,), {}, ["onnxruntime"])["onnxruntime"]
            file = pathlib.Path(folder) / "m.onnx"
            captured.export(file)
            self.assertIn(b'["input_0","output_0","state.written"]', file.read_bytes())
        torch.testing.assert_close(engines.as_tensor(received["output_0"], torch.complex64), expected[0])
        torch.testing.assert_close(torch.from_numpy(received["output_1"]), expected[1])
        written = engines.as_tensor(received["state.written"], torch.complex64)
        torch.testing.assert_close(written, model.state + x)

    def test_refused(self):
        z = torch.randn(3, dtype=torch.complex64)
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "m.onnx"
            with self.assertRaisesRegex(flashlight.Error, "aten::asinh.*no form in real numbers"):
                flashlight.trace(torch.asinh, z).export(file)
            text = """graph(%p: bool[], %x: complex64[3]) {
              %y: complex64[3] = composit::cond(%p, [%x], then_body=region(%a: complex64[3]) {
                  return %a
                }, else_body=region(%b: complex64[3]) {
                  %c: complex64[3] = aten::neg(%b)
                  return %c
                })
              return %y
            }"""
            with self.assertRaisesRegex(composit.Error, "composit::cond.*no form in real numbers"):
                composit.save_onnx(composit.parse(text), file)


if __name__ == "__main__":
    if not engines.PYTHON:
        print("skipped: ./dev interchange makes what this needs")
        sys.exit(SKIPPED)
    unittest.main()
