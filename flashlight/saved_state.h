// Saves the memory that a run of a captured program writes, so that several runs can begin with the
// same content. For the files of this folder only.
#pragma once

#include <ATen/core/Generator.h>

#include <string>
#include <utility>
#include <vector>

#include "flashlight/capture_state.h"

namespace flashlight {

// The states of generators, to draw the same numbers once more.
class GeneratorStates {
 public:
  // The default one, and those given.
  explicit GeneratorStates(const std::map<std::string, at::Generator>& generators);
  void restore() const;
  bool are_now() const;

 private:
  std::vector<std::pair<at::Generator, at::Tensor>> states_;
};

// Buffers, parameters and arguments that the program writes, and the states of its random
// generators: the CPU's own, and those of the capture.
class SavedState {
 public:
  SavedState(const CaptureBase::State& state, const std::vector<at::Tensor>& arguments);
  void restore();

 private:
  GeneratorStates generators_;
  std::vector<std::pair<at::Tensor, at::Tensor>> saved_;  // written inputs, their values before
};

// The roles of the generators whose state at the begin of a run decides which numbers are drawn:
// the program does not seed them before it draws.
std::vector<std::string> generators_read(const composit::Graph& graph);

}  // namespace flashlight
