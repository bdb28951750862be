// Products of pairs of bfloat16, and of groups of four bytes, by a unit for matrices: Intel's AMX.
//
//   MatrixUnit unit;                                  // of this thread, until it goes
//   unit.multiply<float>(32, {rows, pitch, offsets, 4, 1, 384, panel}, sums);
//
// A register of the unit has 16 lines of 64 bytes: of rows, of a panel (a group of terms of 16
// columns is a line, as panels have it in memory), or of sums. Eight of them are four of sums, and
// what those are made of: 32 rows times 32 columns; or 16 rows, twice, for every other step.
//
// The system has to allow the process to use the unit, which is asked once. Where it does not, or
// the processor is another one, tiles of vectors do the same work (microkernel.hpp). Tests run the
// text with registers that are loops.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "flashlight/runtime/flashlight.hpp"
#include "flashlight/runtime/lanes.hpp"
#include "flashlight/runtime/microkernel.hpp"

#if defined(FLASHLIGHT_MATRIX_REGISTERS)  // a header with other registers
#define FLASHLIGHT_HAS_MATRIX_UNIT 1
#include FLASHLIGHT_MATRIX_REGISTERS
#elif defined(__AMX_TILE__) && defined(__AMX_BF16__) && defined(__AMX_INT8__) && \
    defined(__AVX512F__) && defined(__linux__)
#define FLASHLIGHT_HAS_MATRIX_UNIT 1
#include "flashlight/runtime/amx.hpp"
#else
#define FLASHLIGHT_HAS_MATRIX_UNIT 0
#endif

namespace fl::detail {

// Rows of a tile that the unit computes, and of a register.
constexpr int kUnitRows = 32, kRegisterRows = 16;
// Words of a step: what a line of a register has.
constexpr int kStepWords = kLineBytes / 4;

#if FLASHLIGHT_HAS_MATRIX_UNIT

// What a tile is made of. Segments have `words` words, in whole steps unless there is one segment.
struct UnitTile {
  const char* rows;
  int64_t pitch;           // from row to row, in bytes
  const int32_t* offsets;  // of segments, in units of `offset_bytes`
  int offset_bytes;
  int segments, words;
  const char* panel;  // [word][32 columns][4 bytes]
  const void* ahead = nullptr;
  int64_t ahead_lines = 0;
};

class MatrixUnit {
 public:
  using Registers = MatrixRegisters;
  // False where the system refuses, or rows are so few that vectors are as fast.
  static bool is_useful(int64_t rows) {
    static const bool is_allowed = Registers::allow();
    return rows >= kFewRows && is_allowed;
  }
  MatrixUnit() = default;
  MatrixUnit(const MatrixUnit&) = delete;
  MatrixUnit& operator=(const MatrixUnit&) = delete;
  // Else every switch of threads would save the registers.
  ~MatrixUnit() {
    if (shape_ != 0) Registers::release();
  }

  // sums[r][c] = first[c] + the sum of products of row r and column c, as `multiply_tile` has it;
  // without `first`, from 0 on. `rows`: 1 to kUnitRows; `halves` of the columns: 1 or 2.
  template <class T>
  void multiply(int rows, int halves, const UnitTile& of, const T* first, T (*sums)[kPanel<T>]) {
    static_assert(kPanel<T> * sizeof(T) == 2 * kLineBytes);
    take_shape(rows);
    const bool is_high = rows > kRegisterRows;
    if (is_high)
      halves == 2 ? run<T, true, 2>(of, first, sums) : run<T, true, 1>(of, first, sums);
    else
      halves == 2 ? run<T, false, 2>(of, first, sums) : run<T, false, 1>(of, first, sums);
  }

 private:
  static constexpr int64_t kFewRows = 4;
  static constexpr int kPitch = 2 * kLineBytes, kStepBytes = kStepWords * kPitch;
  // Registers: four of sums, two of rows, two of columns.
  static constexpr int kRows = 4, kColumns = 6;

  void take_shape(int rows) {
    if (shape_ == rows) return;
    shape_ = rows;
    const int below = rows > kRegisterRows ? (rows + 1) / 2 : rows;
    upper_ = below;
    Registers::configure(below, rows > kRegisterRows ? rows - below : rows);
  }

  // kHigh: sums are [upper, lower rows][half]. Else [step % 2][half], of the same rows.
  template <class T, bool kHigh, int kHalves>
  [[gnu::noinline]] void run(const UnitTile& of, const T* first, T (*sums)[kPanel<T>]) {
    alignas(kLineBytes) char tail[kStepBytes];
    // Copies, as instructions might write anywhere for all that compilers know.
    const int segments = of.segments, words = of.words, whole = words / kStepWords;
    const int64_t pitch = of.pitch, lower = upper_ * pitch;
    const char* panel = of.panel;
    Ahead ahead(of.ahead, of.ahead_lines, int64_t{segments} * words);
    start<T, kHigh, kHalves>(first);
    int room = kMostSteps;
    bool add = false;
    for (int s = 0; s < segments; ++s) {
      const char* rows = of.rows + int64_t{of.offsets[s]} * of.offset_bytes;
      for (int left = whole; left > 0;) {
        const int count = std::min({left, room, kFetched});
        ahead.pass(count * kStepWords);
        steps<T, kHigh, kHalves>(count, rows, pitch, lower, panel);
        rows += count * kLineBytes, panel += count * kStepBytes;
        left -= count, room -= count;
        if (room == 0 && (left > 0 || s + 1 < segments || words % kStepWords != 0)) {
          finish<T, kHigh, kHalves>(sums, add);
          start<T, kHigh, kHalves>(nullptr);
          add = true, room = kMostSteps;
        }
      }
      if (words % kStepWords != 0) {
        const char* const columns = filled_up(panel, words % kStepWords, tail);
        steps<T, kHigh, kHalves>(1, rows, pitch, lower, columns);
      }
    }
    finish<T, kHigh, kHalves>(sums, add);
  }
  // Steps between which memory ahead is fetched.
  static constexpr int kFetched = 4;

