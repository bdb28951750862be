// Products of bytes: rows of uint8 times packed columns of int8, summed in int32, exactly.
//
//   std::vector<int32_t> panels(packed_words(of));
//   pack_bytes<int32_t>(team, of, weights, panels.data());     // int8, any strides
//   contract_bytes<int32_t>(team, contraction, 128, base, panels.data(), finish);
//
// sums[r][c] = sum over t of (row r's term t - zero) * (column c's term t). Four neighbouring terms
// are a word. An instruction (VNNI) takes one word of a row and a word of each column, and adds all
// four products; others multiply pairs of 16 bits, or numbers. Sums of 2^31 and more wrap, so
// 255 * 128 * terms has to be below that.
//
// A panel begins with the sum of each column's terms: sums start at -zero times that, so that zero
// points cost nothing. Int8 rows are uint8 rows whose numbers and zero point are 128 larger.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "flashlight/runtime/contraction.hpp"
#include "flashlight/runtime/lanes.hpp"
#include "flashlight/runtime/matrix_unit.hpp"
#include "flashlight/runtime/microkernel.hpp"
#include "flashlight/runtime/pack.hpp"
#include "flashlight/runtime/team.hpp"

namespace fl {
namespace detail {

constexpr int kBytesOfWord = 4;
constexpr int64_t whole_words(int64_t bytes) { return (bytes + kBytesOfWord - 1) / kBytesOfWord; }

#if (defined(__AVX512VNNI__) && defined(__AVX512F__)) || \
    (defined(__AVXVNNI__) && !defined(__AVX512F__))
#define FLASHLIGHT_MULTIPLIES_BYTES 1
#else
#define FLASHLIGHT_MULTIPLIES_BYTES 0
#endif

// Words of four bytes, a vector of them: how a sum takes those of a row, each unsigned, times those
// of columns, each signed.
#if FLASHLIGHT_MULTIPLIES_BYTES
struct ByteWords {
  using Row = Vector<int32_t>;
  using Columns = Vector<int32_t>;
  FLASHLIGHT_INLINE static Row row(Vector<int32_t> words) { return words; }
  FLASHLIGHT_INLINE static Columns columns(Vector<int32_t> words) { return words; }
  // The intrinsic function's header takes long to read.
  FLASHLIGHT_INLINE static void add(Vector<int32_t>& sum, Row left, Columns right) {
#if defined(__AVX512F__)
    asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(left), "v"(right));
#else
    asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(left), "x"(right));
#endif
  }
};
#elif defined(__AVX512BW__) || (defined(__AVX2__) && !defined(__AVX512F__)) || \
    (defined(__SSE2__) && !defined(__AVX__))
// Even and odd bytes as pairs of 16 bits: one multiplication adds the products of a pair.
struct ByteWords {
  typedef int16_t Pairs __attribute__((vector_size(kVectorBytes)));
  struct Row {
    Pairs even, odd;
  };
  using Columns = Row;
  FLASHLIGHT_INLINE static Row row(Vector<int32_t> words) {
    return {bit_cast<Pairs>(words & 0x00ff00ff), bit_cast<Pairs>((words >> 8) & 0x00ff00ff)};
  }
  FLASHLIGHT_INLINE static Columns columns(Vector<int32_t> words) {
    const auto pairs = bit_cast<Pairs>(words);
    return {(pairs << 8) >> 8, pairs >> 8};
  }
  FLASHLIGHT_INLINE static void add(Vector<int32_t>& sum, const Row& left, const Columns& right) {
    sum += products(left.even, right.even);
    sum += products(left.odd, right.odd);
  }
  FLASHLIGHT_INLINE static Vector<int32_t> products(Pairs left, Pairs right) {
#if defined(__AVX512BW__)
    Vector<int32_t> both;
    asm("vpmaddwd %2, %1, %0" : "=v"(both) : "v"(left), "v"(right));
    return both;
#elif defined(__AVX2__)
    Vector<int32_t> both;
    asm("vpmaddwd %2, %1, %0" : "=x"(both) : "x"(left), "x"(right));
    return both;
#else
    asm("pmaddwd %1, %0" : "+x"(left) : "x"(right));
    return bit_cast<Vector<int32_t>>(left);
#endif
  }
};
#else
struct ByteWords {
  using Row = Vector<int32_t>;
  using Columns = Vector<int32_t>;
  FLASHLIGHT_INLINE static Row row(Vector<int32_t> words) { return words; }
  FLASHLIGHT_INLINE static Columns columns(Vector<int32_t> words) { return words; }
  FLASHLIGHT_INLINE static void add(Vector<int32_t>& sum, Row left, Columns right) {
    sum += (left & 255) * ((right << 24) >> 24);
    sum += ((left >> 8) & 255) * ((right << 16) >> 24);
    sum += ((left >> 16) & 255) * ((right << 8) >> 24);
    sum += ((left >> 24) & 255) * (right >> 24);
  }
};
#endif

