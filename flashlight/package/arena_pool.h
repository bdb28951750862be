// Memory for temporaries of calls, which may run at the same time.
//
//   ArenaPool::Loan arena = pool.take();        // given back at the end of its life
//   run(arena.get());
#pragma once

#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

#include "flashlight/runtime/arena.hpp"

namespace flashlight::package {

// Keeps the arenas that no call uses.
class ArenaPool {
 public:
  explicit ArenaPool(std::size_t bytes) : bytes_(bytes) {}

  class Loan {
   public:
    explicit Loan(const ArenaPool& pool) : pool_(pool), arena_(pool.pop()) {}
    ~Loan() { pool_.push(std::move(arena_)); }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    std::byte* get() const { return arena_.get(); }

   private:
    const ArenaPool& pool_;
    fl::Memory arena_;
  };
  Loan take() const { return Loan(*this); }

 private:
  fl::Memory pop() const {
    const std::lock_guard lock(mutex_);
    if (arenas_.empty()) return fl::allocate(bytes_);
    fl::Memory arena = std::move(arenas_.back());
    arenas_.pop_back();
    return arena;
  }
  void push(fl::Memory arena) const {
    const std::lock_guard lock(mutex_);
    arenas_.push_back(std::move(arena));
  }

  std::size_t bytes_;
  mutable std::mutex mutex_;
  mutable std::vector<fl::Memory> arenas_;
};

}  // namespace flashlight::package
