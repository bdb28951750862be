// The registers of Intel's AMX, by its instructions: their intrinsic functions' header takes long to
// read.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <type_traits>

#include "composit/shipped/half_types.h"

namespace fl::detail {

struct MatrixRegisters {
  // Asks the system, which keeps room for the registers of every thread from then on.
  static bool allow() {
    constexpr long kRequest = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
  }

  // Lines of the registers 0, 1, 4 (`upper`), and 2, 3, 5 (`lower`); 6 and 7 have 16.
  static void configure(int upper, int lower) {
    struct alignas(64) {
      uint8_t palette = 1, start_line = 0, reserved[14] = {};
      uint16_t line_bytes[16] = {};
      uint8_t lines[16] = {};
    } all;
    for (int i = 0; i < 8; ++i) all.line_bytes[i] = 64;
    for (const int i : {0, 1, 4}) all.lines[i] = static_cast<uint8_t>(upper);
    for (const int i : {2, 3, 5}) all.lines[i] = static_cast<uint8_t>(lower);
    for (const int i : {6, 7}) all.lines[i] = 16;
    asm volatile("ldtilecfg %0" : : "m"(all));
  }
  static void release() { asm volatile("tilerelease"); }

  template <int kTo>
  FLASHLIGHT_INLINE static void zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(kTo));
  }
  // Lines that are `pitch` bytes apart.
  template <int kTo>
  FLASHLIGHT_INLINE static void load(const void* from, int64_t pitch) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(pitch), "i"(kTo) : "memory");
  }
  template <int kFrom>
  FLASHLIGHT_INLINE static void store(void* to, int64_t pitch) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(pitch), "i"(kFrom) : "memory");
  }
  // Sums of T: of float, pairs of bfloat16; of int32, uint8 times int8.
  template <class T, int kSum, int kRows, int kColumns>
  FLASHLIGHT_INLINE static void multiply() {
    if constexpr (std::is_same_v<T, float>)
      asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kRows), "i"(kColumns));
    else
      asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kRows), "i"(kColumns));
  }
};

}  // namespace fl::detail
