// Work that is done by a thread of its own, one piece after another, while the machine has nothing
// better to do.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace flashlight {

class Background {
 public:
  Background() = default;
  // Finishes the piece that runs; what waits is dropped.
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // Starts the thread with the first piece. A piece must not throw.
  void add(std::function<void()> piece);
  // Until all pieces are done.
  void wait();

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> pieces_;
  bool busy_ = false, ends_ = false;
  std::thread thread_;
};

}  // namespace flashlight
