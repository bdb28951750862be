// Random programs.
//
//   Program program = generate(seed, {.length = 16});
#pragma once

#include "tests/tracer/fuzz/program.h"

namespace flashlight::fuzz {

struct Options {
  int length = 16;  // calls
  bool grad = false;
  bool chains = true;
};

Program generate(uint64_t seed, const Options& options);

}  // namespace flashlight::fuzz
