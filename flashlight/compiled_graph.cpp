#include "flashlight/compiled_graph.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>

#include "composit/ad/chain_rule.h"
#include "composit/ad/expr_derivative.h"
#include "composit/ir/error.h"
#include "composit/ir/print.h"
#include "composit/ops/functions.h"
#include "composit/passes/share_parts.h"
#include "flashlight/backends/registry.h"
#include "flashlight/capture_state.h"
#include "flashlight/graph_operator.h"
#include "flashlight/lent_generator.h"
#include "flashlight/prepared_code.h"
#include "flashlight/shared_code.h"
#include "tracer/convert.h"
#include "tracer/input_memory.h"
#include "tracer/memory_view.h"
#include "tracer/trace_scope.h"

namespace flashlight {

using composit::Graph;
using composit::LazyTensor;
using composit::LazyTensors;
using composit::UserError;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct CompiledGraph::State {
  CompileSettings settings;
  std::shared_ptr<SharedCode> shared;  // nullptr: with no other
  PreparedCode code;
  std::vector<size_t> targets;  // by mutation: the index of its input
  tracer::InputMemory memory;
  std::mutex mutex = {};
  std::map<std::vector<bool>, CompiledGraph> vjps = {};  // by the inputs that are wanted

  State(Graph one, CompileSettings chosen, SharedUse use);
  const Graph& graph() const {
    std::call_once(has_graph, [&] {
      if (!kept) kept = graph_again();
    });
    return *kept;
  }
  const composit::Ports& ports() const { return code.code().ports(); }
  // How many results are outputs; mutations follow.
  size_t outputs() const { return ports().results.size() - targets.size(); }

 private:
  const std::function<Graph()> graph_again;
  mutable std::once_flag has_graph;
  mutable std::optional<Graph> kept;
};

namespace {

bool is_differentiable(const LazyTensor& tensor) {
  return tensor && composit::is_differentiable(tensor.dtype());
}
bool is_differentiable(const composit::Type& type) {
  return composit::is_defined(type) && composit::is_differentiable(type.dtype);
}

// A row-major tensor with the elements of `tensor`, which has to be of the type of this input.
at::Tensor argument_for(const composit::Ports& ports, size_t input, const at::Tensor& tensor,
                        const std::string& name) {
  const composit::Type& expected = ports.inputs[input];
  const auto error = [&](const std::string& received) {
    return UserError("[" + name + "] input '" + ports.input_names[input] + "': expected " +
                     composit::print(composit::tensor_type(expected.dtype, expected.sizes)) +
                     " in the CPU's memory, received " + received);
  };
  if (tensor.layout() != c10::kStrided || !tensor.device().is_cpu())
    throw error("one of layout " + c10::str(tensor.layout()) + " on " + c10::str(tensor.device()));
  const composit::Type received = composit::tensor_type(
      tracer::to_composit(tensor.scalar_type()), {tensor.sizes().begin(), tensor.sizes().end()});
  if (received.dtype != expected.dtype || received.sizes != expected.sizes)
    throw error(composit::print(received));
  return tensor.resolve_conj().resolve_neg().contiguous();
}

at::Tensor empty_of(const composit::Type& type) {
  return at::empty(type.sizes, tracer::to_c10(type.dtype));
}
at::Tensor zeros_of(const composit::Type& type) {
  return at::zeros(type.sizes, tracer::to_c10(type.dtype));
}

Graph vjp_graph(const Graph& graph, const std::vector<bool>& wanted) {
  Graph::Parts parts;
  parts.inputs = graph.inputs();
  LazyTensors differentiated;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i]) differentiated.push_back(graph.inputs()[i]);
  std::vector<composit::Seed> seeds;
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const LazyTensor& output = graph.outputs()[i];
    if (!is_differentiable(output)) continue;
    const std::string number = graph.outputs().size() == 1 ? "" : "_" + std::to_string(i);
    const LazyTensor cotangent = composit::input(
        "cotangent" + number, composit::tensor_type(output.dtype(), output.type().sizes));
    parts.inputs.push_back(cotangent);
    seeds.push_back({output, cotangent});
  }
  parts.outputs = composit::chain_rule(seeds, differentiated);
  parts.effects = graph.effects();  // all draws, so that each gives the same numbers
  return composit::share_parts(Graph(std::move(parts)));
}

