// Loops that need not be: what is computed element by element moves to where it is used, and what
// is done with the result of a reduction moves into the reduction.
//
//   fuse(program);      // relu(x * w + b): one nest, no temporary
//
// Exact: every element is computed by the same operations, some of them more than once where that
// is cheaper than memory.
#pragma once

#include <functional>

#include "flashlight/cpp/program.h"

namespace flashlight::cpp {

struct FuseOptions {
  // Whether a nest may become another one; without, all may.
  std::function<bool(const Statement& before, const Statement& after)> allows = {};
};

void fuse(Program& program, const FuseOptions& options = {});

}  // namespace flashlight::cpp
