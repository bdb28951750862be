// Fuses nests: an elementwise computation moves into the nests that use it, and an elementwise user
// of a reduction becomes the reduction's epilogue.
//
//   program = fuse(std::move(program));      // relu(x * w + b): one nest, no temporary
//
// Exact: every element is computed by the same operations, some of them more than once where that
// is cheaper than memory. Between those on 16-bit floats, results keep the precision of float32.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "flashlight/loops/program.h"

namespace flashlight::loops {

struct FuseOptions {
  // Says why a nest must not become `after`; empty if it may.
  std::function<std::string(const Statement& before, const Statement& after)> refusal = {};
  // For a value of a function: true to compute it where it is read at any cost, false to keep it in
  // memory, nothing to let fuse decide by cost.
  std::function<std::optional<bool>(FunctionId function, ValueId value)> choice = {};
};

// Notes in each nest what was fused into it, in each function why it kept values (Routine::kept).
Program fuse(Program program, const FuseOptions& options = {});

}  // namespace flashlight::loops
