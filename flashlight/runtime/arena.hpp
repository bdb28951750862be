// Memory for temporaries and packed weights: aligned as vectors want it, and in large pages where
// it is large and the system has them. Panels pass by too fast for tables of small ones.
//
//   const fl::Memory arena = fl::allocate(kArenaBytes);
//
// A program whose sizes are data takes memory from a stack:
//
//   fl::Frame frame(memory);                             // until the end of the function
//   float (*const hidden)[768] = frame.take<float[768]>(tokens);
//   const fl::View<float, 2> scores = frame.view<float>(tokens, tokens);
//   scores[i][j] = 0;
#pragma once

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

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

// Gives the system the pages that lie in these bytes of allocated memory; what they had is lost.
inline void give_back([[maybe_unused]] std::byte* from, [[maybe_unused]] std::int64_t bytes) {
#if defined(__linux__)
  constexpr std::uintptr_t kPage = 4096;
  const auto first = (reinterpret_cast<std::uintptr_t>(from) + kPage - 1) / kPage * kPage,
             last = reinterpret_cast<std::uintptr_t>(from + bytes) / kPage * kPage;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
#endif
}

// A row-major array of which other sizes than the first are data: view[i][j].
template <class T, int kRank>
struct View {
  static_assert(kRank >= 2);
  T* data;
  int sizes[kRank];

  auto operator[](std::int64_t index) const {
    if constexpr (kRank == 2) {
      return data + index * sizes[1];
    } else {
      View<T, kRank - 1> part{data, {}};
      std::int64_t elements = 1;
      for (int i = 1; i < kRank; ++i) elements *= part.sizes[i - 1] = sizes[i];
      part.data += index * elements;
      return part;
    }
  }
  operator View<const T, kRank>() const {  // NOLINT
    View<const T, kRank> same{data, {}};
    for (int i = 0; i < kRank; ++i) same.sizes[i] = sizes[i];
    return same;
  }
};
template <class T, class... Sizes>
View<T, sizeof...(Sizes)> view(T* data, Sizes... sizes) {
  return {data, {sizes...}};
}

// Memory that is given back in the reverse order in which it was taken. What was taken once is kept
// for the next time, in one block.
class Stack {
 public:
  std::byte* take(std::size_t bytes) {
    bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    while (block_ < blocks_.size() && used_ + bytes > blocks_[block_].bytes) {
      // A block behind it is free: if it is too small, it makes way.
      if (++block_ < blocks_.size() && blocks_[block_].bytes < bytes) blocks_.resize(block_);
      used_ = 0;
    }
    if (block_ == blocks_.size()) add(bytes);
    std::byte* const memory = blocks_[block_].memory.get() + used_;
    used_ += bytes;
    return memory;
  }

 private:
  friend class Frame;
  static constexpr std::size_t kAlignment = 64, kLeast = std::size_t{1} << 16;
  struct Block {
    Memory memory;
    std::size_t bytes;
  };

  void add(std::size_t bytes) {
    const std::size_t size = std::max({bytes, total(), kLeast});
    blocks_.push_back({allocate(size), size});
    used_ = 0;
  }
  std::size_t total() const {
    std::size_t all = 0;
    for (const Block& block : blocks_) all += block.bytes;
    return all;
  }
  void give_back(std::size_t block, std::size_t used) {
    block_ = block;
    used_ = used;
    if (block_ > 0 || used_ > 0 || blocks_.size() < 2) return;
    const std::size_t all = total();
    blocks_.clear();
    add(all);
  }

  std::vector<Block> blocks_;
  std::size_t block_ = 0, used_ = 0;  // blocks before that one are full
};

// What a function takes of a stack, until the end of the scope.
class Frame {
 public:
  explicit Frame(Stack& stack) : stack_(stack), block_(stack.block_), used_(stack.used_) {}
  ~Frame() { stack_.give_back(block_, used_); }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  // So many elements, which are not initialised. `T` may be an array.
  template <class T>
  T* take(std::int64_t count) {
    return reinterpret_cast<T*>(stack_.take(static_cast<std::size_t>(count) * sizeof(T)));
  }
  template <class T, class... Sizes>
  View<T, sizeof...(Sizes)> view(Sizes... sizes) {
    return fl::view(take<T>((std::int64_t{1} * ... * sizes)), sizes...);
  }

 private:
  Stack& stack_;
  std::size_t block_, used_;
};

}  // namespace fl
