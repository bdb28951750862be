// Runs of a program: side by side, but for those that are recorded, which run alone. What another
// thread writes meanwhile would be in no recording.
//
//   const RunLock::Run run(lock);
//   const RunLock::Recording recording(lock);
//   if (!recording.is_alone()) …               // others went on for too long
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>

namespace flashlight {

class RunLock {
 public:
  // Waits until no recording runs or waits; a second at most, as a program that is recorded may
  // wait for this thread.
  class Run {
   public:
    explicit Run(RunLock& lock);
    ~Run();
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

   private:
    RunLock& lock_;
  };

  // Waits until no other run is on its way; a second at most.
  class Recording {
   public:
    explicit Recording(RunLock& lock);
    ~Recording();
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;
    bool is_alone() const { return is_alone_; }

   private:
    RunLock& lock_;
    bool is_alone_ = false;
  };

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t running_ = 0, waiting_ = 0;
  bool is_recording_ = false;
};

}  // namespace flashlight
