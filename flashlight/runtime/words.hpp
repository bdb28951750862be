// Words: what a lane multiplies at once. That is one number, or a group of neighbouring terms of
// which one instruction adds up the products.
//
//   kGroup<bfloat16> == 2;                          // terms of a column, side by side in a panel
//   add_products(sum, word, weights);               // sum[lane] += word * weights[lane]
//
// Panels of bfloat16 have pairs of terms on every machine. Where no instruction multiplies pairs,
// both halves of a word are widened: a shift, and a mask.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "composit/shipped/half_types.h"
#include "flashlight/runtime/lanes.hpp"

namespace fl {

template <class T>
constexpr int kGroup = 1;
template <>
inline constexpr int kGroup<bfloat16> = 2;

// So many terms as groups of T have room for.
template <class T>
constexpr int64_t whole_groups(int64_t terms) {
  return (terms + kGroup<T> - 1) / kGroup<T> * kGroup<T>;
}

namespace detail {

template <class T>
struct Group {
  T terms[kGroup<T>];
};

// What sums of type T are made of: words of rows that were rounded to Operand, and panels of
// Weight. Without an instruction for those, both are widened to T.
template <class T, class Operand, class Weight>
struct Words {
  using Type = T;
};
#if defined(__AVX512BF16__) && defined(__AVX512F__)
#define FLASHLIGHT_MULTIPLIES_BFLOAT16 1
template <>
struct Words<float, bfloat16, bfloat16> {
  using Type = Group<bfloat16>;
};
#else
#define FLASHLIGHT_MULTIPLIES_BFLOAT16 0
#endif
template <class T, class Operand, class Weight>
using WordOf = typename Words<T, Operand, Weight>::Type;

// Of each lane's word of a panel, number `kPart`, as T.
template <class T, class Weight, int kPart>
FLASHLIGHT_INLINE Vector<T> load_part(const Weight* from) {
  if constexpr (kGroup<Weight> == 1) {
    return load_as<T>(from);
  } else {
    static_assert(std::is_same_v<Weight, bfloat16>);
    Vector<uint32_t> bits;
    std::memcpy(&bits, from, sizeof bits);
    if constexpr (kPart == 0)
      return bit_cast<Vector<T>>(bits << 16);
    else
      return bit_cast<Vector<T>>(bits & 0xffff0000u);
  }
}

// A word of a row. It lies at an address of an element, and is read by the multiplication itself.
template <class T>
FLASHLIGHT_INLINE void add_products(Vector<T>& sum, const T& left, Vector<T> right) {
  sum += left * right;
}
#if FLASHLIGHT_MULTIPLIES_BFLOAT16
FLASHLIGHT_INLINE void add_products(Vector<float>& sum, const Group<bfloat16>& left,
                                    Vector<float> right) {
  // The intrinsic function's types differ between compilers, and its header takes long to read.
  typedef uint32_t Word __attribute__((aligned(2), may_alias));
  asm("vdpbf16ps %2%{1to16%}, %1, %0"
      : "+v"(sum)
      : "v"(right), "m"(*reinterpret_cast<const Word*>(&left)));
}
// Pairs of both sides, lane by lane.
FLASHLIGHT_INLINE void add_pairs(Vector<float>& sum, Vector<float> left, Vector<float> right) {
  asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(left), "vm"(right));
}
#endif

// to[i] = from[i], rounded to nearest, ties to even. Subnormal numbers may become 0.
FLASHLIGHT_INLINE void narrow(const float* from, int64_t count, bfloat16* to) {
#if FLASHLIGHT_MULTIPLIES_BFLOAT16
  typedef uint16_t Half __attribute__((vector_size(32)));
  constexpr int64_t kLanes = 16;
  if (count >= kLanes) {
    // The last vector overlaps the one before.
    for (int64_t i = 0; i < count; i += kLanes) {
      const int64_t at = i + kLanes <= count ? i : count - kLanes;
      const Vector<float> x = load(from + at);
      Half bits;
      asm("vcvtneps2bf16 %1, %0" : "=v"(bits) : "v"(x));
      std::memcpy(&to[at].bits, &bits, sizeof bits);
    }
    return;
  }
#endif
  for (int64_t i = 0; i < count; ++i) to[i] = from[i];
}

// The bits of a bfloat16 in each lane: as they are, or of floats that are rounded.
FLASHLIGHT_INLINE Vector<uint32_t> bfloat16_bits(const bfloat16* from) { return load_bits(from); }
FLASHLIGHT_INLINE Vector<uint32_t> bfloat16_bits(const float* from) {
  bfloat16 rounded[Vectors<float>::kLanes];
  narrow(from, Vectors<float>::kLanes, rounded);
  return load_bits(rounded);
}
// Pairs of neighbouring terms of as many columns, or rows, as a vector has lanes.
template <class From>
FLASHLIGHT_INLINE Vector<uint32_t> pairs(const From* even, const From* odd) {
  return bfloat16_bits(even) | bfloat16_bits(odd) << 16;
}
template <class From>
constexpr bool kHasPairs = std::is_same_v<From, bfloat16> || std::is_same_v<From, float>;

// to[row * pitch + k / 2] has terms k and k + 1 of a row, whose terms lie `step` apart, beside those
// of the next row. Whole vectors of rows and of pairs: others are left to the caller (false).
template <class From>
bool turn_pairs(const From* from, int64_t step, int64_t terms, int64_t rows, uint32_t* to,
                int64_t pitch) {
  constexpr int64_t kLanes = Vectors<uint32_t>::kLanes;
  if (rows < kLanes || terms % 2 != 0 || terms < 2 * kLanes) return false;
  alignas(kVectorBytes) uint32_t words[kLanes * kLanes];
  for (int64_t pair = 0; pair < terms / 2; pair += kLanes) {
    const int64_t first = std::min(pair, terms / 2 - kLanes);  // the last ones overlap
    for (int64_t row = 0; row < rows; row += kLanes) {
      const int64_t at = std::min(row, rows - kLanes);
      for (int64_t i = 0; i < kLanes; ++i) {
        const From* const even = from + (first + i) * 2 * step + at;
        store<uint32_t>(pairs(even, even + step), words + i * kLanes);
      }
      transpose_square(words, kLanes, to + at * pitch + first, pitch);
    }
  }
  return true;
}

// to[i] = from[i], without a call of a function for a few of them.
template <class T>
FLASHLIGHT_INLINE void copy(const T* from, int64_t count, T* to) {
  constexpr int64_t kBlock = 16;
  if (count < kBlock) {
    for (int64_t i = 0; i < count; ++i) to[i] = from[i];
    return;
  }
  for (int64_t i = 0; i < count; i += kBlock) {
    const int64_t at = i + kBlock <= count ? i : count - kBlock;
    std::memcpy(static_cast<void*>(to + at), from + at, kBlock * sizeof *from);
  }
}

// to[i] = from[i * step], rounded to Operand, as To.
template <class Operand, class From, class To>
FLASHLIGHT_INLINE void convert(const From* from, int64_t step, int64_t count, To* to) {
  if constexpr (std::is_same_v<Operand, From> && std::is_floating_point_v<To>) {
    widen(from, step, count, to);
  } else if constexpr (std::is_same_v<Operand, From>) {
    if (step == 1) {
      copy(from, count, to);
    } else {
      for (int64_t i = 0; i < count; ++i) to[i] = from[i * step];
    }
  } else {
    if constexpr (std::is_same_v<From, float> && std::is_same_v<To, bfloat16>)
      if (step == 1) return narrow(from, count, to);
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<Operand>(from[i * step]);
  }
}

// The first `terms` of a group of each column of a panel, one after the other.
template <class Weight, class T>
FLASHLIGHT_INLINE T* widen_group(const Weight* panel, int terms, T* to) {
  constexpr int kLanes = Vectors<T>::kLanes;
  for (int v = 0; v < 2; ++v) {
    const Weight* const from = panel + v * kLanes * kGroup<Weight>;
    store<T>(load_part<T, Weight, 0>(from), to + v * kLanes);
    if constexpr (kGroup<Weight> > 1)
      if (terms > 1) store<T>(load_part<T, Weight, 1>(from), to + (v + 2) * kLanes);
  }
  return to + terms * 2 * kLanes;
}

}  // namespace detail

// to[i] = from[i], rounded to nearest, ties to even.
FLASHLIGHT_INLINE void store_rounded(const float* from, int64_t count, bfloat16* to) {
  detail::narrow(from, count, to);
}

}  // namespace fl
