// Graphs as CUDA C++, run on the host, against their definitions; many in one translation unit.
#pragma once

#include <string>
#include <vector>

#include "composit/ir/graph.h"
#include "flashlight/cuda/backend.h"
#include "tests/flashlight/cuda/watched.h"

namespace flashlight::cuda::test {

// A graph with values for its inputs.
struct Case {
  std::string text;  // what it is, for messages
  composit::Graph graph;
  std::vector<composit::Array> values;
};

// Empty, or every case that differs from the reference by more than `times` the tolerance of its
// dtype, leaves its memory, or has threads that race: what, and the text. `sectors`: of each
// case. `captured`: in a CUDA graph.
std::string differences(const std::vector<Case>& cases, double times = 4,
                        std::vector<Sectors>* sectors = nullptr, bool captured = false);

}  // namespace flashlight::cuda::test
