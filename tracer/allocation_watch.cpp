#include "tracer/allocation_watch.h"

#include <ATen/EmptyTensor.h>
#include <c10/util/ParallelGuard.h>

#include <algorithm>
#include <atomic>
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
    std::lock_guard lock(mutex_);  // no other thread frees what is read
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
