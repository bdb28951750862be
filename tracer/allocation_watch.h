// Which memory was allocated inside the scope: a "constant" that lies in it was made by something
// the tracer did not see, and is an error instead of a constant.
//
// LibTorch reports every allocation of the thread to the profiler's slot; the watch stands there as
// a profiler that is disabled, which is what other users of the slot take it for, and hands on to
// one that was there before.
#pragma once

#include <c10/util/ThreadLocalDebugInfo.h>
#include <c10/util/flat_hash_map.h>
#include <torch/csrc/profiler/orchestration/observer.h>

#include <memory>
#include <mutex>
#include <vector>

#include "composit/ir/hash.h"

namespace flashlight::tracer {

class AllocationWatch : public torch::profiler::impl::ProfilerStateBase {
 public:
  explicit AllocationWatch(c10::DebugInfoBase* previous);

  // Does `data` begin memory that was allocated since the watch stands, and is still alive?
  enum class Origin { outside, between_operators, inside_operator };
  Origin origin(const void* data) const;
  // The number of allocations since the watch began; and the number, from 1 on, of the allocation
  // that made this memory, 0 for memory from outside.
  uint64_t count() const;
  uint64_t number(const void* data) const;
  // Is this state of a generator in memory that code between operators allocated: did the program
  // ask a generator for it?
  bool holds(const composit::Hash& generator_state) const;

  void reportMemoryUsage(void* data, int64_t bytes, size_t allocated, size_t reserved,
                         c10::Device device) override;
  bool memoryProfilingEnabled() const override { return true; }
  torch::profiler::impl::ActiveProfilerType profilerType() override {
    return torch::profiler::impl::ActiveProfilerType::NONE;
  }

 private:
  c10::MemoryReportingInfoBase* previous_;
  mutable std::mutex mutex_;  // pool threads report too
  struct Allocation {
    Origin origin;
    uint64_t number;
  };
  ska::flat_hash_map<const void*, Allocation> live_;
  uint64_t count_ = 0;
  const int64_t state_size_;
  std::vector<const void*> states_;  // of that size, between operators
};

// Stands while an operator runs on this thread.
class InsideOperator {
 public:
  InsideOperator();
  ~InsideOperator();
  // Does one run on some thread that is not itself part of a parallel loop of the program?
  static bool may_have_workers();
  InsideOperator(const InsideOperator&) = delete;

 private:
  const bool in_loop_;
};

}  // namespace flashlight::tracer
