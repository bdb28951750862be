// Makes the system refuse what it is asked for: the test program has its own write(), fsync(),
// rename(), ... in front of the C library's.
//
//   FailingSystem failing({.call = 7, .error = ENOSPC});   // the 7th call from now on this thread
//   fails
//   ...
//   failing.happened();
#pragma once

#include <cstdint>

namespace composit::test {

struct Failure {
  int64_t call = 0;          // counted from 0; only this one fails
  int error = 0;             // errno; 0: the process ends, as if it was killed
  bool no_exchange = false;  // the file system cannot exchange two folders
};

class FailingSystem {
 public:
  explicit FailingSystem(Failure failure);
  ~FailingSystem();
  FailingSystem(const FailingSystem&) = delete;
  FailingSystem& operator=(const FailingSystem&) = delete;

  bool happened() const;
};

}  // namespace composit::test
