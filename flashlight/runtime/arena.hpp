// Memory for temporaries and packed weights: aligned as vectors want it, and in large pages where
// it is large and the system has them. Panels pass by too fast for tables of small ones.
//
//   const fl::Memory arena = fl::allocate(kArenaBytes);
#pragma once

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <cstddef>
#include <memory>
#include <new>

namespace fl {

namespace detail {

constexpr std::size_t kLargePage = std::size_t{1} << 21;

inline std::align_val_t alignment_for(std::size_t bytes) {
  return std::align_val_t{bytes < kLargePage ? std::size_t{64} : kLargePage};
}

struct FreeMemory {
  std::align_val_t alignment;
  void operator()(std::byte* memory) const { ::operator delete(memory, alignment); }
};

}  // namespace detail

using Memory = std::unique_ptr<std::byte[], detail::FreeMemory>;

inline Memory allocate(std::size_t bytes) {
  const std::align_val_t alignment = detail::alignment_for(bytes);
  auto* const memory = static_cast<std::byte*>(::operator new(bytes, alignment));
#if defined(__linux__)
  if (bytes >= detail::kLargePage) ::madvise(memory, bytes, MADV_HUGEPAGE);
#endif
  return {memory, detail::FreeMemory{alignment}};
}

}  // namespace fl
