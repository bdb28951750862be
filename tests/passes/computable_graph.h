// Random graphs of real operations that can be evaluated and differentiated, from a seed: ATen's
// various spellings, views, constants, numbers, no-ops, branches, loops, and loops unrolled.
//
//   Graph graph = ComputableGraph(seed).make();
//   std::vector<Array> results = evaluate(graph, random_inputs(graph, 1));
#pragma once

#include <random>
#include <vector>

#include "composit/ir/graph.h"
#include "composit/ir/node.h"

namespace composit::test {

class ComputableGraph {
 public:
  explicit ComputableGraph(uint64_t seed) : random_(seed) {}

  // Inputs and one output are float64[4, 4]; another output has several users.
  Graph make();

 private:
  // One step: what is done (the number of a rule), and to which of the last values.
  struct Step {
    size_t rule, a, b;
  };
  Step random_step();
  void apply_step(const Step& step);

  std::mt19937_64 random_;
  LazyTensors values_;
};

std::vector<Array> random_inputs(const Graph& graph, uint64_t seed);

}  // namespace composit::test
