// Products whose packed side is integers of 8 or 4 bits: each column has a scale, or one for each
// group of its terms.
//
//   CompressedPacking of = {2048, 5632, 32, 1, 2048};
//   std::vector<uint8_t> panels(compressed_bytes<4, float16, false>(of));
//   pack_compressed<4, float16, false>(team, of, codes, scales, nullptr, panels.data());
//   contract_compressed<float, float>(
//       team, shape, base, {panels.data(), 32, code_format<4, float16, false>()}, finish);
//
// A weight is scale * code, or scale * code + offset. Few rows multiply codes as they are loaded:
// the sum of a group is multiplied with its scale, and offsets with the sum of the row's terms. So
// a call reads no more memory than the codes take. For more rows a panel becomes numbers first, in
// memory of the thread.
//
// A panel has, for each group of terms, a scale and an offset (if any) of each column, then codes:
// [term][column] of 8 bits; of 4 bits, words of 32 bits that have eight terms of a column. The even
// ones are in the lower half of the word: any two neighbours are one shift from being words of 16
// bits side by side.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "flashlight/runtime/contraction.hpp"
#include "flashlight/runtime/lanes.hpp"
#include "flashlight/runtime/microkernel.hpp"
#include "flashlight/runtime/team.hpp"
#include "flashlight/runtime/words.hpp"

namespace fl {

// Codes of `terms` x `columns` elements, equally far apart, in groups of `group` terms, which
// divides their number. Groups of 4 bits are whole words of eight. Scales and offsets are
// [column][group].
struct CompressedPacking {
  int64_t terms, columns, group;
  int64_t term_stride, column_stride;  // elements between codes
};

namespace detail {

template <int kBits, class Scale, bool kOffsets>
struct CompressedPanel {
  static constexpr int64_t kColumns = kPanel<float>;
  static constexpr int64_t kHeadBytes =
      kColumns * static_cast<int64_t>(sizeof(Scale)) * (kOffsets ? 2 : 1);
  static constexpr int64_t group_bytes(int64_t group) {
    return kHeadBytes + kColumns * group * kBits / 8;
  }
  static constexpr int64_t bytes(int64_t terms, int64_t group) {
    return terms / group * group_bytes(group);
  }
};

constexpr int kTermsOfWord = 8;
// Where the code of a term is in its word.
constexpr int shift_of_term(int term) { return 4 * (term / 2 + (term % 2) * 4); }

// The codes -8 … 7 of two's complement in the lowest four bits of each lane, as numbers.
class Nibbles {
 public:
  FLASHLIGHT_INLINE Nibbles() {
#if defined(__AVX512F__)
    for (int i = 0; i < 16; ++i) numbers_[i] = static_cast<float>(i < 8 ? i : i - 16);
#endif
  }
  template <int kTerm>
  FLASHLIGHT_INLINE Vector<float> get(Vector<uint32_t> bits) const {
#if defined(__AVX512F__)
    // The instruction reads four bits of each index.
    const Vector<uint32_t> index = bits >> shift_of_term(kTerm);
    Vector<float> codes;
    asm("vpermps %1, %2, %0" : "=v"(codes) : "v"(numbers_), "v"(index));
    return codes;
#else
    const auto high = bit_cast<Vector<int32_t>>(bits << (28 - shift_of_term(kTerm)));
    return __builtin_convertvector(high >> 28, Vector<float>);
#endif
  }

