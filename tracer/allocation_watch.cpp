#include "tracer/allocation_watch.h"

#include <c10/util/ParallelGuard.h>

#include <atomic>

namespace flashlight::tracer {

AllocationWatch::AllocationWatch(c10::DebugInfoBase* previous)
    : ProfilerStateBase(
          torch::profiler::impl::ProfilerConfig(torch::profiler::impl::ProfilerState::Disabled)),
      previous_(dynamic_cast<c10::MemoryReportingInfoBase*>(previous)) {}

namespace {
thread_local int operators_running = 0;
std::atomic<int> running_anywhere = 0;
}  // namespace

InsideOperator::InsideOperator() : in_loop_(c10::ParallelGuard::is_enabled()) {
  ++operators_running;
  if (!in_loop_) running_anywhere.fetch_add(1, std::memory_order_relaxed);
}
InsideOperator::~InsideOperator() {
  --operators_running;
  if (!in_loop_) running_anywhere.fetch_sub(1, std::memory_order_relaxed);
}
bool InsideOperator::may_have_workers() {
  return running_anywhere.load(std::memory_order_relaxed) > 0;
}

AllocationWatch::Origin AllocationWatch::origin(const void* data) const {
  std::lock_guard lock(mutex_);
  const auto found = live_.find(data);
  return found == live_.end() ? Origin::outside : found->second;
}

void AllocationWatch::reportMemoryUsage(void* data, int64_t bytes, size_t allocated,
                                        size_t reserved, c10::Device device) {
  if (previous_ != nullptr) previous_->reportMemoryUsage(data, bytes, allocated, reserved, device);
  std::lock_guard lock(mutex_);
  if (bytes > 0)
    live_[data] = operators_running > 0 ? Origin::inside_operator : Origin::between_operators;
  else
    live_.erase(data);
}

}  // namespace flashlight::tracer
