// Registers of a unit for matrices that are loops, so that every machine runs the text around them.
// A line that is not configured is written by nobody, and reading it is an error.
#pragma once

#include <cassert>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "composit/shipped/half_types.h"

namespace fl::detail {

struct MatrixRegisters {
  static bool allow() { return true; }

  static void configure(int upper, int lower) {
    assert(upper >= 1 && upper <= 16 && lower >= 1 && lower <= 16);
    for (const int i : {0, 1, 4}) lines(i) = upper;
    for (const int i : {2, 3, 5}) lines(i) = lower;
    for (const int i : {6, 7}) lines(i) = 16;
    // What was there is gone.
    for (int i = 0; i < 8; ++i) std::memset(line(i, 0), 0xff, 1024);
  }
  static void release() {
    for (int i = 0; i < 8; ++i) lines(i) = 0;
  }

  template <int kTo>
  static void zero() {
    for (int l = 0; l < known_lines(kTo); ++l) std::memset(line(kTo, l), 0, 64);
  }
  template <int kTo>
  static void load(const void* from, int64_t pitch) {
    for (int l = 0; l < known_lines(kTo); ++l)
      std::memcpy(line(kTo, l), static_cast<const char*>(from) + l * pitch, 64);
  }
  template <int kFrom>
  static void store(void* to, int64_t pitch) {
    for (int l = 0; l < known_lines(kFrom); ++l)
      std::memcpy(static_cast<char*>(to) + l * pitch, line(kFrom, l), 64);
  }

  template <class T, int kSum, int kRows, int kColumns>
  static void multiply() {
    assert(known_lines(kSum) == known_lines(kRows) && known_lines(kColumns) == 16);
    for (int l = 0; l < known_lines(kSum); ++l)
      for (int c = 0; c < 16; ++c) {
        T sum;
        std::memcpy(&sum, line(kSum, l) + 4 * c, 4);
        for (int k = 0; k < 16; ++k)
          sum = add<T>(sum, line(kRows, l) + 4 * k, line(kColumns, k) + 4 * c);
        std::memcpy(line(kSum, l) + 4 * c, &sum, 4);
      }
  }

 private:
  template <class T>
  static T add(T sum, const unsigned char* row, const unsigned char* column) {
    if constexpr (std::is_same_v<T, float>) {
      bfloat16 left[2], right[2];
      std::memcpy(static_cast<void*>(left), row, 4);
      std::memcpy(static_cast<void*>(right), column, 4);
      for (int i = 0; i < 2; ++i) sum += static_cast<float>(left[i]) * static_cast<float>(right[i]);
    } else {
      for (int i = 0; i < 4; ++i) sum += row[i] * static_cast<int8_t>(column[i]);
    }
    return sum;
  }
  static int& lines(int number) {
    static thread_local int all[8] = {};
    return all[number];
  }
  static int known_lines(int number) {
    assert(lines(number) > 0);
    return lines(number);
  }
  static unsigned char* line(int number, int l) {
    static thread_local unsigned char all[8][16][64];
    return all[number][l];
  }
};

}  // namespace fl::detail
