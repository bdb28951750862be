// Products of square matrices by intrinsics, as somebody would write them for one size.
#pragma once

#if defined(__AVX512F__)
#include <immintrin.h>

namespace benchmarks {

// c = a b, row-major; all of a is one register, b's rows are repeated in one.
inline void product_4_by_hand(const float* a, const float* b, float* c) {
  const __m512 x = _mm512_loadu_ps(a), y = _mm512_loadu_ps(b);
  __m512 sum = _mm512_mul_ps(_mm512_permute_ps(x, 0x00), _mm512_shuffle_f32x4(y, y, 0x00));
  sum = _mm512_fmadd_ps(_mm512_permute_ps(x, 0x55), _mm512_shuffle_f32x4(y, y, 0x55), sum);
  sum = _mm512_fmadd_ps(_mm512_permute_ps(x, 0xaa), _mm512_shuffle_f32x4(y, y, 0xaa), sum);
  sum = _mm512_fmadd_ps(_mm512_permute_ps(x, 0xff), _mm512_shuffle_f32x4(y, y, 0xff), sum);
  _mm512_storeu_ps(c, sum);
}

// A row of the result is one register of 8.
inline void product_8_by_hand(const float* a, const float* b, float* c) {
  __m256 rows[8];
  for (int k = 0; k < 8; ++k) rows[k] = _mm256_loadu_ps(b + 8 * k);
  for (int i = 0; i < 8; ++i) {
    __m256 sum = _mm256_mul_ps(_mm256_set1_ps(a[8 * i]), rows[0]);
    for (int k = 1; k < 8; ++k) sum = _mm256_fmadd_ps(_mm256_set1_ps(a[8 * i + k]), rows[k], sum);
    _mm256_storeu_ps(c + 8 * i, sum);
  }
}

// kRows rows of the result at a time, each kVectors registers of 16.
template <int kSide, int kRows, int kVectors>
void product_by_hand(const float* a, const float* b, float* c) {
  static_assert(kSide == 16 * kVectors && kSide % kRows == 0);
  for (int first = 0; first < kSide; first += kRows) {
    __m512 sums[kRows][kVectors];
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 16
      for (int j = 0; j < kVectors; ++j) sums[i][j] = _mm512_setzero_ps();
    for (int k = 0; k < kSide; ++k) {
      __m512 row[kVectors];
#pragma GCC unroll 16
      for (int j = 0; j < kVectors; ++j) row[j] = _mm512_loadu_ps(b + kSide * k + 16 * j);
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
        const __m512 x = _mm512_set1_ps(a[kSide * (first + i) + k]);
#pragma GCC unroll 16
        for (int j = 0; j < kVectors; ++j) sums[i][j] = _mm512_fmadd_ps(x, row[j], sums[i][j]);
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 16
      for (int j = 0; j < kVectors; ++j)
        _mm512_storeu_ps(c + kSide * (first + i) + 16 * j, sums[i][j]);
  }
}
inline constexpr auto product_16_by_hand = product_by_hand<16, 16, 1>;
inline constexpr auto product_32_by_hand = product_by_hand<32, 8, 2>;

}  // namespace benchmarks
#endif
