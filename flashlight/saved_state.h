// What a run of a captured program writes, so that several runs begin alike. For the files of this
// folder only.
#pragma once

#include <ATen/core/Generator.h>

#include <utility>
#include <vector>

#include "flashlight/capture_state.h"

namespace flashlight {

// Buffers, parameters and arguments that the program writes, and the state of the CPU's generator.
class SavedState {
 public:
  SavedState(const CaptureBase::State& state, const std::vector<at::Tensor>& arguments);
  void restore();

 private:
  at::Generator generator_;
  at::Tensor random_state_;
  std::vector<std::pair<at::Tensor, at::Tensor>> saved_;  // written inputs, their values before
};

}  // namespace flashlight
