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
    idle_.clear();
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Background::add(Piece piece) { add_to(pieces_, std::move(piece)); }
void Background::add_idle(Piece piece) { add_to(idle_, std::move(piece)); }

void Background::add_to(std::deque<Piece>& pieces, Piece piece) {
  const std::lock_guard lock(mutex_);
  pieces.push_back(std::move(piece));
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  changed_.notify_all();
}

void Background::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return pieces_.empty() && !busy_; });
}

void Background::work() {
  // On Linux a priority belongs to a thread, and the compilers that it starts inherit it. Not
  // SCHED_IDLE: on a busy machine those that wait for a piece would wait for ever.
  constexpr int kLowest = 19;
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kLowest);
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ends_ || !pieces_.empty() || !idle_.empty(); });
    if (ends_) return;
    busy_ = !pieces_.empty();
    std::deque<Piece>& from = busy_ ? pieces_ : idle_;
    const Piece piece = std::move(from.front());
    from.pop_front();
    lock.unlock();
    piece();
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace flashlight
