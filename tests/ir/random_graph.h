// Legal graphs of every shape the text has a form for, from a seed.
//
//   Graph graph = RandomGraph(seed).make();
#pragma once

#include <random>
#include <string>
#include <vector>

#include "composit/ir/graph.h"

namespace composit::test {

class RandomGraph {
 public:
  explicit RandomGraph(uint64_t seed) : random_(seed) {}

  Graph make();
  Attribute attribute(int depth = 0);
  Type type();
  Array array();

 private:
  struct Frame {
    Graph::Parts parts;
    LazyTensors values;
    int64_t next_effect = 0;
    int depth = 0;
  };

  int64_t number(int64_t low, int64_t high);
  bool chance(double probability);
  template <class T>
  const T& one_of(const std::vector<T>& choices) {
    return choices[static_cast<size_t>(number(0, static_cast<int64_t>(choices.size()) - 1))];
  }
  std::string text();
  double real();
  Scalar scalar();
  List list(int depth);
  std::vector<int64_t> strides(const Dims& sizes);

  Graph graph(int depth);
  Region body_of(const NodeSpec& spec, int depth);
  void add_inputs(Frame& frame);
  void add_node(Frame& frame);
  void add_constant(Frame& frame);
  void add_arguments(const Frame& frame, NodeSpec& spec);
  void add_attributes(Attributes& attributes);
  void add_annotations(NodeSpec& spec);
  void add_mutation(Frame& frame);
  LazyTensor value(const Frame& frame);

  std::mt19937_64 random_;
};

// The number of runs of a randomised test: FLASHLIGHT_FUZZ_PROGRAMS, or else `usual`.
uint64_t fuzz_runs(uint64_t usual);

// Empty if both graphs are the same node by node, with types, attributes and annotations, compared
// field by field rather than by hash; otherwise where they begin to differ.
std::string first_mismatch(const Graph& a, const Graph& b);

}  // namespace composit::test
