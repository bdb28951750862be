// Limits for loops and recursion while a graph is made.
#pragma once

#include <cstdint>

namespace flashlight::torchscript {

struct Limits {
  // A loop whose number of trips is known is unrolled if it has at most this number; otherwise it
  // becomes one node.
  int64_t unroll = 16;
  // The most trips of a loop that ends by what it computes; a run that needs more is refused. The
  // derivative keeps room for this number.
  int64_t trips = 1000;
  // The most calls of a function within itself.
  int64_t depth = 32;
};

}  // namespace flashlight::torchscript
