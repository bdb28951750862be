#include "benchmarks/mosaic/machine.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "flashlight/runtime/peak.hpp"

namespace benchmarks {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Runs `work(thread)` on so many threads, and gives the sum of what it returns.
double sum_over_threads(int threads, const std::function<double(int)>& work) {
  std::vector<double> results(static_cast<size_t>(threads));
  std::atomic<int> missing{threads};
  const auto body = [&](int thread) {
    missing.fetch_sub(1);
    while (missing.load() > 0) {
    }
    results[static_cast<size_t>(thread)] = work(thread);
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(body, i);
  body(0);
  for (std::thread& other : others) other.join();
  double sum = 0;
  for (const double result : results) sum += result;
  return sum;
}

// The best of a few in a row: the clock of a core that was idle rises first, and threads that wait
// for a core measure nothing.
template <class Better, class Measure>
double best_of(int count, Better better, const Measure& measure) {
  double best = measure();
  for (int i = 1; i < count; ++i) best = better(best, measure());
  return best;
}
double larger(double a, double b) { return std::max(a, b); }
double smaller(double a, double b) { return std::min(a, b); }

double copy_rate(char* to, const char* from, size_t bytes) {
  const double begin = now();
  std::memcpy(to, from, bytes);
  return 2 * static_cast<double>(bytes) / (now() - begin) * 1e-9;
}

// One way, of two threads that answer each other; for a moment, since threads that have to share a
// core answer late.
double ping_pong() {
  constexpr double kMoment = 100e-6;
  constexpr int kLeave = -1;
  alignas(64) std::atomic<int> ping{0};
  alignas(64) std::atomic<int> pong{0};
  return sum_over_threads(2, [&](int thread) {
    if (thread == 1) {
      for (int seen = 0; seen != kLeave; seen = ping.load(std::memory_order_acquire))
        pong.store(seen, std::memory_order_release);
      return 0.0;
    }
    const double begin = now();
    int round = 0;
    double elapsed = 0;
    for (; elapsed < kMoment; elapsed = now() - begin)
      for (int end = round + 50; round < end;) {
        ping.store(++round, std::memory_order_release);
        while (pong.load(std::memory_order_acquire) < round) {
        }
      }
    ping.store(kLeave);
    return elapsed / (2 * round) * 1e9;
  });
}

}  // namespace

Machine look_at_machine(int threads) {
  constexpr size_t kBytes = size_t{64} << 20;
  static const std::unique_ptr<char[]> from(new char[kBytes]()), to(new char[kBytes]());
  const size_t part = kBytes / static_cast<size_t>(threads);
  Machine machine{};
  machine.fma = sum_over_threads(
      threads, [](int) { return best_of(5, larger, fl::detail::multiply_add_rate); });
  machine.copy = sum_over_threads(threads, [&](int thread) {
    const size_t begin = part * static_cast<size_t>(thread);
    return best_of(3, larger,
                   [&] { return copy_rate(to.get() + begin, from.get() + begin, part); });
  });
  machine.ping_pong = std::thread::hardware_concurrency() > 1 ? best_of(10, smaller, ping_pong) : 0;
  return machine;
}

}  // namespace benchmarks
