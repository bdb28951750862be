// What a Capture holds. For the files of this folder only.
#pragma once

#include <mutex>
#include <optional>

#include "flashlight/capture.h"
#include "tracer/publish.h"
#include "tracer/replay.h"

namespace flashlight {

struct CaptureBase::State {
  composit::Graph graph;
  bool grad = false;  // grad mode of nodes that do not say otherwise
  Structure arguments, results;
  std::vector<at::Tensor> example_arguments, example_results;
  at::Tensor example_generator;
  std::vector<NamedTensor> inputs;  // one per graph input; tensors of user inputs are undefined
  std::map<std::string, std::vector<std::string>> tied;  // further names of a parameter
  std::map<std::string, at::Generator> generators;
  std::vector<std::string> remarks;

  // How to run it again; empty for a loaded capture.
  Program program;
  std::vector<NamedTensor> named;
  TraceOptions options;

  // Graph, inputs, generators and remarks of what was recorded.
  void take(tracer::Published published);
  const tracer::Plan& plan() const;
  // The tensors of graph.inputs() for these arguments.
  std::vector<at::Tensor> bind(const std::vector<at::Tensor>& arguments) const;

 private:
  mutable std::once_flag planned_;
  mutable std::optional<tracer::Plan> plan_;
};

// One run of `program` inside a scope, with all that is named.
struct ProgramRun {
  FlatValues results;
  std::unique_ptr<tracer::Recording> recording;
};
ProgramRun run_recorded(const Program& program, const FlatValues& arguments,
                        const std::vector<NamedTensor>& named, const TraceOptions& options,
                        const tracer::Recorder::Observer& observer = nullptr);

// Outputs of `graph`, without what it writes, for the tensors of its inputs.
std::vector<at::Tensor> evaluate_by(const composit::Backend& backend, const composit::Graph& graph,
                                    const std::vector<at::Tensor>& inputs);

// The schemas of the operators that LibTorch is called with, in-place originals included; an empty
// text for one it does not have.
std::vector<std::string> schemas_of(const composit::Graph& graph);

// Calls `visit` with every node of the graph, those of regions included.
template <class Visit>
void for_each_node(const composit::Graph& graph, Visit visit) {
  for (const composit::NodePtr& node : graph.nodes()) {
    visit(*node);
    if (const composit::Attribute* body = node->find_run("body"))
      for_each_node(*body->as<composit::Region>(), visit);
  }
}

}  // namespace flashlight
