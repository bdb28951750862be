// The transforms of Winograd's convolutions with 3x3 windows, and that of the weights.
//
//   transform_weights<4>(team, channels, outputs, panels, transformed);
//
// Products of polynomials of degree kOut + 1, known at kOut + 1 points and at infinity, after
// A. Lavin and S. Gray, "Fast Algorithms for Convolutional Neural Networks" (2016). For kOut = 4
// the points are 0, +-3/4, +-3/2: rounding errors are a third of those of the usual 0, +-1, +-2,
// and all constants but the weights' are exact.
#pragma once

#include <cstdint>

#include "flashlight/runtime/microkernel.hpp"
#include "flashlight/runtime/team.hpp"

namespace fl {
namespace detail {

// In one dimension, of vectors of T, or of T: `input` of as many elements as there are points,
// `weights` of three, `output` to kOut.
template <int kOut, class T>
struct Points;

template <class T>
struct Points<2, T> {
  static constexpr int kCount = 4;
  template <class V>
  FLASHLIGHT_INLINE static void input(const V (&d)[4], V (&v)[4]) {
    v[0] = d[0] - d[2];
    v[1] = d[1] + d[2];
    v[2] = d[2] - d[1];
    v[3] = d[3] - d[1];
  }
  template <class V>
  FLASHLIGHT_INLINE static void weights(const V (&w)[3], V (&u)[4]) {
    const V even = (w[0] + w[2]) * T(0.5), odd = w[1] * T(0.5);
    u[0] = w[0];
    u[1] = even + odd;
    u[2] = even - odd;
    u[3] = w[2];
  }
  template <class V>
  FLASHLIGHT_INLINE static void output(const V (&m)[4], V (&y)[2]) {
    y[0] = m[0] + (m[1] + m[2]);
    y[1] = (m[1] - m[2]) + m[3];
  }
};

template <class T>
struct Points<4, T> {
  static constexpr int kCount = 6;
  static constexpr T kA = T(0.75), kB = T(1.5), kA2 = kA * kA, kB2 = kB * kB;
  template <class V>
  FLASHLIGHT_INLINE static void input(const V (&d)[6], V (&v)[6]) {
    const V even_a = d[4] - d[2] * kB2, odd_a = (d[3] - d[1] * kB2) * kA;
    const V even_b = d[4] - d[2] * kA2, odd_b = (d[3] - d[1] * kA2) * kB;
    v[0] = d[0] * (kA2 * kB2) + (d[4] - d[2] * (kA2 + kB2));
    v[1] = even_a + odd_a;
    v[2] = even_a - odd_a;
    v[3] = even_b + odd_b;
    v[4] = even_b - odd_b;
    v[5] = d[1] * (kA2 * kB2) + (d[5] - d[3] * (kA2 + kB2));
  }
  template <class V>
  FLASHLIGHT_INLINE static void weights(const V (&w)[3], V (&u)[6]) {
    constexpr T kNearA = T(1 / (2 * 0.5625 * (0.5625 - 2.25)));
    constexpr T kNearB = T(1 / (2 * 2.25 * (2.25 - 0.5625)));
    const V even_a = (w[0] + w[2] * kA2) * kNearA, odd_a = w[1] * (kA * kNearA);
    const V even_b = (w[0] + w[2] * kB2) * kNearB, odd_b = w[1] * (kB * kNearB);
    u[0] = w[0] * T(1 / (0.5625 * 2.25));
    u[1] = even_a + odd_a;
    u[2] = even_a - odd_a;
    u[3] = even_b + odd_b;
    u[4] = even_b - odd_b;
    u[5] = w[2];
  }
  template <class V>
  FLASHLIGHT_INLINE static void output(const V (&m)[6], V (&y)[4]) {
    const V even_a = m[1] + m[2], odd_a = m[1] - m[2];
    const V even_b = m[3] + m[4], odd_b = m[3] - m[4];
    y[0] = m[0] + even_a + even_b;
    y[1] = odd_a * kA + odd_b * kB;
    y[2] = even_a * kA2 + even_b * kB2;
    y[3] = odd_a * (kA2 * kA) + odd_b * (kB2 * kB) + m[5];
  }
};

// The weights of a window at all points: read(tap) gives one, put(point, weight) takes it.
template <int kOut, class T, class V, class Read, class Put>
FLASHLIGHT_INLINE void transform_window(const Read& read, const Put& put) {
  using P = Points<kOut, T>;
  V half[3][P::kCount];
#pragma GCC unroll 3
  for (int j = 0; j < 3; ++j) {
    const V column[3] = {read(j), read(3 + j), read(6 + j)};
    P::weights(column, half[j]);
  }
#pragma GCC unroll 6
  for (int i = 0; i < P::kCount; ++i) {
    const V row[3] = {half[0][i], half[1][i], half[2][i]};
    V points[P::kCount];
    P::weights(row, points);
#pragma GCC unroll 6
    for (int j = 0; j < P::kCount; ++j) put(i * P::kCount + j, points[j]);
  }
}

// Transforms some channels of a panel of weights [tap][channel][column] to all points, quickly: in
// T. Taps are `tap_plane` elements apart, points `plane`.
template <int kOut, class T>
void transform_channels(int64_t channels, const T* taps, int64_t tap_plane, T* points,
                        int64_t plane) {
  using V = Vectors<T>;
  for (int64_t at = 0; at < channels * kPanel<T>; at += V::kLanes)
    transform_window<kOut, T, typename V::Vector>(
        [&](int tap) { return V::load(taps + tap * tap_plane + at); },
        [&](int point, const typename V::Vector& x) {
          std::memcpy(points + point * plane + at, &x, sizeof x);
        });
}

constexpr int64_t points_of(int out) { return (out + 2) * (out + 2); }

}  // namespace detail

// Elements of transformed weights.
template <int kOut, class T>
int64_t transformed_size(int64_t channels, int64_t columns) {
  return (columns + kPanel<T> - 1) / kPanel<T> * kPanel<T> * channels * detail::points_of(kOut);
}

// Transforms weights packed as [panel][tap][channel][kPanel], where tap = 3 ky + kx, into those of
// a convolution by kOut x kOut pixels: [panel][point][channel][kPanel]. Computed in double, and
// shared by the threads of the team, which do not wait for each other.
template <int kOut, class T>
void transform_weights(const Team& team, int64_t channels, int64_t columns, const T* packed,
                       T* transformed) {
  const int64_t panels = (columns + kPanel<T> - 1) / kPanel<T>, plane = channels * kPanel<T>;
  const Part mine = team.part(panels * channels);
  for (int64_t i = mine.begin; i < mine.end; ++i) {
    const int64_t panel = i / channels, channel = i % channels;
    const T* from = packed + panel * 9 * plane + channel * kPanel<T>;
    T* to = transformed + panel * detail::points_of(kOut) * plane + channel * kPanel<T>;
    for (int c = 0; c < kPanel<T>; ++c)
      detail::transform_window<kOut, double, double>(
          [&](int tap) { return static_cast<double>(from[tap * plane + c]); },
          [&](int point, double x) { to[point * plane + c] = static_cast<T>(x); });
  }
}

}  // namespace fl
