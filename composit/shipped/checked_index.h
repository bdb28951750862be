// Indices that were read from data.
//
//   y = x[fl::checked(i, 3)];   y = x[fl::wrapped(-1, 3)];   // x[2]; std::out_of_range for others
#pragma once

#include <stdexcept>
#include <string>

#include "composit/shipped/number_types.h"

namespace fl {

namespace detail {
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse(int64_t index, int64_t size) {
  throw std::out_of_range("index " + std::to_string(index) + " is out of range for size " +
                          std::to_string(size));
}
}  // namespace detail

// A negative index counts from the end no more.
FLASHLIGHT_INLINE int64_t checked(int64_t index, int64_t size) {
  if (index < 0 || index >= size) detail::refuse(index, size);
  return index;
}
// A negative index counts from the end.
FLASHLIGHT_INLINE int64_t wrapped(int64_t index, int64_t size) {
  return checked(index < 0 ? index + size : index, size);
}

}  // namespace fl
