// Programs of the tests, run with and without `flashlight capture`.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "flashlight/capture.h"

namespace flashlight::testing {

using Command = std::vector<std::string>;

// The status and the output of a process.
struct Outcome {
  int status = 0;  // as of waitpid
  std::string out, err;
};
Outcome run(const Command& command);

// `flashlight capture OPTIONS -o FOLDER -- COMMAND`, in a fresh folder.
struct Captured {
  Outcome outcome;  // `err` without what Flashlight says
  std::string log;  // that
  std::filesystem::path folder;
};
Captured capture(const Command& options, const Command& command);

// "step_000", …: the captures there are.
std::vector<std::string> steps_in(const std::filesystem::path& folder);
// A loaded capture, and what a replay of its example has made of its parameters and buffers.
struct Replayed {
  Capture<> capture;
  std::vector<at::Tensor> results;
  std::map<std::string, at::Tensor> before, after;  // copies
};
Replayed replay(const std::filesystem::path& folder);

// Bit for bit.
bool same(const at::Tensor& a, const at::Tensor& b);

}  // namespace flashlight::testing
