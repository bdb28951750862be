"""composit.jax: graphs as functions of JAX. Run by the Python of the other side (./dev interchange),
without which, or without jax, the test is skipped."""

import sys
import unittest

SKIPPED = 77
try:
    import jax
except ImportError:
    print("skipped: jax is missing (./dev interchange)")
    sys.exit(SKIPPED)

import jax.numpy as jnp
import numpy as np

import composit as cnp

jax.config.update("jax_enable_x64", True)

GELU = """graph(%x: float32[2, 3], %w: float32[4, 3]) {
  %y: float32[2, 4] = aten::linear(%x, %w, none)
  %z: float32[2, 4] = aten::gelu(%y)
  return %z
}"""
COND = """graph(%p: bool[], %x: float64[3]) {
  %y: float64[3] = composit::cond(%p, [%x], then_body=region(%a: float64[3]) {
      %s: float64[3] = aten::sin(%a)
      return %s
    }, else_body=region(%b: float64[3]) {
      %t: float64[3] = aten::exp(%b)
      return %t
    })
  return %y
}"""


def numbers(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape)


class JaxTest(unittest.TestCase):
    def close(self, received, expected, times=1e-6):
        received, expected = np.asarray(received), np.asarray(expected)
        self.assertEqual(received.shape, expected.shape)
        self.assertEqual(received.dtype, expected.dtype)
        np.testing.assert_allclose(received, expected, rtol=times, atol=times)

    def test_values_inside_of_jit_and_outside(self):
        f = cnp.jax(cnp.parse(GELU))
        x, w = numbers(2, 3).astype("f4"), numbers(4, 3).astype("f4")
        expected = jax.nn.gelu(x @ w.T, approximate=False)
        self.close(f(x, w), expected)
        self.close(jax.jit(lambda x, w: f(x, w) + 1)(x, w), expected + 1)

    def test_gradients_are_those_of_jax(self):
        f = cnp.jax(cnp.parse(GELU))
        x, w = numbers(2, 3).astype("f4"), numbers(4, 3).astype("f4")

        def loss(f):
            return jax.jit(jax.grad(lambda x, w: (f(x, w) ** 2).sum(), argnums=(0, 1)))(x, w)

        for received, expected in zip(
                loss(f), loss(lambda x, w: jax.nn.gelu(x @ w.T, approximate=False))):
            self.close(received, expected)

    def test_graphs_of_numpy(self):
        """In float64, where definitions and XLA agree to 1e-12."""
        x = cnp.parse("graph(%x: float64[4, 5]) { return %x }").outputs[0]
        y = cnp.cumsum(cnp.exp(x), axis=1) / (1 + cnp.abs(x)).sum(axis=0)
        value = numbers(4, 5)
        expected = np.cumsum(np.exp(value), 1) / (1 + np.abs(value)).sum(0)
        self.close(cnp.jax(y.graph)(value), expected, 1e-12)

    def test_branches(self):
        f = cnp.jax(cnp.parse(COND))
        x = numbers(3)
        self.close(f(np.array(True), x), np.sin(x), 1e-12)
        self.close(f(np.array(False), x), np.exp(x), 1e-12)
        self.close(jax.grad(lambda x: f(np.array(True), x).sum())(x), np.cos(x), 1e-12)

    def test_loops(self):
        graph = cnp.parse("""graph(%h: float64[2], %xs: float64[5, 2], %w: float64[2]) {
          %end, %all: float64[2], float64[5, 2] = composit::scan([%h], [%xs], [%w], none,
            body=region(%a: float64[2], %x: float64[2], %v: float64[2]) {
              %m: float64[2] = aten::mul.Tensor(%a, %v)
              %s: float64[2] = aten::add.Tensor(%m, %x, alpha=scalar(1))
              %t: float64[2] = aten::tanh(%s)
              return %t, %s
            }, length=5, reverse=false)
          return %end, %all
        }""")
        h, xs, w = numbers(2), numbers(5, 2), numbers(2)

        def reference(h, xs, w):
            stacked = []
            for x in xs:
                s = h * w + x
                stacked.append(s)
                h = jnp.tanh(s)
            return h, jnp.stack(stacked)

        f = cnp.jax(graph)
        for received, expected in zip(f(h, xs, w), reference(h, xs, w)):
            self.close(received, expected, 1e-12)

        def gradient(f):
            return jax.grad(lambda h, xs, w: sum((y ** 2).sum() for y in f(h, xs, w)), (0, 1, 2))(h, xs, w)

        for received, expected in zip(gradient(f), gradient(reference)):
            self.close(received, expected, 1e-10)

    def test_a_while_loop(self):
        f = cnp.jax(cnp.parse("""graph(%x: float64[]) {
          %y, %trips: float64[], int64[] = composit::while_loop([%x], [],
            condition=region(%a: float64[]) {
              %c: bool[] = aten::lt.Scalar(%a, other=scalar(100.0))
              return %c
            }, body=region(%b: float64[]) {
              %d: float64[] = aten::mul.Scalar(%b, other=scalar(3.0))
              return %d
            }, limit=4)
          return %y, %trips
        }"""))
        y, trips = f(np.float64(2))
        self.close(y, np.float64(162), 1e-12)
        self.assertEqual(int(trips), 4)
        self.assertTrue(np.isnan(f(np.float64(1e-3))[0]), "goes on after its limit")

    def test_what_does_not_hold_is_no_number(self):
        f = cnp.jax(cnp.parse("""graph(%t: float32[5, 3], %i: int64[2]) {
          %rows: float32[2, 3] = aten::embedding(%t, %i)
          return %rows
        }"""))
        table = numbers(5, 3).astype("f4")
        self.close(f(table, np.array([4, 0])), table[[4, 0]])
        self.assertTrue(np.isnan(f(table, np.array([5, 0]))).all())
        gradient = jax.grad(lambda t: f(t, np.array([4, 4])).sum())(table)
        self.close(gradient[4], np.full(3, 2, "f4"))

    def test_wrong_use(self):
        f = cnp.jax(cnp.parse(GELU))
        x, w = numbers(2, 3), numbers(4, 3).astype("f4")
        with self.assertRaisesRegex(cnp.Error, r"expected float32\[2, 3\] as argument 0"):
            f(x, w)
        with self.assertRaisesRegex(cnp.Error, "expected 2 arrays, received 1"):
            f(x)
        draws = cnp.parse("""graph(%x: float32[3]) {
          %y: float32[3] = aten::bernoulli(%x, none) {effect=1}
          return %y
        }""")
        with self.assertRaisesRegex(cnp.Error, "aten::bernoulli"):
            cnp.jax(draws)


if __name__ == "__main__":
    unittest.main()
