#include "tracer/allocation_watch.h"

#include <ATen/EmptyTensor.h>

#include <algorithm>
#include <cstring>

#include "tracer/generator_watch.h"

namespace flashlight::tracer {

AllocationWatch::AllocationWatch(c10::DebugInfoBase* previous)
    : ProfilerStateBase(
          torch::profiler::impl::ProfilerConfig(torch::profiler::impl::ProfilerState::Disabled)),
      previous_(dynamic_cast<c10::MemoryReportingInfoBase*>(previous)),
      state_size_(generator_state_size()) {}

namespace {
thread_local int operators_running = 0;
}

InsideOperator::InsideOperator() { ++operators_running; }
InsideOperator::~InsideOperator() { --operators_running; }

AllocationWatch::Origin AllocationWatch::origin(const void* data) const {
  std::lock_guard lock(mutex_);
  const auto found = live_.find(data);
  return found == live_.end() ? Origin::outside : found->second.origin;
}

uint64_t AllocationWatch::count() const {
  std::lock_guard lock(mutex_);
  return count_;
}

uint64_t AllocationWatch::number(const void* data) const {
  std::lock_guard lock(mutex_);
  const auto found = live_.find(data);
  return found == live_.end() ? 0 : found->second.number;
}

bool AllocationWatch::holds(const composit::Hash& generator_state) const {
  const InsideOperator ours;
  std::vector<at::Tensor> states;
  for (size_t i = 0;; ++i) {
    const at::Tensor bytes = at::detail::empty_cpu({state_size_}, at::kByte);  // reports itself
    std::lock_guard lock(mutex_);  // nobody frees what is read
    if (i >= states_.size()) break;
    std::memcpy(bytes.mutable_data_ptr(), states_[i], static_cast<size_t>(state_size_));
    states.push_back(bytes);
  }
  return std::any_of(states.begin(), states.end(),
                     [&](const at::Tensor& bytes) { return state_in(bytes) == generator_state; });
}

void AllocationWatch::reportMemoryUsage(void* data, int64_t bytes, size_t allocated,
                                        size_t reserved, c10::Device device) {
  if (previous_ != nullptr) previous_->reportMemoryUsage(data, bytes, allocated, reserved, device);
  std::lock_guard lock(mutex_);
  if (bytes > 0) {
    live_[data] = {operators_running > 0 ? Origin::inside_operator : Origin::between_operators,
                   ++count_};
    if (bytes == state_size_ && operators_running == 0) states_.push_back(data);
  } else {
    live_.erase(data);
    if (!states_.empty()) std::erase(states_, data);
  }
}

}  // namespace flashlight::tracer
