// Independent pieces of work in threads.
//
//   std::vector<size_t> squares(100);
//   side_by_side(squares.size(), [&](size_t i) { squares[i] = i * i; });
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace composit {

// True in a thread that does a piece of work beside others.
inline thread_local bool is_beside_others = false;

// Calls `work` with 0 … count - 1, each once, in any order; one after the other where they are
// less than `few`, for a thread costs more than such a piece, and within a piece of other work.
// Throws what the first of these throws.
template <class Work>
void side_by_side(std::size_t count, const Work& work, std::size_t few = 16) {
  constexpr std::size_t kMostThreads = 8;
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency()),
                    threads = count < few || is_beside_others
                                  ? 1
                                  : std::min({cores, kMostThreads, count});
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::map<std::size_t, std::exception_ptr> errors;
  const auto take = [&] {
    const bool before = std::exchange(is_beside_others, is_beside_others || threads > 1);
    for (std::size_t i; (i = next++) < count;) try {
        work(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        errors.emplace(i, std::current_exception());
      }
    is_beside_others = before;
  };
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < threads; ++i) others.emplace_back(take);
  take();
  for (std::thread& other : others) other.join();
  if (!errors.empty()) std::rethrow_exception(errors.begin()->second);
}

}  // namespace composit
