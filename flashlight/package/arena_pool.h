// Memory for temporaries of calls, which may run at the same time.
//
//   ArenaPool::Loan arena = pool.take(bytes);   // given back at the end of its life
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
  class Loan {
   public:
    Loan(const ArenaPool& pool, std::size_t bytes) : pool_(pool), arena_(pool.pop(bytes)) {}
    ~Loan() { pool_.push(std::move(arena_)); }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    std::byte* get() const { return arena_.memory.get(); }

   private:
    friend class ArenaPool;
    struct Arena {
      fl::Memory memory;
      std::size_t bytes = 0;
    };
    const ArenaPool& pool_;
    Arena arena_;
  };
  // At least so many bytes.
  Loan take(std::size_t bytes) const { return Loan(*this, bytes); }

 private:
  using Arena = Loan::Arena;
  // One that is too small makes room for one that is not.
  Arena pop(std::size_t bytes) const {
    {
      const std::lock_guard lock(mutex_);
      if (!arenas_.empty()) {
        Arena arena = std::move(arenas_.back());
        arenas_.pop_back();
        if (arena.bytes >= bytes) return arena;
      }
    }
    return {fl::allocate(bytes), bytes};
  }
  void push(Arena arena) const {
    const std::lock_guard lock(mutex_);
    arenas_.push_back(std::move(arena));
  }

  mutable std::mutex mutex_;
  mutable std::vector<Arena> arenas_;
};

}  // namespace flashlight::package