 private:
#if defined(__AVX512F__)
  Vector<float> numbers_ = {};
#endif
};

FLASHLIGHT_INLINE Vector<float> load_bytes(const uint8_t* from) {
  Vector<int32_t> codes;
#if defined(__AVX512F__) || defined(__AVX2__)
  // Compilers widen vectors of bytes in several steps.
  typedef uint8_t Bytes __attribute__((vector_size(kVectorBytes / 4), aligned(1), may_alias));
  asm("vpmovsxbd %1, %0" : "=v"(codes) : "m"(*reinterpret_cast<const Bytes*>(from)));
#else
  for (int i = 0; i < Vectors<float>::kLanes; ++i) codes[i] = static_cast<int8_t>(from[i]);
#endif
  return __builtin_convertvector(codes, Vector<float>);
}

FLASHLIGHT_INLINE Vector<uint32_t> load_words(const uint8_t* from) {
  Vector<uint32_t> words;
  std::memcpy(&words, from, sizeof words);
  return words;
}

template <class Scale>
FLASHLIGHT_INLINE Vector<float> load_scales(const uint8_t* from, int vector) {
  const auto* const scales = reinterpret_cast<const Scale*>(from);
  return load_as<float>(scales + vector * Vectors<float>::kLanes);
}

// The codes of one term of a word, of both vectors of columns.
template <int kTerm, class Visit>
FLASHLIGHT_INLINE void visit_nibbles(const Nibbles& nibbles, const Vector<uint32_t> (&bits)[2],
                                     int64_t k, const Visit& visit) {
  visit.template term<kTerm>(k + kTerm, nibbles.get<kTerm>(bits[0]), nibbles.get<kTerm>(bits[1]));
}

// Codes pass by as fast as memory delivers them. On their own, processors look less far ahead than
// that takes: with this a core reads 1.5 times as much of 8 bits.
FLASHLIGHT_INLINE void fetch_ahead(const uint8_t* codes) {
  constexpr int kAhead = 1 << 14, kStep = 2 * kVectorBytes;
  for (int line = 0; line < kStep; line += kLineBytes) __builtin_prefetch(codes + kAhead + line);
}

// visit.template term<n>(w0, w1) for each term of a group, in order: the codes of both vectors of
// columns. n counts terms within eight.
template <int kBits, class Visit>
FLASHLIGHT_INLINE void for_each_code(const uint8_t* codes, int64_t group, const Visit& visit) {
  constexpr int kLanes = Vectors<float>::kLanes;
  if constexpr (kBits == 8) {
    const auto at = [&](int64_t k, int v) {
      return load_bytes(codes + (k * 2 + v) * kLanes);
    };
    int64_t k = 0;
    for (; k + 4 <= group; k += 4) {
      fetch_ahead(codes + k * 2 * kLanes);
      visit.template term<0>(k, at(k, 0), at(k, 1));
      visit.template term<1>(k + 1, at(k + 1, 0), at(k + 1, 1));
      visit.template term<2>(k + 2, at(k + 2, 0), at(k + 2, 1));
      visit.template term<3>(k + 3, at(k + 3, 0), at(k + 3, 1));
    }
    for (; k < group; ++k) visit.template term<0>(k, at(k, 0), at(k, 1));
  } else {
    const Nibbles nibbles;
    for (int64_t k = 0; k < group; k += kTermsOfWord, codes += 2 * kVectorBytes) {
      fetch_ahead(codes);
      Vector<uint32_t> bits[2] = {load_words(codes), load_words(codes + kVectorBytes)};
      for (Vector<uint32_t>& words : bits) keep_in_register(words);
      visit_nibbles<0>(nibbles, bits, k, visit);
      visit_nibbles<1>(nibbles, bits, k, visit);
      visit_nibbles<2>(nibbles, bits, k, visit);
      visit_nibbles<3>(nibbles, bits, k, visit);
      visit_nibbles<4>(nibbles, bits, k, visit);
      visit_nibbles<5>(nibbles, bits, k, visit);
      visit_nibbles<6>(nibbles, bits, k, visit);
      visit_nibbles<7>(nibbles, bits, k, visit);
    }
  }
}

// The sums of a group, of a few rows.
template <int kRows>
struct GroupSums {
  static constexpr int kParts = parts_of(kRows);
  Vector<float> (&sums)[kParts][kRows][2];
  const float* rows;
  int64_t pitch;

