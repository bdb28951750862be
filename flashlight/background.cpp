#include "flashlight/background.h"

#include <sys/resource.h>
#include <unistd.h>

#include <utility>

namespace flashlight {

Background::~Background() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    pieces_.clear();
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Background::add(std::function<void()> piece) {
  const std::lock_guard lock(mutex_);
  pieces_.push_back(std::move(piece));
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  changed_.notify_all();
}

void Background::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return pieces_.empty() && !busy_; });
}

void Background::work() {
  // On Linux a priority belongs to a thread, and the compilers that it starts inherit it.
  constexpr int kLowest = 19;
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kLowest);
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ends_ || !pieces_.empty(); });
    if (ends_) return;
    const std::function<void()> piece = std::move(pieces_.front());
    pieces_.pop_front();
    busy_ = true;
    lock.unlock();
    piece();
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace flashlight
