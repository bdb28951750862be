// Threads that work on one function together, and wait for each other in it.
//
//   run_team(2, [&](const Team& team) {
//     const Part rows = team.part(128);
//     first(rows.begin, rows.end);
//     team.wait();                  // until all have come here
//     second(rows.begin, rows.end);
//   });
//
// The caller is thread 0. The others belong to the calling thread, are started when they are needed
// for the first time, and wait for the next call: awake for a moment, then asleep. So two threads
// may call at the same time, and a function that runs in a team may have a team of its own.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace fl {

// A part of a number of items: those from `begin` up to `end`.
struct Part {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

namespace detail {

constexpr std::size_t kLine = 64;  // bytes that cores exchange

// A thread of the team has thrown, and this one leaves, too.
struct Abandoned {};

inline void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Asked once: the system reads a file to answer.
inline int cores() {
  static const int count = static_cast<int>(std::thread::hardware_concurrency());
  return count;
}

// Waits in a loop: briefly on the core, then leaving it to others.
class Patience {
 public:
  explicit Patience(bool scarce) : left_(scarce ? 0 : 2000) {}
  void wait() {
    if (left_ == 0) return std::this_thread::yield();
    --left_;
    pause();
  }

 private:
  int left_;
};

// The barrier of a team's threads.
class Meeting {
 public:
  explicit Meeting(int threads) : threads_(threads), scarce_(threads > cores()) {}

  void wait() {
    const unsigned phase = phase_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
      arrived_.store(0, std::memory_order_relaxed);
      phase_.store(phase + 1, std::memory_order_release);
      return;
    }
    Patience patience(scarce_);
    while (phase_.load(std::memory_order_acquire) == phase) {
      if (abandoned_.load(std::memory_order_relaxed)) throw Abandoned{};
      patience.wait();
    }
  }
  // True for the first thread that leaves.
  bool abandon() { return !abandoned_.exchange(true, std::memory_order_relaxed); }
  bool scarce() const { return scarce_; }

 private:
  const int threads_;
  const bool scarce_;  // more threads than cores
  alignas(kLine) std::atomic<int> arrived_{0};
  alignas(kLine) std::atomic<unsigned> phase_{0};
  std::atomic<bool> abandoned_{false};
};

}  // namespace detail

// A thread's view of its team.
class Team {
 public:
  Team(int thread, int threads, detail::Meeting* meeting)
      : thread_(thread), threads_(threads), meeting_(meeting) {}

  int thread() const { return thread_; }
  int threads() const { return threads_; }

  // Returns when every thread of the team has called it; what they wrote before is seen then. Not
  // inlined, like `part`: programs have many calls, which would take long to compile.
  [[gnu::noinline]] void wait() const {
    if (threads_ > 1) meeting_->wait();
  }
  // This thread's share of `count` things, equal to the others' up to one.
  [[gnu::noinline]] Part part(int64_t count) const {
    return {count * thread_ / threads_, count * (thread_ + 1) / threads_};
  }
  // This thread alone, for what is called by one thread of a team.
  static Team solo() { return {0, 1, nullptr}; }

 private:
  int thread_, threads_;
  detail::Meeting* meeting_;
};

namespace detail {

// One call of run_team.
class Job {
 public:
  using Call = void (*)(void* function, const Team& team);
  Job(int threads, Call call, void* function)
      : threads_(threads),
        call_(call),
        function_(function),
        meeting_(threads),
        running_(threads - 1) {}

  // Does the part of a thread.
  void take_part(int thread) noexcept {
    try {
      call_(function_, Team(thread, threads_, &meeting_));
    } catch (const Abandoned&) {
    } catch (...) {
      if (meeting_.abandon()) error_ = std::current_exception();
    }
    // A worker that has counted itself out does not touch this any more: it may be gone.
    if (thread > 0) running_.fetch_sub(1, std::memory_order_release);
  }
  void await_workers() {
    Patience patience(meeting_.scarce());
    while (running_.load(std::memory_order_acquire) > 0) patience.wait();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  const int threads_;
  const Call call_;
  void* const function_;
  Meeting meeting_;
  std::exception_ptr error_;
  alignas(kLine) std::atomic<int> running_;
};

// A thread that takes part in jobs.
class Worker {
 public:
  explicit Worker(int number) : number_(number), thread_([this] { work(); }) {}
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() {
    leave_.store(true, std::memory_order_relaxed);
    give(nullptr);
    thread_.join();
  }

  // The last one must be done.
  void give(Job* job) {
    job_ = job;
    given_.store(true);
    if (!asleep_.load()) return;
    // Either the worker has seen the job, or it is where it hears of it.
    { const std::lock_guard<std::mutex> lock(mutex_); }
    bell_.notify_one();
  }

 private:
  static constexpr std::chrono::microseconds kAwake{50};

  void work() {
    for (;;) {
      await_job();
      if (leave_.load(std::memory_order_relaxed)) return;
      given_.store(false, std::memory_order_relaxed);
      job_->take_part(number_);
    }
  }

  void await_job() {
    const auto end = std::chrono::steady_clock::now() + kAwake;
    do {
      for (int i = 0; i < 32; ++i) {
        if (given_.load(std::memory_order_acquire)) return;
        pause();
      }
    } while (std::chrono::steady_clock::now() < end);
    std::unique_lock<std::mutex> lock(mutex_);
    asleep_.store(true);
    bell_.wait(lock, [this] { return given_.load(); });
    asleep_.store(false, std::memory_order_relaxed);
  }

  const int number_;
  Job* job_ = nullptr;
  // Each side writes one of these two and then reads the other one: sequentially consistent.
  alignas(kLine) std::atomic<bool> given_{false};
  std::atomic<bool> asleep_{false};
  std::atomic<bool> leave_{false};
  std::mutex mutex_;
  std::condition_variable bell_;
  std::thread thread_;  // last: it uses the others
};

// The workers of a thread, for calls within calls: one group for each depth. Hidden, since another
// library in the process may have been built of another version of this.
class [[gnu::visibility("hidden")]] Workers {
 public:
  static void run(int threads, Job::Call call, void* function) {
    static thread_local Workers mine;
    mine.call(threads, call, function);
  }

 private:
  using Group = std::vector<std::unique_ptr<Worker>>;

  void call(int threads, Job::Call call, void* function) {
    const Within within(depth_);
    if (groups_.size() < depth_) groups_.emplace_back();
    const std::size_t group = depth_ - 1, count = static_cast<std::size_t>(threads) - 1;
    while (groups_[group].size() < count)
      groups_[group].push_back(
          std::make_unique<Worker>(static_cast<int>(groups_[group].size()) + 1));
    Job job(threads, call, function);
    for (std::size_t i = 0; i < count; ++i) groups_[group][i]->give(&job);
    job.take_part(0);
    job.await_workers();
  }

  struct Within {
    explicit Within(std::size_t& of) : depth(of) { ++depth; }
    Within(const Within&) = delete;
    Within& operator=(const Within&) = delete;
    ~Within() { --depth; }
    std::size_t& depth;
  };

  std::vector<Group> groups_;
  std::size_t depth_ = 0;
};

}  // namespace detail

// Calls `f` on this number of threads. When one of them throws, those that wait for it leave, and
// the exception is thrown here after all have left; of several, the first.
template <class F>
void run_team(int threads, F f) {
  if (threads <= 1) return f(Team::solo());
  detail::Workers::run(
      threads, [](void* function, const Team& team) { (*static_cast<F*>(function))(team); }, &f);
}

}  // namespace fl
