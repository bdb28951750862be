// What generated code needs beside the standard library. C++17, with the vectors of g++ and
// clang++; nothing here allocates but fl::product, which keeps memory for packing per thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "flashlight/runtime/numbers.hpp"
#include "flashlight/runtime/product.hpp"
#include "flashlight/runtime/sums.hpp"

namespace fl {

// How far results may be from those of the same computation in another order, in units of the
// largest one.
template <class T>
constexpr double kTolerance = 0;
template <>
inline constexpr double kTolerance<float16> = 1e-2;
template <>
inline constexpr double kTolerance<bfloat16> = 5e-2;
template <>
inline constexpr double kTolerance<float> = 1e-4;
template <>
inline constexpr double kTolerance<double> = 1e-10;
template <class T>
inline constexpr double kTolerance<std::complex<T>> = kTolerance<T>;

// The array at `offset` bytes in an arena.
template <class Array>
Array& at(std::byte* arena, std::ptrdiff_t offset) {
  return *reinterpret_cast<Array*>(arena + offset);
}
template <class Array>
const Array& at(const std::byte* arena, std::ptrdiff_t offset) {
  return *reinterpret_cast<const Array*>(arena + offset);
}

// The elements of `array` as another array of as many.
template <class Array, class From>
Array& as(From& array) {
  return *reinterpret_cast<Array*>(&array);
}
template <class Array, class From>
Array& as(From* first) {
  return *reinterpret_cast<Array*>(first);
}

namespace detail {
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse(int64_t index, int64_t size) {
  throw std::out_of_range("index " + std::to_string(index) + " is out of range for size " +
                          std::to_string(size));
}
}  // namespace detail

// An index that was read from data; a negative one counts from the end no more.
FLASHLIGHT_INLINE int64_t checked(int64_t index, int64_t size) {
  if (index < 0 || index >= size) detail::refuse(index, size);
  return index;
}
// The same where a negative one does.
FLASHLIGHT_INLINE int64_t wrapped(int64_t index, int64_t size) {
  return checked(index < 0 ? index + size : index, size);
}

// Element `index` of memory that holds arrays one after the other.
template <class Array, class From>
Array& slot(From& arrays, int64_t index) {
  return reinterpret_cast<Array*>(&arrays)[index];
}
template <class Array, class From>
Array& slot(const From* first, int64_t index) {
  return reinterpret_cast<Array*>(first)[index];
}

// The text of an error, kept until this thread's next one.
inline const char* keep_message(const char* text) {
  static thread_local std::string message;
  message = text;
  return message.c_str();
}

}  // namespace fl