// The word at any address, in each lane.
FLASHLIGHT_INLINE Vector<int32_t> spread_word(const uint8_t* from) {
#if defined(__AVX512F__)
  typedef int32_t Word __attribute__((aligned(1), may_alias));
  Vector<int32_t> words;
  asm("vpbroadcastd %1, %0" : "=v"(words) : "m"(*reinterpret_cast<const Word*>(from)));
  return words;
#else
  int32_t word;
  std::memcpy(&word, from, sizeof word);
  return Vectors<int32_t>::all(word);
#endif
}

// What a tile reads: rows, `stride` bytes apart, whose terms are `words` words for each segment.
struct ByteTile {
  const uint8_t* rows;
  int64_t stride;
  const int32_t* offsets;  // of segments, in bytes
  int segments, words;
  const int32_t* panel;
  int32_t zero;
  const void* ahead = nullptr;
  int64_t ahead_lines = 0;
};

// The sums of kRows rows and kVectors vectors of columns.
template <int kRows, int kVectors>
struct ByteSums {
  using V = Vectors<int32_t>;
  static constexpr int kBases = (kRows + 2) / 3, kParts = parts_of(kRows);
  V::Vector sums[kParts][kRows][kVectors];
  const uint8_t* bases[kBases];

  FLASHLIGHT_INLINE void start(const int32_t* column_sums, int32_t zero) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      const V::Vector first = V::load(column_sums + v * V::kLanes) * -zero;
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        sums[0][r][v] = first;
#pragma GCC unroll 16
        for (int p = 1; p < kParts; ++p) sums[p][r][v] = V::Vector{};
      }
    }
  }

  FLASHLIGHT_INLINE void enter(const uint8_t* rows, int64_t stride) {
#pragma GCC unroll 16
    for (int b = 0; b < kBases; ++b) bases[b] = rows + 3 * b * stride;
  }

  // Word kWord of each row, counted from where the bases are.
  template <int kPart, int kWord>
  FLASHLIGHT_INLINE void add(int64_t stride, const int32_t* panel) {
    ByteWords::Columns right[kVectors];
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      V::Vector words = V::load(panel + kWord * kPanel<int32_t> + v * V::kLanes);
      keep_in_register(words);
      right[v] = ByteWords::columns(words);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const ByteWords::Row left =
          ByteWords::row(spread_word(bases[r / 3] + (r % 3) * stride + kWord * kBytesOfWord));
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) ByteWords::add(sums[kPart][r][v], left, right[v]);
    }
  }
  FLASHLIGHT_INLINE void pass(int words) {
#pragma GCC unroll 16
    for (int b = 0; b < kBases; ++b) bases[b] += words * kBytesOfWord;
  }

  FLASHLIGHT_INLINE void store(int32_t (*to)[kPanel<int32_t>]) const {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) {
        V::Vector sum = sums[0][r][v];
#pragma GCC unroll 16
        for (int p = 1; p < kParts; ++p) sum += sums[p][r][v];
        std::memcpy(&to[r][v * V::kLanes], &sum, sizeof sum);
      }
  }
};

