// Graphs as CUDA C++, run on the host, against their definitions; many in one translation unit.
#pragma once

#include <string>
#include <vector>

#include "composit/ir/graph.h"
#include "flashlight/cuda/backend.h"

namespace flashlight::cuda::test {

// A graph with values for its inputs.
struct Case {
  std::string text;  // what it is, for messages
  composit::Graph graph;
  std::vector<composit::Array> values;
};

// Sectors of 32 bytes that warps wrote, and how few they could have been.
struct Sectors {
  int64_t written = 0, least = 0;
};

// Empty, or every case that differs from the reference by more than `times` the tolerance of its
// dtype, leaves its memory, or has threads that race: what, and the text. `captured`: in a CUDA
// graph.
std::string differences(const std::vector<Case>& cases, double times = 4,
                        Sectors* sectors = nullptr, bool captured = false);

}  // namespace flashlight::cuda::test