  template <int kTerm>
  FLASHLIGHT_INLINE void term(int64_t k, Vector<float> w0, Vector<float> w1) const {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const float x = rows[r * pitch + k];
      sums[kTerm % kParts][r][0] += x * w0;
      sums[kTerm % kParts][r][1] += x * w1;
    }
  }
};

// Rows of floats times a panel; row_sums: [row][group], the sum of the terms of each group.
template <int kBits, class Scale, bool kOffsets, int kRows>
[[gnu::noinline]] void multiply_codes(const float* rows, int64_t pitch, int64_t terms,
                                      int64_t group, const uint8_t* panel, const float* row_sums,
                                      float (*to)[kPanel<float>]) {
  using Panel = CompressedPanel<kBits, Scale, kOffsets>;
  constexpr int kParts = parts_of(kRows), kLanes = Vectors<float>::kLanes;
  const int64_t groups = terms / group;
  Vector<float> totals[kRows][2] = {};
  for (int64_t g = 0; g < groups; ++g, panel += Panel::group_bytes(group)) {
    Vector<float> sums[kParts][kRows][2] = {};
    for_each_code<kBits>(panel + Panel::kHeadBytes, group,
                         GroupSums<kRows>{sums, rows + g * group, pitch});
    for (int v = 0; v < 2; ++v) {
      const Vector<float> scale = load_scales<Scale>(panel, v);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        Vector<float> sum = sums[0][r][v];
        if constexpr (kParts == 2) sum += sums[1][r][v];
        if constexpr (kParts == 4)
          sum = (sum + sums[1][r][v]) + (sums[2][r][v] + sums[3][r][v]);
        totals[r][v] += scale * sum;
        if constexpr (kOffsets)
          totals[r][v] += load_scales<Scale>(panel, v + 2) * row_sums[r * groups + g];
      }
    }
  }
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < 2; ++v) store<float>(totals[r][v], &to[r][v * kLanes]);
}

// The numbers of a group, as float.
template <class Scale, bool kOffsets>
struct GroupNumbers {
  Vector<float> scale[2], offset[2];
  float* to;

  FLASHLIGHT_INLINE GroupNumbers(const uint8_t* head, float* numbers) : offset{}, to(numbers) {
    for (int v = 0; v < 2; ++v) {
      scale[v] = load_scales<Scale>(head, v);
      if constexpr (kOffsets) offset[v] = load_scales<Scale>(head, v + 2);
    }
  }
  template <int kTerm>
  FLASHLIGHT_INLINE void term(int64_t k, Vector<float> w0, Vector<float> w1) const {
    constexpr int kLanes = Vectors<float>::kLanes;
    store<float>(w0 * scale[0] + offset[0], to + k * 2 * kLanes);
    store<float>(w1 * scale[1] + offset[1], to + (k * 2 + 1) * kLanes);
  }
};

// Two terms of each column side by side, rounded to bfloat16.
FLASHLIGHT_INLINE Vector<uint32_t> rounded_to_upper_half(Vector<float> x) {
  const auto bits = bit_cast<Vector<uint32_t>>(x);
  return bits + 0x7fffu + ((bits >> 16) & 1u);
}
FLASHLIGHT_INLINE Vector<uint32_t> bfloat16_pair(Vector<float> even, Vector<float> odd) {
  return (rounded_to_upper_half(even) >> 16) | (rounded_to_upper_half(odd) & 0xffff0000u);
}

// A panel as numbers, [term][column], or of bfloat16 in pairs of terms.
template <class Word, int kBits, class Scale, bool kOffsets>
const void* decompressed(const uint8_t* panel, int64_t terms, int64_t group) {
  using Panel = CompressedPanel<kBits, Scale, kOffsets>;
  constexpr int64_t kColumns = kPanel<float>;
  constexpr bool kPairs = !std::is_same_v<Word, float>;
  float* const memory =
      aligned_scratch<float, 11>(kPairs ? (terms + 1) / 2 * kColumns + group * kColumns
                                        : terms * kColumns);
  float* const numbers = kPairs ? memory + (terms + 1) / 2 * kColumns : memory;
  auto* pairs = reinterpret_cast<bfloat16*>(memory);
  for (int64_t first = 0; first < terms; first += group, panel += Panel::group_bytes(group)) {
    float* const to = kPairs ? numbers : numbers + first * kColumns;
    for_each_code<kBits>(panel + Panel::kHeadBytes, group,
                         GroupNumbers<Scale, kOffsets>(panel, to));
    if constexpr (kPairs) {
      for (int64_t k = 0; k < group; k += 2, pairs += 2 * kColumns)
        for (int64_t c = 0; c < kColumns; c += Vectors<float>::kLanes) {
          const Vector<uint32_t> pair = bfloat16_pair(load(to + k * kColumns + c),
                                                      load(to + (k + 1) * kColumns + c));
          std::memcpy(static_cast<void*>(pairs + 2 * c), &pair, sizeof pair);
        }
    }
  }
  return memory;
}

