#include <cmath>
#include <numbers>

#include "benchmarks/cpp/handwritten.h"
#include "benchmarks/cpp/vector_math.h"

namespace handwritten {
namespace {

// In as many partial sums as a vector has lanes, so that they can be added in one instruction.
template <class T>
T sum(const T* x, int64_t n) {
  constexpr int64_t kLanes = 16;
  T sums[kLanes] = {}, total = 0;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane) sums[lane] += x[i + lane];
  for (; i < n; ++i) total += x[i];
  for (const T partial : sums) total += partial;
  return total;
}

template <class T>
T sqrl_of(const T* x, int64_t n) {
  const bool negative = sum(x, n) < 0;
  T total = 0;
  for (int64_t i = 0; i < n; ++i) {
    const T t = negative ? x[i] / -8 : x[i] * x[i] / 2;
    total += std::sin(t) * t;
  }
  return total / static_cast<T>(n);
}

template <class T>
void sqrl_vjp_of(const T* x, int64_t n, T dy, T* dx) {
  const T scale = dy / static_cast<T>(n);
  const auto by_t = [scale](T t) { return scale * (std::cos(t) * t + std::sin(t)); };
  if (sum(x, n) < 0)
    for (int64_t i = 0; i < n; ++i) dx[i] = by_t(x[i] / -8) / -8;
  else
    for (int64_t i = 0; i < n; ++i) dx[i] = by_t(x[i] * x[i] / 2) * x[i];
}

template <class T>
constexpr T kInverseRoot2 = T(1 / std::numbers::sqrt2);

// The part of the normal distribution below x, from erf(x / sqrt(2)).
template <class T>
T normal_below(T erf) {
  return T(0.5) * (1 + erf);
}

// The derivative of gelu, with exp = exp(-x^2 / 2).
template <class T>
T gelu_slope(T x, T erf, T exp) {
  constexpr T kDensity = T(std::numbers::inv_sqrtpi / std::numbers::sqrt2);
  return normal_below(erf) + x * kDensity * exp;
}

int64_t matrices(const SqrlSizes& sizes) { return sizes.batch > 0 ? sizes.batch : 1; }

}  // namespace

template <class T>
void sqrl(const SqrlSizes& sizes, const T* x, T* y) {
  const int64_t n = sizes.rows * sizes.columns;
  for (int64_t i = 0; i < matrices(sizes); ++i) y[i] = sqrl_of(x + i * n, n);
}

template <class T>
void sqrl_vjp(const SqrlSizes& sizes, const T* x, const T* dy, T* dx) {
  const int64_t n = sizes.rows * sizes.columns;
  for (int64_t i = 0; i < matrices(sizes); ++i) sqrl_vjp_of(x + i * n, n, dy[i], dx + i * n);
}

// One number of three is chosen, which needs no branch and so no guess of the processor.
template <class T>
void relu3(int64_t n, const T* __restrict x, T* __restrict y) {
  for (int64_t i = 0; i < n; ++i) {
    const T cube = x[i] * x[i] * x[i] * T(1.0 / 3), line = x[i] - T(2.0 / 3);
    y[i] = x[i] < 0 ? 0 : x[i] < 1 ? cube : line;
  }
}

template <class T>
void relu3_vjp(int64_t n, const T* __restrict x, const T* __restrict dy, T* __restrict dx) {
  for (int64_t i = 0; i < n; ++i) {
    const T slope = x[i] < 0 ? 0 : x[i] < 1 ? x[i] * x[i] : 1;
    dx[i] = dy[i] * slope;
  }
}

template <class T>
void gelu(int64_t n, const T* __restrict x, T* __restrict y) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * normal_below(std::erf(x[i] * kInverseRoot2<T>));
}

template <class T>
void gelu_vjp(int64_t n, const T* __restrict x, const T* __restrict dy, T* __restrict dx) {
  for (int64_t i = 0; i < n; ++i)
    dx[i] = dy[i] *
            gelu_slope(x[i], std::erf(x[i] * kInverseRoot2<T>), std::exp(T(-0.5) * x[i] * x[i]));
}

void gelu_in_vectors(int64_t n, const float* __restrict x, float* __restrict y) {
  for (int64_t i = 0; i < n; ++i)
    y[i] = x[i] * normal_below(vector_math::erf(x[i] * kInverseRoot2<float>));
}

void gelu_vjp_in_vectors(int64_t n, const float* __restrict x, const float* __restrict dy,
                         float* __restrict dx) {
  for (int64_t i = 0; i < n; ++i)
    dx[i] = dy[i] * gelu_slope(x[i], vector_math::erf(x[i] * kInverseRoot2<float>),
                               vector_math::exp(-0.5F * x[i] * x[i]));
}

#define HANDWRITTEN_INSTANTIATE(T)                                  \
  template void sqrl(const SqrlSizes&, const T*, T*);               \
  template void sqrl_vjp(const SqrlSizes&, const T*, const T*, T*); \
  template void relu3(int64_t, const T*, T*);                       \
  template void relu3_vjp(int64_t, const T*, const T*, T*);         \
  template void gelu(int64_t, const T*, T*);                        \
  template void gelu_vjp(int64_t, const T*, const T*, T*);
HANDWRITTEN_INSTANTIATE(float)
HANDWRITTEN_INSTANTIATE(double)
#undef HANDWRITTEN_INSTANTIATE

}  // namespace handwritten
