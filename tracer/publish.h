// Turns a recording into a graph: dead records go, composite operators become nodes with a region
// or are opened, module scopes and source lines are attached.
//
// A composite operator stays closed, so that a reader sees `layer_norm`, unless a value made inside
// it is used outside (autograd reads batch-norm statistics, dropout masks, pool indices): then its
// records stand in its place.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "composit/ir/graph.h"
#include "tracer/recording.h"

namespace flashlight::tracer {

// A graph and the LibTorch objects its inputs stand for.
struct Published {
  composit::Graph graph;
  // In the order of graph.inputs(). User inputs hold the example's tensors.
  std::vector<RecordedInput> inputs;
  std::vector<RecordedConstant> constants;
  std::vector<RecordedGenerator> generators;
  std::vector<std::string> remarks;
  bool grad = false;  // grad mode of nodes that do not say otherwise
  // The record that each step comes from, of a Plan of this graph, in the order of execution.
  std::vector<RecordId> steps;
  // The records of inputs and constants that the graph has, in their order.
  std::vector<RecordId> sources;
  // The nodes of all records of the graph, and the values that followed reads read, where those
  // stand in no region.
  std::unordered_map<RecordId, composit::NodePtr> nodes;
  std::unordered_map<RecordId, composit::LazyTensor> reads;
  // For each output after those of the program: the graph input whose `.grad` holds it.
  std::vector<size_t> gradients;
};

// The recording stays as it is: it can be published again.
// `gradients`: what the program leaves in `.grad` are further outputs.
Published publish(Recording& recording, bool gradients = false);

// The graph that leads to `value`, while the recording goes on. Inputs that are `unwritten` so far
// bring their values along.
composit::LazyTensor publish_value(Recording& recording, ValueId value,
                                   std::vector<bool> unwritten);

}  // namespace flashlight::tracer
