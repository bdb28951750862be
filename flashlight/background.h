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

  using Piece = std::function<void()>;
  // Starts the thread with the first piece. A piece must not throw.
  void add(Piece piece);
  // The same for what nobody waits for: it runs while there are no others.
  void add_idle(Piece piece);
  // Until all pieces are done, but for those of `add_idle`.
  void wait();

 private:
  void add_to(std::deque<Piece>& pieces, Piece piece);
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Piece> pieces_, idle_;
  bool busy_ = false, ends_ = false;
  std::thread thread_;
};

}  // namespace flashlight
