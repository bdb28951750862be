// Loops that need not be: what is computed element by element moves to where it is used, and what
// is done with the result of a reduction moves into the reduction.
//
//   program = fuse(std::move(program));      // relu(x * w + b): one nest, no temporary
//
// Exact: every element is computed by the same operations, some of them more than once where that
// is cheaper than memory.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "flashlight/loops/program.h"

namespace flashlight::loops {

struct FuseOptions {
  // Why a nest must not become another one; empty: it may.
  std::function<std::string(const Statement& before, const Statement& after)> refusal = {};
  // For a value of the last function: whether it is computed where it is read whatever that costs,
  // or kept in memory; nothing: as it pays.
  std::function<std::optional<bool>(ValueId value)> choice = {};
};

// Each nest says what was fused into it; each function why it kept what it did (Routine::kept).
Program fuse(Program program, const FuseOptions& options = {});

}  // namespace flashlight::loops
