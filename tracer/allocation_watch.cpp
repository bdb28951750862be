#include "tracer/allocation_watch.h"

namespace flashlight::tracer {

AllocationWatch::AllocationWatch(c10::DebugInfoBase* previous)
    : ProfilerStateBase(
          torch::profiler::impl::ProfilerConfig(torch::profiler::impl::ProfilerState::Disabled)),
      previous_(dynamic_cast<c10::MemoryReportingInfoBase*>(previous)) {}

namespace {
thread_local int operators_running = 0;
}

InsideOperator::InsideOperator() { ++operators_running; }
InsideOperator::~InsideOperator() { --operators_running; }

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
