// Independent pieces of planning in threads: a plan for new sizes is made while somebody waits.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace flashlight::mosaic {

// Calls `work` with 0 … count - 1, each once, in any order. Throws what the first of these throws.
template <class Work>
void side_by_side(std::size_t count, const Work& work) {
  constexpr std::size_t kFew = 16, kMostThreads = 8;
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency()),
                    threads = count < kFew ? 1 : std::min(cores, kMostThreads);
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::map<std::size_t, std::exception_ptr> errors;
  const auto take = [&] {
    for (std::size_t i; (i = next++) < count;) try {
        work(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        errors.emplace(i, std::current_exception());
      }
  };
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < threads; ++i) others.emplace_back(take);
  take();
  for (std::thread& other : others) other.join();
  if (!errors.empty()) std::rethrow_exception(errors.begin()->second);
}

}  // namespace flashlight::mosaic
