// Products of square matrices by intrinsics, as somebody would write them for one size and for this
// processor: c = a b, row-major.
#pragma once

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>

namespace benchmarks {

#if defined(__AVX512F__)
// All of a is one register, b's rows are repeated in one.
inline void product_4_by_hand(const float* a, const float* b, float* c) {
  const __m512 x = _mm512_loadu_ps(a), y = _mm512_loadu_ps(b);
  __m512 sum = _mm512_mul_ps(_mm512_permute_ps(x, 0x00), _mm512_shuffle_f32x4(y, y, 0x00));
  sum = _mm512_fmadd_ps(_mm512_permute_ps(x, 0x55), _mm512_shuffle_f32x4(y, y, 0x55), sum);
  sum = _mm512_fmadd_ps(_mm512_permute_ps(x, 0xaa), _mm512_shuffle_f32x4(y, y, 0xaa), sum);
  sum = _mm512_fmadd_ps(_mm512_permute_ps(x, 0xff), _mm512_shuffle_f32x4(y, y, 0xff), sum);
  _mm512_storeu_ps(c, sum);
}
#else
// Two rows of a are one register, a row of b is repeated in one.
inline void product_4_by_hand(const float* a, const float* b, float* c) {
  __m256 rows[4];
  for (int k = 0; k < 4; ++k)
    rows[k] = _mm256_broadcast_ps(reinterpret_cast<const __m128*>(b + 4 * k));
  for (int i = 0; i < 4; i += 2) {
    const __m256 x = _mm256_loadu_ps(a + 4 * i);
    __m256 sum = _mm256_mul_ps(_mm256_permute_ps(x, 0x00), rows[0]);
    sum = _mm256_fmadd_ps(_mm256_permute_ps(x, 0x55), rows[1], sum);
    sum = _mm256_fmadd_ps(_mm256_permute_ps(x, 0xaa), rows[2], sum);
    sum = _mm256_fmadd_ps(_mm256_permute_ps(x, 0xff), rows[3], sum);
    _mm256_storeu_ps(c + 4 * i, sum);
  }
}
#endif

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

#if defined(__AVX512F__)
struct Register {
  using Floats = __m512;
  static constexpr int kLanes = 16;
  static Floats zero() { return _mm512_setzero_ps(); }
  static Floats load(const float* x) { return _mm512_loadu_ps(x); }
  static Floats all(float x) { return _mm512_set1_ps(x); }
  static Floats add(Floats x, Floats y, Floats sum) { return _mm512_fmadd_ps(x, y, sum); }
  static void store(float* x, Floats y) { _mm512_storeu_ps(x, y); }
};
#else
struct Register {
  using Floats = __m256;
  static constexpr int kLanes = 8;
  static Floats zero() { return _mm256_setzero_ps(); }
  static Floats load(const float* x) { return _mm256_loadu_ps(x); }
  static Floats all(float x) { return _mm256_set1_ps(x); }
  static Floats add(Floats x, Floats y, Floats sum) { return _mm256_fmadd_ps(x, y, sum); }
  static void store(float* x, Floats y) { _mm256_storeu_ps(x, y); }
};
#endif

// kRows rows of the result at a time, kVectors registers of each.
template <int kSide, int kRows, int kVectors>
void product_by_hand(const float* a, const float* b, float* c) {
  using R = Register;
  constexpr int kColumns = kVectors * R::kLanes;
  static_assert(kSide % kColumns == 0 && kSide % kRows == 0);
  for (int left = 0; left < kSide; left += kColumns)
    for (int first = 0; first < kSide; first += kRows) {
      R::Floats sums[kRows][kVectors];
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 16
        for (int j = 0; j < kVectors; ++j) sums[i][j] = R::zero();
      for (int k = 0; k < kSide; ++k) {
        R::Floats row[kVectors];
#pragma GCC unroll 16
        for (int j = 0; j < kVectors; ++j) row[j] = R::load(b + kSide * k + left + j * R::kLanes);
#pragma GCC unroll 16
        for (int i = 0; i < kRows; ++i) {
          const R::Floats x = R::all(a[kSide * (first + i) + k]);
#pragma GCC unroll 16
          for (int j = 0; j < kVectors; ++j) sums[i][j] = R::add(x, row[j], sums[i][j]);
        }
      }
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 16
        for (int j = 0; j < kVectors; ++j)
          R::store(c + kSide * (first + i) + left + j * R::kLanes, sums[i][j]);
    }
}
#if defined(__AVX512F__)
inline constexpr auto product_16_by_hand = product_by_hand<16, 16, 1>;
inline constexpr auto product_32_by_hand = product_by_hand<32, 8, 2>;
#else
inline constexpr auto product_16_by_hand = product_by_hand<16, 4, 2>;
inline constexpr auto product_32_by_hand = product_by_hand<32, 4, 2>;
#endif

}  // namespace benchmarks
#endif
