// Memory for what a thread computes for itself.
//
//   std::byte* memory = own_memory(40000);
#pragma once

#include <cstddef>
#include <cstdint>

#include "flashlight/runtime/lanes.hpp"

namespace fl {

// So many bytes, the same ones in each call; the thread keeps them.
inline std::byte* own_memory(int64_t bytes) {
  constexpr auto kItem = static_cast<int64_t>(sizeof(float));
  return reinterpret_cast<std::byte*>(
      detail::aligned_scratch<float, 9>((bytes + kItem - 1) / kItem));
}

}  // namespace fl