using MultiplyCodes = void (*)(const float*, int64_t, int64_t, int64_t, const uint8_t*,
                               const float*, float (*)[kPanel<float>]);

// Most rows that multiply codes as they are loaded. Each takes sums of its own; for more of them it
// pays to make numbers of a panel first.
constexpr int kFewCodeRows = 4;

// [row][group]: the sums of the terms of each group, computed with the first panel.
inline const float* sums_of_groups(const TileWork<float>& work, int64_t terms, int64_t group) {
  const int64_t groups = terms / group;
  float* const sums = aligned_scratch<float, 14>(kFewCodeRows * kFewCodeRows * groups) +
                      work.number * kFewCodeRows * groups;
  for (int r = 0; r < work.rows && work.first_panel; ++r)
    for (int64_t g = 0; g < groups; ++g) {
      const float* const x = work.first + r * work.pitch + g * group;
      float sum = 0;
      for (int64_t k = 0; k < group; ++k) sum += x[k];
      sums[r * groups + g] = sum;
    }
  return sums;
}

}  // namespace detail

// What is done with panels of a format: the rest does not depend on it, and is compiled once.
struct CodeFormat {
  bool has_offsets;
  int64_t (*panel_bytes)(int64_t terms, int64_t group);
  detail::MultiplyCodes multiply[detail::kFewCodeRows];  // by rows, from one on
  // A panel as numbers: of float, and, where an instruction multiplies them, in pairs of bfloat16.
  const void* (*floats)(const uint8_t* panel, int64_t terms, int64_t group);
  const void* (*pairs)(const uint8_t* panel, int64_t terms, int64_t group);
};
template <int kBits, class Scale, bool kOffsets>
const CodeFormat& code_format() {
  using namespace detail;  // NOLINT
  static constexpr CodeFormat kFormat = {
      kOffsets,
      &CompressedPanel<kBits, Scale, kOffsets>::bytes,
      {&multiply_codes<kBits, Scale, kOffsets, 1>, &multiply_codes<kBits, Scale, kOffsets, 2>,
       &multiply_codes<kBits, Scale, kOffsets, 3>, &multiply_codes<kBits, Scale, kOffsets, 4>},
      &decompressed<float, kBits, Scale, kOffsets>,
#if FLASHLIGHT_MULTIPLIES_BFLOAT16
      &decompressed<Group<bfloat16>, kBits, Scale, kOffsets>
#else
      nullptr
#endif
  };
  return kFormat;
}

// Bytes of the panels.
template <int kBits, class Scale, bool kOffsets>
int64_t compressed_bytes(const CompressedPacking& of) {
  constexpr int64_t kColumns = kPanel<float>;
  return (of.columns + kColumns - 1) / kColumns *
         detail::CompressedPanel<kBits, Scale, kOffsets>::bytes(of.terms, of.group);
}

