// Convolutions whose channels do not mix, by the same terms and panels as other products.
//
//   Contraction<float> of = {56, 56, 96, 96, {offsets, 3, 3, 96}};     // lines, pixels; channels
//   contract_depthwise<float>(
//       team, of, [&](int64_t line) { return x + line * 58 * 96; }, panels, finish);
//
// Channels are the lanes of vectors, and the weights of a term serve some pixels.
#pragma once

#include <algorithm>
#include <cstdint>

#include "flashlight/runtime/contraction.hpp"
#include "flashlight/runtime/lanes.hpp"

namespace fl {
namespace detail {

// Pixels whose sums, of two vectors of channels each, stay in registers.
constexpr int kMostPixels = kVectorBytes == 64 ? 8 : kVectorBytes == 32 ? 4 : 2;

template <class T, int kPixels, int kVectors>
void multiply_channels(const Contraction<T>& of, const T* x, const T* panel, T (*sums)[kPanel<T>]) {
  constexpr int kLanes = Vectors<T>::kLanes;
  Vector<T> all[kPixels][kVectors] = {};
  for (int s = 0; s < of.terms.segments; ++s) {
    const T* from = x + of.terms.offsets[s];
    for (int k = 0; k < of.terms.run; ++k, from += of.terms.step, panel += kPanel<T>) {
      Vector<T> weights[kVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) weights[v] = load(panel + v * kLanes);
#pragma GCC unroll 8
      for (int p = 0; p < kPixels; ++p)
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v)
          all[p][v] += load(from + p * of.inner_stride + v * kLanes) * weights[v];
    }
  }
#pragma GCC unroll 8
  for (int p = 0; p < kPixels; ++p)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) store<T>(all[p][v], sums[p] + v * kLanes);
}

// Channels that fill no vector: there may be no memory after the last one.
template <class T>
void multiply_last_channels(const Contraction<T>& of, const T* x, const T* panel, int pixels,
                            int begin, int end, T (*sums)[kPanel<T>]) {
  for (int p = 0; p < pixels; ++p, x += of.inner_stride) {
    std::fill(sums[p] + begin, sums[p] + end, T(0));
    const T* weights = panel;
    for (int s = 0; s < of.terms.segments; ++s)
      for (int k = 0; k < of.terms.run; ++k, weights += kPanel<T>) {
        const T* const from = x + of.terms.offsets[s] + k * of.terms.step;
        for (int c = begin; c < end; ++c) sums[p][c] += from[c] * weights[c];
      }
  }
}

template <class T, int kPixels>
void multiply_pixels(const Contraction<T>& of, const T* x, const T* panel, int columns,
                     T (*sums)[kPanel<T>]) {
  constexpr int kLanes = Vectors<T>::kLanes;
  const int whole = columns / kLanes * kLanes;
  if (whole == 2 * kLanes)
    multiply_channels<T, kPixels, 2>(of, x, panel, sums);
  else if (whole == kLanes)
    multiply_channels<T, kPixels, 1>(of, x, panel, sums);
  if (whole < columns) multiply_last_channels(of, x, panel, kPixels, whole, columns, sums);
}

}  // namespace detail

// Like `contract`, but the terms of column c are those of column 0 moved by c elements.
template <class T>
void contract_depthwise(const Team& team, const Contraction<T>& of, BaseOf<T> base, const T* panels,
                        FinishOf<T> finish) {
  constexpr int64_t kPixels = detail::kMostPixels;
  if (of.inner <= 0) return;
  const int64_t pieces = (of.inner + kPixels - 1) / kPixels, size = of.terms.count() * kPanel<T>;
  const Part mine = team.part(of.outer * pieces);
  alignas(detail::kVectorBytes) T sums[kPixels][kPanel<T>];
  for (int64_t i = mine.begin; i < mine.end; ++i) {
    const int64_t outer = i / pieces, piece = i % pieces;
    const int64_t end = of.inner * (piece + 1) / pieces;
    const T* const line = base(outer);
    for (int64_t at = of.inner * piece / pieces, count; at < end; at += count) {
      count = end - at >= kPixels ? kPixels : end - at >= 4 ? 4 : end - at >= 2 ? 2 : 1;
      count = std::min(count, kPixels);
      for (int64_t c = 0, panel = 0; c < of.columns; c += kPanel<T>, ++panel) {
        const int columns = static_cast<int>(std::min<int64_t>(kPanel<T>, of.columns - c));
        const T *const from = line + at * of.inner_stride + c, *const weights =
                                                                   panels + panel * size;
        if (count == kPixels)
          detail::multiply_pixels<T, static_cast<int>(kPixels)>(of, from, weights, columns, sums);
        else if (count == 4)
          detail::multiply_pixels<T, 4>(of, from, weights, columns, sums);
        else if (count == 2)
          detail::multiply_pixels<T, 2>(of, from, weights, columns, sums);
        else
          detail::multiply_pixels<T, 1>(of, from, weights, columns, sums);
        finish(outer, at, static_cast<int>(count), c, columns, sums);
      }
    }
  }
}

}  // namespace fl
