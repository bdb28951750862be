#include "tracer/allocation_watch.h"

namespace flashlight::tracer {

AllocationWatch::AllocationWatch(c10::DebugInfoBase* previous)
    : ProfilerStateBase(
          torch::profiler::impl::ProfilerConfig(torch::profiler::impl::ProfilerState::Disabled)),
      previous_(dynamic_cast<c10::MemoryReportingInfoBase*>(previous)) {}

bool AllocationWatch::contains(const void* data) const {
  std::lock_guard lock(mutex_);
  return live_.find(data) != live_.end();
}

void AllocationWatch::reportMemoryUsage(void* data, int64_t bytes, size_t allocated, size_t reserved,
                                        c10::Device device) {
  if (previous_ != nullptr) previous_->reportMemoryUsage(data, bytes, allocated, reserved, device);
  std::lock_guard lock(mutex_);
  if (bytes > 0)
    live_.insert(data);
  else
    live_.erase(data);
}

}  // namespace flashlight::tracer
