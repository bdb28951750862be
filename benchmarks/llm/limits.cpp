#include "benchmarks/llm/limits.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <vector>

#include "flashlight/runtime/team.hpp"
#include "flashlight/runtime/vectors.hpp"

#if defined(__AVX512F__) && defined(__AVX512VNNI__)
#include <immintrin.h>
#endif

namespace benchmarks {
namespace {

using Words = fl::detail::Vectors<uint32_t>;
using Floats = fl::detail::Vectors<float>;
using Bytes = std::span<const uint32_t>;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Reads `kStreams` parts of an array side by side, each with `kSums` sums, and asks for what lies
// `kAhead` bytes further on, if any.
template <int kStreams, int kSums, int kAhead>
uint32_t sum_of(Bytes from) {
  constexpr size_t kStep = static_cast<size_t>(kSums) * Words::kLanes;
  const size_t length = from.size() / kStreams / kStep * kStep;
  Words::Vector sums[kStreams][kSums] = {};
  for (size_t i = 0; i < length; i += kStep)
#pragma GCC unroll 8
    for (size_t stream = 0; stream < kStreams; ++stream) {
      const uint32_t* const at = from.data() + stream * length + i;
#pragma GCC unroll 8
      for (size_t k = 0; k < kSums; ++k) {
        if constexpr (kAhead > 0) __builtin_prefetch(at + k * Words::kLanes + kAhead / 4);
        sums[stream][k] += Words::load(at + k * Words::kLanes);
      }
    }
  Words::Vector all = {};
  for (const auto& stream : sums)
    for (const Words::Vector& sum : stream) all += sum;
  uint32_t sum = 0;
  for (int i = 0; i < Words::kLanes; ++i) sum += all[i];
  return sum;
}

using Reader = uint32_t (*)(Bytes);
constexpr std::array<Reader, 7> kReaders = {sum_of<1, 4, 0>,    sum_of<1, 8, 0>, sum_of<1, 8, 1024>,
                                            sum_of<1, 8, 4096>, sum_of<2, 4, 0>, sum_of<4, 2, 0>,
                                            sum_of<4, 4, 2048>};

volatile uint32_t used;

// GB/s of all threads: the time is that of the last of them.
template <class Work>
double rate_of(int threads, double bytes, const Work& work) {
  double elapsed = 0;
  fl::run_team(threads, [&](const fl::Team& team) {
    team.wait();
    const double begin = now();
    const uint32_t sum = work(team);
    team.wait();
    if (team.thread() == 0) elapsed = now() - begin;
    if (sum == 1) used = sum;
  });
  return bytes / elapsed * 1e-9;
}

double read_rate(int threads, Bytes memory) {
  constexpr int kRounds = 3;
  double best = 0;
  for (int round = 0; round < kRounds; ++round)
    for (const Reader read : kReaders)
      best = std::max(
          best, rate_of(threads, static_cast<double>(memory.size_bytes()), [&](auto& team) {
            const fl::Part part = team.part(static_cast<int64_t>(memory.size()));
            return read(
                memory.subspan(static_cast<size_t>(part.begin), static_cast<size_t>(part.size())));
          }));
  return best;
}

// ---- four bits ----------------------------------------------------------------------------------

// Columns of weights side by side in lanes, in groups of 32 terms that have a scale per column. A
// word has 8 terms of a column, as unsigned integers of 4 bits.
struct Groups {
  static constexpr int kTerms = 32, kWords = kTerms / 8;
  struct Group {
    uint32_t words[kWords][Words::kLanes];
    float scales[Words::kLanes];  // computed with as they are; counted as 16 bits
  };
  static constexpr size_t kBytes = sizeof(uint32_t[kWords][Words::kLanes]) + 2 * Words::kLanes;
};

// The sum over groups of scale * dot(weights, x). `x` has a group's terms as signed bytes, the low
// halves of words and the high ones apart, and is the same for all groups.
#if defined(__AVX512F__) && defined(__AVX512VNNI__)
Floats::Vector dot(const Groups::Group* groups, size_t count, const uint32_t* x) {
  const __m512i low = _mm512_set1_epi8(15);
  __m512 sum = _mm512_setzero_ps();
  for (size_t i = 0; i < count; ++i) {
    __m512i products[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
#pragma GCC unroll 4
    for (int k = 0; k < Groups::kWords; ++k) {
      const __m512i words = _mm512_loadu_si512(groups[i].words[k]);
      products[0] = _mm512_dpbusd_epi32(products[0], _mm512_and_si512(words, low),
                                        _mm512_set1_epi32(static_cast<int>(x[2 * k])));
      products[1] =
          _mm512_dpbusd_epi32(products[1], _mm512_and_si512(_mm512_srli_epi16(words, 4), low),
                              _mm512_set1_epi32(static_cast<int>(x[2 * k + 1])));
    }
    sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_add_epi32(products[0], products[1])),
                          _mm512_loadu_ps(groups[i].scales), sum);
  }
  Floats::Vector result;
  static_assert(sizeof result == sizeof sum);
  std::memcpy(&result, &sum, sizeof result);
  return result;
}
#else
Floats::Vector dot(const Groups::Group* groups, size_t count, const uint32_t* x) {
  Floats::Vector sum = {};
  for (size_t i = 0; i < count; ++i) {
    Floats::Vector products = {};
    for (int k = 0; k < Groups::kWords; ++k) {
      const Words::Vector words = Words::load(groups[i].words[k]);
      for (int term = 0; term < 8; ++term)
        products += __builtin_convertvector((words >> (4 * static_cast<uint32_t>(term))) & 15u,
                                            Floats::Vector) *
                    static_cast<float>(static_cast<int8_t>(x[2 * k + term % 2] >> (term / 2 * 8)));
    }
    sum += products * Floats::load(groups[i].scales);
  }
  return sum;
}
#endif

double dot4_rate(int threads) {
  constexpr size_t kCount = 64, kTimes = 4000, kRounds = 5;  // 20 kB
  const std::vector<Groups::Group> groups(kCount, Groups::Group{{}, {}});
  const std::vector<uint32_t> x(2 * Groups::kWords, 0x01020304);
  const double bytes = static_cast<double>(Groups::kBytes * kCount * kTimes) * threads;
  double best = 0;
  for (size_t round = 0; round < kRounds; ++round)
    best = std::max(best, rate_of(threads, bytes, [&](auto&) {
                      Floats::Vector sum = {};
                      for (size_t i = 0; i < kTimes; ++i) {
                        sum += dot(groups.data(), kCount, x.data());
                        asm volatile("" ::: "memory");  // the weights may be others
                      }
                      return static_cast<uint32_t>(sum[0]);
                    }));
  return best;
}

}  // namespace

Limits look_at_limits(int threads, Bytes memory) {
  return {.read = read_rate(threads, memory), .dot4 = dot4_rate(threads)};
}

}  // namespace benchmarks