template <int kRows, int kVectors>
[[gnu::noinline]] void multiply_bytes(const ByteTile& tile, int32_t (*sums)[kPanel<int32_t>]) {
  using Sums = ByteSums<kRows, kVectors>;
  constexpr int kTogether = Sums::kParts == 4 ? 4 : 2;
  Sums all;
  const int32_t* panel = tile.panel;
  all.start(panel, tile.zero);
  panel += kPanel<int32_t>;
  const int block = tile.ahead_lines > 0 ? 16 : tile.words;
  Ahead ahead(tile.ahead, tile.ahead_lines, int64_t{tile.segments} * tile.words);
  for (int segment = 0; segment < tile.segments; ++segment) {
    all.enter(tile.rows + tile.offsets[segment], tile.stride);
    for (int first = 0; first < tile.words; first += block) {
      const int count = tile.words - first < block ? tile.words - first : block;
      ahead.pass(count);
      int k = 0;
      for (; k + kTogether <= count; k += kTogether, panel += kTogether * kPanel<int32_t>) {
        all.template add<0, 0>(tile.stride, panel);
        all.template add<Sums::kParts == 1 ? 0 : 1, 1>(tile.stride, panel);
        if constexpr (kTogether == 4) {
          all.template add<2, 2>(tile.stride, panel);
          all.template add<3, 3>(tile.stride, panel);
        }
        all.pass(kTogether);
      }
      for (; k < count; ++k, panel += kPanel<int32_t>) {
        all.template add<0, 0>(tile.stride, panel);
        all.pass(1);
      }
    }
  }
  all.store(sums);
}

using MultiplyBytes = void (*)(const ByteTile&, int32_t (*)[kPanel<int32_t>]);
template <int kVectors, std::size_t... kIndices>
constexpr std::array<MultiplyBytes, kMostRows> byte_multiplications(
    std::index_sequence<kIndices...>) {
  return {{&multiply_bytes<static_cast<int>(kIndices) + 1, kVectors>...}};
}
template <class T>
MultiplyBytes byte_multiplication(int rows, int vectors) {
  static_assert(std::is_same_v<T, int32_t>);
  static constexpr auto kOne = byte_multiplications<1>(Heights()),
                        kTwo = byte_multiplications<2>(Heights());
  return (vectors == 1 ? kOne : kTwo)[static_cast<std::size_t>(rows - 1)];
}

inline void multiply_bytes_by([[maybe_unused]] MatrixUnit& unit, int rows, int vectors,
                              const ByteTile& tile, int32_t (*sums)[kPanel<int32_t>]) {
#if FLASHLIGHT_HAS_MATRIX_UNIT
  alignas(kVectorBytes) int32_t first[kPanel<int32_t>];
  for (int c = 0; c < kPanel<int32_t>; ++c) first[c] = tile.panel[c] * -tile.zero;
  unit.multiply<int32_t>(
      rows, vectors,
      {reinterpret_cast<const char*>(tile.rows), tile.stride, tile.offsets, 1, tile.segments,
       tile.words, reinterpret_cast<const char*>(tile.panel + kPanel<int32_t>), tile.ahead,
       tile.ahead_lines},
      first, sums);
#else
  byte_multiplication<int32_t>(rows, vectors)(tile, sums);
#endif
}

// The bytes of a row that are copied at once, and so many more than it has may be.
constexpr int kMostAtOnce = 32;

// to[i] = from[i] in whole blocks of kBlock bytes, the last of which reads and writes beyond
// `count`.
template <int kBlock>
FLASHLIGHT_INLINE void copy_blocks(const uint8_t* from, int count, uint8_t* to) {
  for (int i = 0; i < count; i += kBlock) {
    uint8_t block[kBlock];
    std::memcpy(block, from + i, kBlock);
    std::memcpy(to + i, block, kBlock);
  }
}
FLASHLIGHT_INLINE void copy_and_beyond(const uint8_t* from, int count, uint8_t* to) {
  if (count <= 8)
    copy_blocks<8>(from, count, to);
  else if (count <= 16)
    copy_blocks<16>(from, count, to);
  else
    copy_blocks<kMostAtOnce>(from, count, to);
}

// The rows of a strip as tiles read them: where they lie, if their terms are whole words, or in
// memory of the thread, each segment filled up to whole words. What fills up is multiplied by 0.
// `by_unit`: rows that lie have whole steps of the unit for matrices, which reads whole ones.
class ByteRows {
 public:
  ByteRows(const Contraction<int32_t>& of, bool by_unit)
      : of_(of),
        lie_(of.terms.step == 1 && of.terms.run % (by_unit ? kLineBytes : kBytesOfWord) == 0),
        words_(static_cast<int>(whole_words(of.terms.run))) {
    pitch_ = lie_ ? of.inner_stride
                  : row_pitch<int32_t>(int64_t{of.terms.segments} * words_) * kBytesOfWord;
  }

