// Numbers of Python, and what they are beside tensors.
#include <gtest/gtest.h>

#include "tests/frontends/torchscript/compare.h"

namespace flashlight::test {
namespace {

TEST(Numbers, arithmetic) {
  const char* text = R"(
def f(x: float, n: int):
    return x + n, x - 2, 3 * x, x / n, x // 0.4, x % 0.4, x ** 3, x ** 2.5, 2 ** x, n ** 2, -x, abs(-x), n // 2, n % 3, -n // 2, n / 2, min(x, n), max(x, 2.0), min(n, 2)
)";
  for (int64_t n : {2, 7})
    check({{.text = text, .arguments = {number(1.3), at::scalar_tensor(n, at::kLong)}}});
}

TEST(Numbers, functions) {
  const char* text = R"(
def f(x: float):
    return math.exp(x), math.log(x), math.sqrt(x), math.sin(x), math.cos(x), math.tan(x), math.tanh(x), math.erf(x), math.atan2(x, 2.0), math.log1p(x), math.pi * x, math.lgamma(x), math.fabs(x), math.expm1(x), math.log10(x), math.asin(x / 2), math.acos(x / 2), math.atan(x), math.sinh(x), math.cosh(x), math.pow(x, 3.0), math.copysign(x, -1.0)
)";
  check({{.text = text, .arguments = {number(1.3)}}});
}

TEST(Numbers, rounding_and_conversions) {
  const char* text = R"(
def f(x: float, b: bool):
    return math.floor(x), math.ceil(x), round(x), int(x), float(int(x)), bool(x), int(b), float(b), math.isnan(x), int(-x)
)";
  for (double x : {1.5, 2.5, -0.75})
    check({{.text = text,
            .arguments = {number(x), at::scalar_tensor(true, at::kBool)},
            .gradient = false}});
}

TEST(Numbers, bools_and_bits) {
  const char* text = R"(
def f(n: int, m: int):
    return n & m, n | m, n ^ m, n < m, n <= m, n > m, n >= m, n == m, n != m, (n < m) & (m > 3), (n < m) | (m > 3), (n < m) ^ (m > 3), not (n < m)
)";
  for (int64_t n : {3, 6})
    check({{.text = text,
            .arguments = {at::scalar_tensor(n, at::kLong), at::scalar_tensor(5, at::kLong)},
            .gradient = false}});
}

// Wrapped numbers: a float of Python does not widen a tensor of float32.
TEST(Numbers, beside_tensors) {
  const char* text = R"(
def f(x: Tensor, i: Tensor, a: float, n: int):
    return x * a, x + n, a - x, i * n, i * a, i + 1.5, x ** a, a ** i, x > a, torch.where(x > 0, x, a), torch.clamp(x, -a, a), x.masked_fill(x > 0, a), torch.full([2], a), torch.full_like(x, a), x.sum() * a, x.sum() / n, x // n, i % n, torch.tensor([a, 1.0]), torch.tensor(a), torch.tensor(n)
)";
  const at::Tensor x = random({3}), i = at::arange(3, at::kInt), a = number(1.3),
                   n = at::scalar_tensor(2, at::kLong);
  check({{.text = text, .arguments = {x.to(at::kFloat), i, a, n}, .gradient = false},
         {.text = text, .arguments = {x.to(at::kFloat), i, 1.3, 2}, .gradient = false},
         {.text = text, .arguments = {x.to(at::kHalf), i, a, n}, .gradient = false},
         {.text = text, .arguments = {x, i, a, n}, .gradient = false}});
}

TEST(Numbers, of_tensors) {
  const char* text = R"(
def f(x: Tensor, i: Tensor):
    a = float(x[0])
    n = int(i[1])
    k = x.sum().item()
    return x * a, a + n, x[n], x[n - 3], x * k, bool(x[0] > 0), float(x.size(0)) * a
)";
  check({{.text = text, .arguments = {random({3}), at::arange(3, at::kLong)}, .gradient = false}});
}

// LibTorch rounds some to float32 on their way to float64.
TEST(Numbers, as_tensors) {
  const char* text = R"(
def f(x: Tensor, u: float):
    y = x * 2
    y[1] = u
    return y, torch.tensor(u, dtype=torch.float64), torch.tensor([u, 1.0], dtype=torch.float64), torch.tensor([[u], [u]], dtype=torch.float64), torch.scalar_tensor(u, dtype=torch.float64), torch.as_tensor(u, dtype=torch.float64), torch.full([2], u, dtype=torch.float64), torch.tensor(int(u * 10), dtype=torch.float64)
)";
  check({{.text = text, .arguments = {random({3}), number(0.7)}, .gradient = false}});
}

}  // namespace
}  // namespace flashlight::test
