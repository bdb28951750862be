// Graphs as C++ against their definitions, many in one translation unit.
#pragma once

#include <string>
#include <vector>

#include "composit/ir/graph.h"
#include "flashlight/cpp/backend.h"

namespace flashlight::cpp::test {

// A graph with values for its inputs.
struct Case {
  std::string text;  // what it is, for messages
  composit::Graph graph;
  std::vector<composit::Array> values;
};

// Empty, or every case that does not compile without a warning, fails, or differs from the
// reference by more than `times` the tolerance of its dtype: what, and the C++.
std::string differences(const std::vector<Case>& cases, double times = 4,
                        const std::vector<std::string>& flags = {"-O1"});
// The outputs depend on inputs that hold their values.
Case case_of(const std::string& text, const composit::LazyTensors& outputs);

}  // namespace flashlight::cpp::test