  bool lie() const { return lie_; }
  ByteTile tile(int number, const Rows<uint8_t>& rows) const {
    static constexpr int32_t kFirst = 0;
    const uint8_t* const first = lie_ ? rows.first : memory_ + before_[number] * pitch_;
    if (!lie_) return {first, pitch_, &kFirst, 1, of_.terms.segments * words_, nullptr, 0};
    return {first, pitch_, of_.terms.offsets, of_.terms.segments, words_, nullptr, 0};
  }

  void take(const Rows<uint8_t>* strip, int count) {
    if (lie_) return;
    int64_t rows = 0;
    for (int i = 0; i < count; rows += strip[i++].count) before_[i] = rows;
    memory_ = reinterpret_cast<uint8_t*>(
        aligned_scratch<int32_t, 20>((rows * pitch_ + kMostAtOnce) / kBytesOfWord));
    end_ = end_of(strip, count);
    uint8_t* to = memory_;
    for (int i = 0; i < count; ++i)
      for (int r = 0; r < strip[i].count; ++r, to += pitch_)
        copy_row(strip[i].first + r * of_.inner_stride, to);
  }

 private:
  void copy_row(const uint8_t* from, uint8_t* to) const {
    const int run = of_.terms.run, step = of_.terms.step;
    const int reach = run <= 8    ? 8
                      : run <= 16 ? 16
                                  : (run + kMostAtOnce - 1) / kMostAtOnce * kMostAtOnce;
    // What follows a segment is copied after it.
    for (int s = 0; s < of_.terms.segments; ++s, to += words_ * kBytesOfWord) {
      const uint8_t* const segment = from + of_.terms.offsets[s];
      if (step == 1 && end_ - segment >= reach) {
        copy_and_beyond(segment, run, to);
      } else if (step == 1) {
        std::memcpy(to, segment, static_cast<std::size_t>(run));
      } else {
        for (int k = 0; k < run; ++k) to[k] = segment[int64_t{k} * step];
      }
    }
  }

  const Contraction<int32_t>& of_;
  const bool lie_;
  const int words_;  // of a segment
  int64_t pitch_ = 0;
  uint8_t* memory_ = nullptr;
  const uint8_t* end_ = nullptr;  // of what the strip reads
  int64_t before_[kStripTiles];   // rows of the tiles before
};

// The words to prefetch after `panel`: as `behind` has it, for panels of these sizes.
inline Upcoming words_behind(const Contraction<int32_t>& of, int64_t panel, Part panels,
                             const int32_t* words, int64_t size, int64_t tiles, bool first_strip,
                             bool last_strip) {
  const bool resident = panels.size() * size * kBytesOfWord <= kResidentBytes;
  const bool last_panel = panel + 1 == panels.end;
  if (last_panel && last_strip) return of.next;
  if (tiles == 1 || panels.size() == 1 || (resident && (last_panel || !first_strip))) return {};
  return Upcoming::of(words + (last_panel ? panels.begin : panel + 1) * size, size);
}

}  // namespace detail

// Words of a panel, that of each column's sum included, by column.
inline int64_t packed_words_of_column(const Packing& of) {
  return 1 + of.terms[0].extent * of.terms[1].extent * of.terms[2].extent *
                 detail::whole_words(of.terms[3].extent);
}
// Words of the panels: [panel][1 + segments * words][kPanel<int32_t>].
inline int64_t packed_words(const Packing& of) {
  constexpr int64_t kColumns = kPanel<int32_t>;
  return (of.columns.extent + kColumns - 1) / kColumns * kColumns * packed_words_of_column(of);
}

