#include "flashlight/family_maker.h"

#include <ATen/Functions.h>

#include "composit/ir/error.h"
#include "tracer/geometry.h"

namespace flashlight {

using composit::Graph;
using composit::UserError;

namespace {

// Each axis repeated or cut.
at::Tensor resized(at::Tensor tensor, const composit::Dims& sizes) {
  for (int64_t axis = 0; axis < tensor.dim(); ++axis) {
    const int64_t size = sizes.at(static_cast<size_t>(axis));
    if (tensor.size(axis) == size) continue;
    const at::Tensor indices = at::arange(size, at::kLong).remainder(tensor.size(axis));
    tensor = tensor.index_select(axis, indices);
  }
  return tensor;
}

}  // namespace

std::vector<Graph> FamilyMaker::graphs_of(const std::vector<CaptureBase>& examples) {
  std::vector<Graph> graphs;
  for (const CaptureBase& example : examples) graphs.push_back(graph_of(example));
  return graphs;
}

void FamilyMaker::expect_alike(const std::vector<CaptureBase>& examples) {
  const CaptureBase::State& first = examples.at(0).now();
  for (size_t i = 1; i < examples.size(); ++i) {
    const CaptureBase::State& other = examples[i].now();
    const std::string which = "examples 1 and " + std::to_string(i + 1);
    if (other.arguments != first.arguments)
      throw UserError("[unify] " + which + " have arguments of other structures: " +
                      str(first.arguments) + " and " + str(other.arguments));
    if (other.results != first.results)
      throw UserError("[unify] " + which +
                      " have results of other structures: " + str(first.results) + " and " +
                      str(other.results) + "; return sizes as tensors, or not at all");
    if (other.grad != first.grad)
      throw UserError("[unify] " + which + " ran in different grad modes");
    if (!other.counted.empty() || !first.counted.empty())
      throw UserError("[unify] expected examples whose numbers do not follow the calls");
  }
}

CaptureBase FamilyMaker::bound(const CaptureBase& example, const Graph& graph) {
  const CaptureBase::State& from = example.now();
  auto state = std::make_shared<CaptureBase::State>();
  Graph::Parts parts = graph.parts();
  parts.outputs.resize(from.graph.outputs().size());  // the others are gradients
  state->graph = Graph(std::move(parts));
  state->replayed = {graph, from.replayed.inputs, from.replayed.gradients};
  state->inputs = from.replayed.inputs;
  state->grad = from.grad;
  state->arguments = from.arguments;
  state->results = from.results;
  state->borrows_memory = from.borrows_memory;
  state->tied = from.tied;
  state->generators = from.generators;
  state->remarks = from.remarks;
  state->trust = Trust::confirmed;
  state->notes = {"bound: a family of captures at other sizes gave this graph"};
  state->program = from.program;
  state->named = from.named;
  state->options = from.options;
  state->of_family = true;
  for (size_t i = 0, next = 0; i < from.replayed.inputs.size(); ++i)
    if (from.replayed.inputs[i].kind == composit::InputKind::user_input)
      state->example_arguments.push_back(
          resized(from.example_arguments.at(next++), graph.inputs()[i].sizes()));
  return CaptureBase(std::move(state));
}

std::vector<at::Tensor> FamilyMaker::run_part(const CaptureBase& example, const Graph& part,
                                              const std::vector<at::Tensor>& arguments) {
  const CaptureBase::State& state = example.now();
  tracer::PlanOptions options{state.grad, state.generators};
  options.as_program = true;
  options.pin_types = false;
  return tracer::Plan(part, std::move(options)).run(state.bind_replay(arguments));
}

CaptureBase FamilyMaker::run(const CaptureBase& example, const FlatValues& arguments) {
  const CaptureBase::State& state = example.now();
  if (!state.program)
    throw UserError("[family] a loaded family does not know its program: trace it again");
  const c10::AutoGradMode grad(state.grad);
  return CaptureBase::capture({.run = state.program, .named = state.named, .seen_once = true},
                              arguments, state.options);
}

std::vector<composit::Type> FamilyMaker::types_of(const CaptureBase& example,
                                                  const std::vector<at::Tensor>& arguments) {
  const CaptureBase::State& state = example.now();
  std::vector<composit::Type> types;
  for (const at::Tensor& tensor : state.bind_replay(arguments))
    types.push_back(tensor.defined() ? tracer::type_of(tensor) : composit::undefined_type());
  return types;
}

}  // namespace flashlight