  template <class T, bool kHigh, int kHalves>
  FLASHLIGHT_INLINE void steps(int count, const char* rows, int64_t pitch, int64_t lower,
                               const char* panel) {
    if constexpr (kHigh) {
      for (; count > 0; --count, rows += kLineBytes, panel += kStepBytes)
        step_of_two<T, kHalves>(rows, pitch, lower, panel);
    } else {
      for (; count > 1; count -= 2, rows += 2 * kLineBytes, panel += 2 * kStepBytes) {
        step_of_one<T, kHalves, 0>(rows, pitch, panel);
        step_of_one<T, kHalves, 1>(rows + kLineBytes, pitch, panel + kStepBytes);
      }
      if (count > 0) step_of_one<T, kHalves, 0>(rows, pitch, panel);
    }
  }
  // As many terms as other tiles sum up before they add.
  static constexpr int kMostSteps = kTermsInARow / kStepWords;

  // Words beyond the last ones are 0, as what lies behind them may be no number.
  static const char* filled_up(const char* panel, int words, char (&to)[kStepBytes]) {
    std::memcpy(to, panel, static_cast<std::size_t>(words) * kPitch);
    std::memset(to + words * kPitch, 0, static_cast<std::size_t>(kStepWords - words) * kPitch);
    return to;
  }

  template <class T, bool kHigh, int kHalves>
  FLASHLIGHT_INLINE static void start(const T* first) {
    if (first != nullptr) {  // every row begins with the same numbers
      Registers::load<0>(first, 0);
      if (kHalves == 2) Registers::load<1>(first + kPanel<T> / 2, 0);
    } else {
      Registers::zero<0>();
      if (kHalves == 2) Registers::zero<1>();
    }
    if (kHigh && first != nullptr) {
      Registers::load<2>(first, 0);
      if (kHalves == 2) Registers::load<3>(first + kPanel<T> / 2, 0);
    } else {
      Registers::zero<2>();
      if (kHalves == 2) Registers::zero<3>();
    }
  }

  template <class T, int kHalves>
  FLASHLIGHT_INLINE static void step_of_two(const char* rows, int64_t pitch, int64_t lower,
                                            const char* columns) {
    Registers::load<kColumns>(columns, kPitch);
    Registers::load<kRows>(rows, pitch);
    Registers::multiply<T, 0, kRows, kColumns>();
    if (kHalves == 2) {
      Registers::load<kColumns + 1>(columns + kLineBytes, kPitch);
      Registers::multiply<T, 1, kRows, kColumns + 1>();
    }
    Registers::load<kRows + 1>(rows + lower, pitch);
    Registers::multiply<T, 2, kRows + 1, kColumns>();
    if (kHalves == 2) Registers::multiply<T, 3, kRows + 1, kColumns + 1>();
  }
  template <class T, int kHalves, int kOdd>
  FLASHLIGHT_INLINE static void step_of_one(const char* rows, int64_t pitch,
                                            const char* columns) {
    Registers::load<kColumns>(columns, kPitch);
    Registers::load<kRows + kOdd>(rows, pitch);
    Registers::multiply<T, 2 * kOdd, kRows + kOdd, kColumns>();
    if (kHalves == 2) {
      Registers::load<kColumns + 1>(columns + kLineBytes, kPitch);
      Registers::multiply<T, 2 * kOdd + 1, kRows + kOdd, kColumns + 1>();
    }
  }

  template <class T, bool kHigh, int kHalves>
  void finish(T (*sums)[kPanel<T>], bool add) const {
    if (kHigh && !add) {
      store<T, 0, kHalves>(sums);
      store<T, 2, kHalves>(sums + upper_);
      return;
    }
    alignas(kLineBytes) T more[kUnitRows][kPanel<T>];
    store<T, 2, kHalves>(more + upper_);
    if (add) {
      store<T, 0, kHalves>(more);
      add_rows<T, kHalves>(more, kHigh ? shape_ : upper_, sums);
    } else {
      store<T, 0, kHalves>(sums);
    }
    if (!kHigh) add_rows<T, kHalves>(more + upper_, upper_, sums);
  }
  template <class T, int kFirst, int kHalves>
  FLASHLIGHT_INLINE static void store(T (*to)[kPanel<T>]) {
    Registers::store<kFirst>(to[0], kPitch);
    if (kHalves == 2) Registers::store<kFirst + 1>(to[0] + kPanel<T> / 2, kPitch);
  }
  template <class T, int kHalves>
  FLASHLIGHT_INLINE static void add_rows(const T (*from)[kPanel<T>], int rows,
                                         T (*to)[kPanel<T>]) {
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < kHalves * kPanel<T> / 2; ++c) to[r][c] += from[r][c];
  }

  int shape_ = 0;  // rows that the registers are configured for
  int upper_ = 0;  // those of the first register
};

#else

// There is none.
class MatrixUnit {
 public:
  static constexpr bool is_useful(int64_t) { return false; }
};

#endif

}  // namespace fl::detail