// Packs what starts at `from`. The threads of the team share the panels; nobody waits.
template <class T>
void pack_bytes(const Team& team, const Packing& of, const int8_t* from, T* panels) {
  static_assert(std::is_same_v<T, int32_t>);
  constexpr int64_t kColumns = kPanel<int32_t>;
  const int64_t height = packed_words_of_column(of), run = of.terms[3].extent;
  const int64_t segments = of.terms[0].extent * of.terms[1].extent * of.terms[2].extent;
  const Part mine = team.part((of.columns.extent + kColumns - 1) / kColumns);
  for (int64_t panel = mine.begin; panel < mine.end; ++panel) {
    int32_t* const sums = panels + panel * height * kColumns;
    auto* to = reinterpret_cast<int8_t*>(sums + kColumns);
    std::memset(sums, 0, static_cast<std::size_t>(height * kColumns) * sizeof *sums);
    const int64_t first = panel * kColumns;
    const int64_t columns = std::min<int64_t>(kColumns, of.columns.extent - first);
    for (int64_t segment = 0; segment < segments; ++segment) {
      const int8_t* at = from + first * of.columns.stride;
      int64_t rest = segment;
      for (int i = 2; i >= 0; rest /= of.terms[i--].extent)
        at += rest % of.terms[i].extent * of.terms[i].stride;
      for (int64_t k = 0; k < run; ++k)
        for (int64_t c = 0; c < columns; ++c) {
          const int8_t x = at[k * of.terms[3].stride + c * of.columns.stride];
          to[(k / detail::kBytesOfWord * kColumns + c) * detail::kBytesOfWord +
             k % detail::kBytesOfWord] = x;
          sums[c] += x;
        }
      to += detail::whole_words(run) * kColumns * detail::kBytesOfWord;
    }
  }
}

// As `contract` (contraction.hpp), for bytes: terms and strides of `of` are in bytes, and rows
// start at base(outer). `zero` is subtracted from each of their terms. `panels`: as pack_bytes has
// them.
template <class T>
void contract_bytes(const Team& team, const Contraction<T>& of, T zero, BaseOf<uint8_t> base,
                    const T* panels, FinishOf<T> finish) {
  constexpr int64_t kColumns = kPanel<int32_t>;
  if (of.outer <= 0 || of.inner <= 0 || of.columns <= 0) return;
  const bool by_unit = detail::MatrixUnit::is_useful(of.outer * of.inner);
  detail::MatrixUnit unit;
  detail::ByteRows rows(of, by_unit);
  const auto joined = by_unit && rows.lie() ? detail::joined_runs<T, uint8_t>(of, base)
                                            : detail::JoinedRuns{};
  const detail::Tiling<int32_t, uint8_t> tiling(
      of, team.threads(), by_unit ? detail::kUnitRows : kMostRows, joined);
  const bool by_rows = of.split == Split::rows;
  const int64_t all = (of.columns + kColumns - 1) / kColumns;
  const Part tiles = by_rows ? team.part(tiling.count()) : Part{0, tiling.count()};
  const Part mine = by_rows ? Part{0, all} : team.part(all);
  const int64_t size = (1 + of.terms.segments * detail::whole_words(of.terms.run)) * kColumns;
  detail::Rows<uint8_t> strip[detail::kStripTiles];
  alignas(detail::kVectorBytes)
      int32_t sums[FLASHLIGHT_HAS_MATRIX_UNIT ? detail::kUnitRows : kMostRows][kColumns];
  for (int64_t begin = tiles.begin, count = 0; begin < tiles.end; begin += count) {
    count = tiling.strip(begin, tiles.end, base, rows.lie(), 1, strip);
    rows.take(strip, static_cast<int>(count));
    for (int64_t number = mine.begin; number < mine.end; ++number) {
      const int64_t column = number * kColumns;
      const int columns = static_cast<int>(std::min(kColumns, of.columns - column));
      const int vectors = columns > kColumns / 2 ? 2 : 1;
      const auto upcoming = detail::words_behind(of, number, mine, panels, size, count,
                                                 begin == tiles.begin, begin + count == tiles.end);
      for (int i = 0; i < count; ++i) {
        detail::ByteTile tile = rows.tile(i, strip[i]);
        tile.panel = panels + number * size;
        tile.zero = zero;
        const int64_t from = upcoming.lines * i / count;
        tile.ahead = upcoming.from + from * detail::kLineBytes;
        tile.ahead_lines = upcoming.lines * (i + 1) / count - from;
        if (by_unit)
          detail::multiply_bytes_by(unit, strip[i].count, vectors, tile, sums);
        else
          detail::byte_multiplication<T>(strip[i].count, vectors)(tile, sums);
        tiling.finish(strip[i], column, columns, sums, finish);
      }
    }
  }
}

}  // namespace fl
