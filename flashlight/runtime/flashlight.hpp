// The part of the runtime that all generated code needs beside the standard library. C++17, with
// the vectors of g++ and clang++. Nothing here allocates but fl::product, which keeps memory for
// packing per thread.
#pragma once

#include <cstddef>
#include <string>

#include "composit/shipped/checked_index.h"
#include "flashlight/runtime/numbers.hpp"
#include "flashlight/runtime/product.hpp"
#include "flashlight/runtime/sums.hpp"

namespace fl {

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
