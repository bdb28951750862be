#include "flashlight/run_lock.h"

#include <chrono>

namespace flashlight {
namespace {

constexpr std::chrono::seconds kLongest(1);

}  // namespace

RunLock::Run::Run(RunLock& lock) : lock_(lock) {
  std::unique_lock held(lock_.mutex_);
  lock_.changed_.wait_for(held, kLongest,
                          [&] { return !lock_.is_recording_ && lock_.waiting_ == 0; });
  ++lock_.running_;
}

RunLock::Run::~Run() {
  {
    const std::lock_guard held(lock_.mutex_);
    --lock_.running_;
  }
  lock_.changed_.notify_all();
}

RunLock::Recording::Recording(RunLock& lock) : lock_(lock) {
  std::unique_lock held(lock_.mutex_);
  ++lock_.waiting_;
  is_alone_ = lock_.changed_.wait_for(held, kLongest,
                                      [&] { return !lock_.is_recording_ && lock_.running_ == 0; });
  --lock_.waiting_;
  if (is_alone_) lock_.is_recording_ = true;
  if (!is_alone_) ++lock_.running_;
  held.unlock();
  lock_.changed_.notify_all();
}

RunLock::Recording::~Recording() {
  {
    const std::lock_guard held(lock_.mutex_);
    if (is_alone_) lock_.is_recording_ = false;
    if (!is_alone_) --lock_.running_;
  }
  lock_.changed_.notify_all();
}

}  // namespace flashlight
