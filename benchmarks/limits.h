// What the processor's instructions for products can do: loops on registers alone, to compare
// kernels with. All are 10^9 products per second of one thread, the best of several tries.
#pragma once

#include <algorithm>
#include <ctime>
#include <type_traits>

#include "flashlight/runtime/bytes.hpp"
#include "flashlight/runtime/matrix_unit.hpp"
#include "flashlight/runtime/peak.hpp"
#include "flashlight/runtime/words.hpp"

namespace benchmarks {

inline double thread_time() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// `work` does so many products.
template <class Work>
double rate_of(double products, const Work& work) {
  constexpr int kTries = 20;
  double best = 0;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const double start = thread_time();
    work();
    best = std::max(best, 1e-9 * products / (thread_time() - start));
  }
  return best;
}

// A vector of sums takes kGroup products for each lane. More chains than the latency of a unit
// needs, fewer than there are registers.
template <class T, int kGroup, class Add>
double rate_of_vectors(const Add& add) {
  constexpr int kChains = 12, kSteps = 20'000;
  using Lanes = fl::detail::Vectors<T>;
  typename Lanes::Vector sums[kChains] = {};
  return rate_of(1.0 * kChains * kSteps * Lanes::kLanes * kGroup, [&] {
    typename Lanes::Vector left = Lanes::all(T(1)), right = Lanes::all(T(1));
    for (int step = 0; step < kSteps; ++step) {
      fl::detail::keep_in_register(left);
      fl::detail::keep_in_register(right);
#pragma GCC unroll 12
      for (int i = 0; i < kChains; ++i) add(sums[i], left, right);
    }
    asm volatile("" : : "r"(sums) : "memory");  // all of them are needed
  });
}

// Of the unit for matrices, where there is one: sums of float are of bfloat16, of int32 of bytes.
template <class T>
double rate_of_unit() {
#if FLASHLIGHT_HAS_MATRIX_UNIT
  using Registers = fl::detail::MatrixUnit::Registers;
  constexpr int kSteps = 20'000, kLines = 16, kColumns = 16, kTerms = 64;
  if (!fl::detail::MatrixUnit::is_useful(fl::detail::kUnitRows)) return 0;
  Registers::configure(kLines, kLines);
  const double rate =
      rate_of(4.0 * kSteps * kLines * kColumns * kTerms / (std::is_same_v<T, float> ? 2 : 1), [] {
        for (int step = 0; step < kSteps; ++step) {
          Registers::multiply<T, 0, 4, 6>();
          Registers::multiply<T, 1, 4, 7>();
          Registers::multiply<T, 2, 5, 6>();
          Registers::multiply<T, 3, 5, 7>();
        }
      });
  Registers::release();
  return rate;
#else
  return 0;
#endif
}

inline double float32_limit() {
  return rate_of_vectors<float, 1>([](auto& sum, auto left, auto right) { sum += left * right; });
}
inline double bfloat16_limit() {
#if FLASHLIGHT_MULTIPLIES_BFLOAT16
  const double pairs = rate_of_vectors<float, 2>(
      [](auto& sum, auto left, auto right) { fl::detail::add_pairs(sum, left, right); });
  return std::max(pairs, rate_of_unit<float>());
#else
  return float32_limit();  // they are widened
#endif
}
inline double bytes_limit() {
  using fl::detail::ByteWords;
  const double words = rate_of_vectors<int32_t, 4>([](auto& sum, auto left, auto right) {
    ByteWords::add(sum, ByteWords::row(left), ByteWords::columns(right));
  });
  return std::max(words, rate_of_unit<int32_t>());
}

}  // namespace benchmarks