// Packs codes; columns beyond the last one have scales of 0. The threads of the team share the
// panels; nobody waits.
template <int kBits, class Scale, bool kOffsets>
void pack_compressed(const Team& team, const CompressedPacking& of, const int8_t* codes,
                     const Scale* scales, const Scale* offsets, uint8_t* panels) {
  using Panel = detail::CompressedPanel<kBits, Scale, kOffsets>;
  constexpr int64_t kColumns = Panel::kColumns;
  const int64_t groups = of.terms / of.group, bytes = Panel::bytes(of.terms, of.group);
  const Part mine = team.part((of.columns + kColumns - 1) / kColumns);
  std::memset(panels + mine.begin * bytes, 0, static_cast<std::size_t>(mine.size() * bytes));
  for (int64_t panel = mine.begin; panel < mine.end; ++panel)
    for (int64_t column = panel * kColumns;
         column < std::min((panel + 1) * kColumns, of.columns); ++column)
      for (int64_t g = 0; g < groups; ++g) {
        uint8_t* const head = panels + panel * bytes + g * Panel::group_bytes(of.group);
        const int64_t c = column % kColumns;
        const auto put = [&](int64_t at, Scale x) {
          std::memcpy(head + at * int64_t{sizeof x}, &x, sizeof x);
        };
        put(c, scales[column * groups + g]);
        if constexpr (kOffsets) put(kColumns + c, offsets[column * groups + g]);
        const int8_t* const from =
            codes + column * of.column_stride + g * of.group * of.term_stride;
        uint8_t* const to = head + Panel::kHeadBytes;
        for (int64_t k = 0; k < of.group; ++k) {
          const auto code = static_cast<uint8_t>(from[k * of.term_stride]);
          if constexpr (kBits == 8) {
            to[k * kColumns + c] = code;
          } else {
            const int shift = detail::shift_of_term(static_cast<int>(k % detail::kTermsOfWord));
            uint8_t* const word = to + (k / detail::kTermsOfWord * kColumns + c) * 4;
            word[shift / 8] = static_cast<uint8_t>(word[shift / 8] | (code & 15u) << shift % 8);
          }
        }
      }
}

// Panels that pack_compressed has made, in groups of so many terms.
struct CompressedPanels {
  const uint8_t* bytes;
  int64_t group;
  const CodeFormat& format;

  const uint8_t* panel(int64_t number, int64_t terms) const {
    return bytes + number * format.panel_bytes(terms, group);
  }
};

namespace detail {

// Codes of the next panel lie behind those of this one, which fetches ahead by itself.
struct PanelsInARow {
  CompressedPanels panels;

  template <class T>
  Upcoming after(const Contraction<T>& of, int64_t number, Part mine, int64_t, bool,
                 bool last_strip) const {
    return last_strip && number + 1 == mine.end ? of.next : Upcoming{};
  }
};

// Multiplies each tile of a strip with the codes of a panel.
struct CodesOfPanels : PanelsInARow {
  using Type = float;

  template <class T, class Multiply>
  void use(const Contraction<T>& of, int64_t number, int64_t, bool,
           const Multiply& multiply) const {
    const int64_t terms = of.terms.count(), group = panels.group;
    const uint8_t* const panel = panels.panel(number, terms);
    multiply([&](const TileWork<T>& work, T(*sums)[kPanel<T>]) {
      const T* row_sums =
          panels.format.has_offsets ? sums_of_groups(work, terms, group) : nullptr;
      panels.format.multiply[work.rows - 1](work.first, work.pitch, terms, group, panel, row_sums,
                                            sums);
    });
  }
};

// The same with numbers that are made of a panel first.
template <class Word, class Weight>
struct NumbersOfPanels : PanelsInARow {
  using Type = Weight;


  template <class T, class Multiply>
  void use(const Contraction<T>& of, int64_t number, int64_t, bool,
           const Multiply& multiply) const {
    const int64_t terms = of.terms.count();
    const auto& make = std::is_same_v<Word, T> ? panels.format.floats : panels.format.pairs;
    const auto* const numbers =
        static_cast<const Weight*>(make(panels.panel(number, terms), terms, panels.group));
    multiply([&](const TileWork<Word>& work, T(*sums)[kPanel<T>]) {
      multiply_numbers(work, numbers, sums);
    });
  }
};

}  // namespace detail

// As fl::contract. Terms are one run of whole groups.
template <class T, class Element, class Operand = Element>
void contract_compressed(const Team& team, const Contraction<T>& of, BaseOf<Element> base,
                         CompressedPanels panels, FinishOf<T> finish) {
  static_assert(std::is_same_v<T, float>);
  if (of.outer * of.inner <= detail::kFewCodeRows) {
    detail::contract_by<T, Element, Element, T>(team, of, base, detail::CodesOfPanels{{panels}},
                                                finish);
    return;
  }
  using Word = detail::WordOf<T, Operand, Operand>;
  using Weight = std::conditional_t<std::is_same_v<Word, T>, T, Operand>;
  detail::contract_by<T, Element, Operand, Word>(
      team, of, base, detail::NumbersOfPanels<Word, Weight>{{panels}}, finish);
}

}  // namespace fl
