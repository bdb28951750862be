#include "composit/nn/optimize.h"

#include <algorithm>

#include "composit/ir/print.h"

namespace composit::nn {
namespace {

const Type& expect_parameter(const LazyTensor& parameter) {
  if (!parameter || !is_input(*parameter.node))
    throw UserError("[optimize] expected parameters that are inputs, received " +
                    (parameter ? "a result of '" + parameter.node->op().str() + "'" : "none"));
  return parameter.type();
}

void expect_gradient(const LazyTensor& parameter, const LazyTensor& gradient) {
  const Type& type = expect_parameter(parameter);
  if (!gradient || gradient.sizes() != type.sizes)
    throw UserError("[optimize] expected a gradient of " + print(type) + " for '" +
                    input_name(*parameter.node) + "', received " +
                    (gradient ? print(gradient.type()) : "none"));
}

LazyTensor state_input(const LazyTensor& parameter, const Optimizer::State& state) {
  const Type type = state.is_count ? tensor_type(DType::float64, {})
                                   : tensor_type(parameter.dtype(), parameter.sizes());
  const std::vector<std::byte> zeros(static_cast<size_t>(type.nbytes()));
  return held_input(input_name(*parameter.node) + "." + state.name,
                    Array::copy_of(type, zeros.data()), InputKind::buffer);
}

// Appends the new values of a parameter and of its state.
void add_update(const LazyTensor& parameter, const LazyTensor& gradient, const Optimizer& optimizer,
                std::vector<Mutation>& mutations) {
  LazyTensors targets{parameter};
  LazyTensors state;
  for (const Optimizer::State& kept : optimizer.state) {
    targets.push_back(state_input(parameter, kept));
    state.emplace_back(targets.back());
  }
  const LazyTensors updated = optimizer.update(parameter, gradient, state);
  if (updated.size() != targets.size())
    throw UserError("[optimize] expected " + std::to_string(targets.size()) +
                    " results of the optimizer, received " + std::to_string(updated.size()));
  for (size_t i = 0; i < targets.size(); ++i) {
    if (updated[i].sizes() != targets[i].sizes())
      throw UserError("[optimize] expected a new value of " + print(targets[i].type()) + " for '" +
                      input_name(*targets[i].node) + "', received " + print(updated[i].type()));
    mutations.push_back({targets[i], to(updated[i], targets[i].dtype())});
  }
}

// Inputs: what is changed, then the rest by name. The order in which they were made is not that of
// the step before.
Graph graph_of(LazyTensors observed, std::vector<Mutation> mutations) {
  Graph::Parts parts{.outputs = std::move(observed), .mutations = std::move(mutations)};
  FlatMap<const Node*, bool> changed;
  for (const Mutation& mutation : parts.mutations) {
    parts.inputs.push_back(mutation.target);
    changed.insert(mutation.target.node.get(), true);
  }
  const Graph without_inputs(parts);
  for (const NodePtr& node : without_inputs.nodes())
    if (is_input(*node) && !changed.contains(node.get())) parts.inputs.push_back({node, 0});
  std::stable_sort(parts.inputs.begin() + static_cast<int64_t>(changed.size()), parts.inputs.end(),
                   [](const LazyTensor& a, const LazyTensor& b) {
                     return input_name(*a.node) < input_name(*b.node);
                   });
  return Graph(std::move(parts));
}

}  // namespace

TrainingStep::TrainingStep(const LazyTensors& parameters, const LazyTensors& gradients,
                           const Optimizer& optimizer, const TrainingStepOptions& options) {
  if (parameters.size() != gradients.size())
    throw UserError("[optimize] expected a gradient for each of " +
                    std::to_string(parameters.size()) + " parameters, received " +
                    std::to_string(gradients.size()));
  std::vector<Mutation> mutations;
  for (size_t i = 0; i < parameters.size(); ++i) {
    expect_gradient(parameters[i], gradients[i]);
    add_update(parameters[i], gradients[i], optimizer, mutations);
  }
  graph_ = graph_of(options.observed, std::move(mutations));
  run_ = options.backend->compile(graph_);
}

std::vector<Array> TrainingStep::operator()(Values& values) const {
  std::vector<Array> inputs;
  for (const LazyTensor& tensor : graph_.inputs()) {
    const Array* given = values.find(tensor);
    inputs.push_back(given != nullptr ? *given : tensor.node->held());
  }
  std::vector<Array> results = run_(inputs);
  const size_t observed = graph_.outputs().size();
  for (size_t i = 0; i < graph_.mutations().size(); ++i)
    values.set(graph_.mutations()[i].target, results[observed + i]);
  results.resize(observed);
  return results;
}

LazyTensors optimize(const LazyTensors& parameters, const LazyTensors& gradients,
                     const Optimizer& optimizer, Values& values, const Backend& backend) {
  // A step starts from the value that a parameter holds, not from the result of an earlier step.
  for (const LazyTensor& parameter : parameters) {
    expect_parameter(parameter);
    if (parameter.node->held().defined()) values.set(parameter, parameter.node->held());
  }
  TrainingStep(parameters, gradients, optimizer, {.backend = &backend})(values);
  LazyTensors updated;
  updated.reserve(parameters.size());
  for (const LazyTensor& parameter : parameters)
    updated.push_back(
        held_input(input_name(*parameter.node), values[parameter], input_kind(*parameter.node)));
  return updated;
}

LazyTensors optimize(const LazyTensors& parameters, const LazyTensors& gradients,
                     const Optimizer& optimizer, const Backend& backend) {
  if (!optimizer.state.empty())
    throw UserError("[optimize] the optimizer keeps '" + optimizer.state[0].name +
                    "' between steps; pass Values for it to stay in");
  Values none;
  return optimize(parameters, gradients, optimizer, none, backend);
}

}  // namespace composit::nn