std::vector<size_t> targets_of(const Graph& graph) {
  std::vector<size_t> targets;
  for (const composit::Mutation& mutation : graph.mutations()) {
    const auto found = std::find(graph.inputs().begin(), graph.inputs().end(), mutation.target);
    targets.push_back(static_cast<size_t>(found - graph.inputs().begin()));
  }
  return targets;
}

// The names of the wanted inputs' gradients.
std::vector<std::string> gradient_names(const composit::Ports& ports,
                                        const std::vector<bool>& wanted) {
  std::vector<std::string> names;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i]) names.push_back(ports.input_names[i] + "_gradient");
  return names;
}

composit::Compiled compiled(const Graph& graph, const CompileSettings& settings,
                            const SharedUse& shared) {
  if (shared.code != nullptr) return shared.code->at(graph, shared.may_compile);
  return backend_named(settings.backend.name).compile(graph, compile_options(settings));
}

}  // namespace

composit::CompileOptions compile_options(const CompileSettings& settings) {
  return {.name = settings.name,
          .results = settings.results,
          .flags = settings.flags,
          .options = settings.backend.options,
          .may_prepare = true,
          .may_update = true,
          .schemas = schemas_of,
          .torch_folders = {FLASHLIGHT_TORCH_INCLUDES}};
}

CompiledGraph::State::State(Graph one, CompileSettings chosen, SharedUse use)
    : settings(std::move(chosen)),
      shared(use.code),
      code(compiled(one, settings, use), shared ? shared->preparations() : nullptr),
      targets(targets_of(one)),
      memory(one),
      graph_again(std::move(use.graph_again)) {
  if (!graph_again) kept = std::move(one);
}

CompiledGraph::CompiledGraph(Graph graph, CompileSettings settings, SharedUse shared)
    : state_(std::make_shared<State>(std::move(graph), std::move(settings), std::move(shared))) {}

const Graph& CompiledGraph::graph() const { return state_->graph(); }
const composit::Ports& CompiledGraph::ports() const { return state_->ports(); }
const std::string& CompiledGraph::source() const { return state_->code.code().source(); }
const std::vector<bool>& CompiledGraph::frozen() const { return state_->code.frozen(); }

CompiledGraph CompiledGraph::vjp(const std::vector<bool>& wanted) const {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->vjps.find(wanted);
  if (found != state_->vjps.end()) return found->second;
  if (wanted.size() != ports().inputs.size())
    throw UserError("[" + state_->settings.name + "] expected a choice for each of " +
                    std::to_string(ports().inputs.size()) + " inputs, received " +
                    std::to_string(wanted.size()));
  CompileSettings settings = state_->settings;
  settings.name += "_vjp";
  settings.results = gradient_names(ports(), wanted);
  composit::BackendChoice& backend = settings.backend;
  backend.options = backend_named(backend.name).for_derivative(std::move(backend.options));
  std::shared_ptr<SharedCode> shared;
  if (state_->shared)
    shared = state_->shared->derivative(wanted, [&] {
      std::vector<composit::SizedGraph> shown = state_->shared->shown();
      for (composit::SizedGraph& one : shown) one.graph = vjp_graph(one.graph, wanted);
      return std::make_shared<SharedCode>(std::move(shown), settings);
    });
  CompiledGraph derivative(vjp_graph(graph(), wanted), std::move(settings), {std::move(shared)});
  derivative.state_->memory = {};  // it reads inputs as they were saved, each by itself
  state_->vjps.emplace(wanted, derivative);
  return derivative;
}

