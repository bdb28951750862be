#include "flashlight/devices/queues.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

namespace flashlight::devices {
namespace {

class Run {
 public:
  Run(const Schedule& schedule, const std::function<void(size_t)>& work)
      : schedule_(schedule), work_(work), done_(schedule.tasks.size()) {}

  void in_threads() {
    std::vector<std::thread> threads;
    for (size_t queue = 1; queue < schedule_.queues; ++queue)
      threads.emplace_back([this, queue] { serve(queue); });
    serve(0);
    for (std::thread& thread : threads) thread.join();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void serve(size_t queue) {
    for (size_t i = 0; i < schedule_.tasks.size(); ++i)
      if (schedule_.tasks[i].queue == queue && (!wait_for(i) || !work_on(i))) return;
  }

  // False after an error of an earlier task.
  bool wait_for(size_t task) {
    std::unique_lock lock(mutex_);
    const auto is_over = [&] { return error_ && failed_ < task; };
    changed_.wait(lock, [&] { return is_over() || all_done(schedule_.tasks[task].after); });
    return !is_over();
  }
  bool all_done(const Numbers& tasks) const {
    for (const size_t one : tasks)
      if (!done_[one]) return false;
    return true;
  }

  bool work_on(size_t task) {
    std::exception_ptr error;
    try {
      work_(task);
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    done_[task] = !error;
    if (error && (!error_ || task < failed_)) {
      error_ = error;
      failed_ = task;
    }
    changed_.notify_all();
    return !error;
  }

  const Schedule& schedule_;
  const std::function<void(size_t)>& work_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> done_;
  std::exception_ptr error_;
  size_t failed_ = 0;
};

}  // namespace

void run_in_queues(const Schedule& schedule, bool threads,
                   const std::function<void(size_t)>& work) {
  if (threads && schedule.overlaps) return Run(schedule, work).in_threads();
  for (size_t i = 0; i < schedule.tasks.size(); ++i) work(i);
}

}  // namespace flashlight::devices