void CompiledGraph::pack(const std::vector<at::Tensor>& inputs) const {
  check_count(inputs);
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> row_major(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (frozen()[i] && inputs[i].defined())
      row_major[i] = argument_for(ports(), i, inputs[i], state_->settings.name);
  state_->code.with(inputs, row_major);
}

// ---- calls --------------------------------------------------------------------------------------

// Returns outputs, then the new values of mutated inputs. With `updates` these are written to the
// inputs themselves if the code allows it, and if they are row-major and share memory with no
// other; `call` has refused others that overlap.
std::vector<at::Tensor> CompiledGraph::run(const std::vector<at::Tensor>& inputs,
                                           const Start& start, bool updates,
                                           Profile* profile) const {
  std::vector<at::Tensor> row_major, results;
  std::vector<composit::InputBuffer> from;
  row_major.reserve(inputs.size());
  from.reserve(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool is_given = inputs[i].defined();
    row_major.push_back(is_given ? argument_for(ports(), i, inputs[i], state_->settings.name)
                                 : at::Tensor());
    from.emplace_back(is_given ? row_major.back().const_data_ptr() : nullptr);
  }
  std::vector<composit::Buffer> to;
  const auto add = [&](at::Tensor result) {
    to.emplace_back(result.mutable_data_ptr());
    results.push_back(std::move(result));
  };
  const std::vector<composit::Type>& types = ports().results;
  const size_t outputs = state_->outputs();
  for (size_t i = 0; i < outputs; ++i) {
    if (composit::is_defined(types[i]))
      add(empty_of(types[i]));
    else
      results.emplace_back();
  }
  for (size_t i = 0; i < state_->targets.size(); ++i) {
    const size_t target = state_->targets[i];
    const at::Tensor& input = inputs[target];
    const bool in_place = updates && input.defined() && !state_->memory.is_shared(target) &&
                          input.is_same(row_major[target]) && !input.is_inference() &&
                          state_->code.code().may_update(to.size());
    add(in_place ? input : empty_of(types[outputs + i]));
  }
  const std::shared_ptr<const composit::Code> code = state_->code.with(inputs, row_major);
  const auto run_from = [&](fl::Generator* generator) {
    if (profile == nullptr) return code->run(from, to, generator);
    *profile = code->profile(from, to, generator);
  };
  if (!code->draws()) {
    run_from(nullptr);
  } else if (start == nullptr) {
    LentGenerator lent;
    run_from(&*lent);
  } else {
    fl::Generator generator = *start;
    run_from(&generator);
  }
  return results;
}

// One call as autograd sees it.
struct CompiledGraph::Call : torch::autograd::Function<Call> {
  struct Called : torch::CustomClassHolder {
    Called(CompiledGraph one, Start before) : graph(std::move(one)), start(std::move(before)) {}
    CompiledGraph graph;
    Start start;
  };

  // Autograd takes no undefined tensors: `defined` are the others, by input true in `given`. Gives
  // the results that are there.
  static variable_list forward(AutogradContext* context, const CompiledGraph& graph,
                               const Start& start, const std::vector<bool>& given,
                               at::TensorList defined) {
    variable_list inputs;
    for (size_t i = 0, next = 0; i < given.size(); ++i)
      inputs.push_back(given[i] ? defined[next++] : at::Tensor());
    Start before = start;
    if (before == nullptr && graph.state_->code.code().draws())
      before = std::make_shared<const fl::Generator>(*LentGenerator());
    variable_list saved = inputs;  // as they are before anything is written to them
    for (const size_t target : graph.state_->targets) saved[target] = inputs[target].clone();
    context->save_for_backward(saved);
    context->saved_data["called"] =
        c10::IValue::make_capsule(c10::make_intrusive<Called>(graph, before));
    variable_list results, constant;
    const size_t outputs = graph.state_->outputs();
    const std::vector<at::Tensor> all = graph.run(inputs, start, false);
    for (size_t i = 0; i < all.size(); ++i) {
      if (!all[i].defined()) continue;
      results.push_back(all[i]);
      if (i >= outputs || !is_differentiable(graph.ports().results[i])) constant.push_back(all[i]);
    }
    context->mark_non_differentiable(constant);
    return results;
  }

  static variable_list backward(AutogradContext* context, const variable_list& cotangents) {
    const auto called =
        c10::static_intrusive_pointer_cast<Called>(context->saved_data["called"].toCapsule());
    const CompiledGraph& graph = called->graph;
    variable_list inputs = context->get_saved_variables();
    graph.expect_weights(inputs);
    std::vector<bool> wanted;
    size_t next = 0;
    for (size_t i = 0; i < inputs.size(); ++i)
      wanted.push_back(inputs[i].defined() && context->needs_input_grad(next++) &&
                       is_differentiable(graph.ports().inputs[i]));
    next = 0;
    for (size_t i = 0; i < graph.state_->outputs(); ++i) {
      const composit::Type& output = graph.ports().results[i];
      if (!composit::is_defined(output)) continue;
      const at::Tensor& cotangent = cotangents[next++];
      if (is_differentiable(output))
        inputs.push_back(cotangent.defined() ? cotangent : zeros_of(output));
    }
    const std::vector<at::Tensor> gradients = graph.vjp(wanted).call(inputs, called->start);
    variable_list all(3);  // graph, start and given are no tensors
    size_t given = 0;
    for (size_t i = 0; i < wanted.size(); ++i)
      if (inputs[i].defined()) all.push_back(wanted[i] ? gradients[given++] : at::Tensor());
    return all;
  }
};

bool CompiledGraph::needs_autograd(const std::vector<at::Tensor>& inputs) const {
  if (!at::GradMode::is_enabled()) return false;
  const auto requires_grad = [](const at::Tensor& input) {
    return input.defined() && input.requires_grad();
  };
  const std::vector<size_t>& targets = state_->targets;
  return std::any_of(inputs.begin(), inputs.end(), requires_grad) &&
         std::none_of(targets.begin(), targets.end(),
                      [&](size_t target) { return requires_grad(inputs[target]); });
}

std::vector<at::Tensor> CompiledGraph::operator()(const std::vector<at::Tensor>& inputs) const {
  return call(inputs, nullptr);
}

void CompiledGraph::check_count(const std::vector<at::Tensor>& inputs) const {
  if (inputs.size() != ports().inputs.size())
    throw UserError("[" + state_->settings.name + "] expected " +
                    std::to_string(ports().inputs.size()) + " tensors, received " +
                    std::to_string(inputs.size()));
}

// The derivative is of the weights as they are, which have to be there for that.
void CompiledGraph::expect_weights(const std::vector<at::Tensor>& inputs) const {
  for (size_t i = 0; i < frozen().size(); ++i)
    if (frozen()[i] && !inputs[i].defined())
      throw UserError("[" + state_->settings.name + "] the derivative takes '" +
                      ports().input_names[i] +
                      "', which is packed, and gone: keep the model or its capture while gradients "
                      "are taken");
}

Profile CompiledGraph::profile(const std::vector<at::Tensor>& inputs) const {
  check_count(inputs);
  const at::NoGradGuard no_grad;
  Profile profile;
  run(inputs, nullptr, false, &profile);
  return profile;
}

std::vector<at::Tensor> CompiledGraph::call_as_operator(
    const std::vector<at::Tensor>& inputs) const {
  const auto is_argument = [](const LazyTensor& input) {
    return composit::input_kind(*input.node) == composit::InputKind::user_input;
  };
  const bool is_function =
      graph().mutations().empty() && graph().effects().empty() &&
      std::all_of(graph().inputs().begin(), graph().inputs().end(), is_argument) &&
      std::all_of(inputs.begin(), inputs.end(), [](const at::Tensor& x) { return x.defined(); }) &&
      std::all_of(graph().outputs().begin(), graph().outputs().end(),
                  [](const LazyTensor& output) { return output.defined(); });
  if (!is_function)
    throw UserError("[" + state_->settings.name +
                    "] runs inside a program that is captured, where no operator shows what "
                    "compiled code does to weights and other state; capture the program it was "
                    "compiled from instead");
  return evaluate_operator(inputs, *this, state_->settings);
}

std::vector<at::Tensor> CompiledGraph::call(const std::vector<at::Tensor>& inputs,
                                            const Start& start) const {
  check_count(inputs);
  if (is_recording()) return call_as_operator(inputs);
  state_->memory.expect_as_captured("[" + state_->settings.name + "] ", inputs);
  std::vector<at::Tensor> results;
  if (needs_autograd(inputs)) {
    std::vector<bool> given;
    variable_list defined;
    for (const at::Tensor& input : inputs) {
      given.push_back(input.defined());
      if (given.back()) defined.push_back(input);
    }
    defined = Call::apply(*this, start, given, at::TensorList(defined));
    size_t next = 0;
    for (size_t i = 0; i < state_->outputs(); ++i)
      results.push_back(composit::is_defined(ports().results[i]) ? defined[next++] : at::Tensor());
    results.insert(results.end(), defined.begin() + static_cast<std::ptrdiff_t>(next),
                   defined.end());
  } else {
    const at::NoGradGuard no_grad;
    results = run(inputs, start, true);
  }
  const at::NoGradGuard no_grad;
  const size_t outputs = state_->outputs();
  for (size_t i = 0; i < state_->targets.size(); ++i) {
    const at::Tensor &target = inputs[state_->targets[i]], &value = results[outputs + i];
    if (value.is_same(target))
      target.unsafeGetTensorImpl()->bump_version();
    else
      target.copy_(value);
  }
  results.resize(outputs);
  return results;
}

}  // namespace flashlight
