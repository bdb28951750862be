#include "flashlight/capture.h"

#include <ATen/Context.h>

#include "composit/io/log.h"
#include "composit/ir/error.h"
#include "flashlight/capture_state.h"
#include "tracer/convert.h"
#include "tracer/memory_view.h"
#include "tracer/storage_lock.h"

namespace flashlight {
namespace {

using composit::InputKind;
using composit::Node;
using composit::UserError;

bool is_user_input(const NamedTensor& input) { return input.kind == InputKind::user_input; }

size_t bytes_of(const at::Tensor& tensor) { return tensor.defined() ? tensor.nbytes() : 0; }

// Copies that alias each other as the originals do are not worth it: an example is for looking at
// and for tests.
std::vector<at::Tensor> copies(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> result;
  for (const at::Tensor& tensor : tensors)
    result.push_back(tracer::copy_keeping_strides(tensor.detach()));
  return result;
}

at::Tensor default_generator_state() {
  return at::globalContext().defaultGenerator(c10::kCPU).get_state();
}

bool draws(const tracer::Recording& recording) {
  for (uint32_t id = 0; id < recording.records.size(); ++id)
    if (const tracer::Record& record = recording.records[id];
        record.effect && (record.kind == tracer::RecordKind::generator_state ||
                          (record.info != nullptr && record.info->may_draw)))
      return true;
  return false;
}

// Where the program was when it left the scope: the last operator that gave a tensor or has an
// effect. Empty before the first one.
std::string last_operator(TraceScope& scope) {
  const auto recording = scope.finish({});
  recording->mutations.clear();
  for (uint32_t id = recording->records.size(); id-- > 0 && recording->outputs.empty();) {
    const tracer::Record& record = recording->records[id];
    if (record.kind != tracer::RecordKind::op || record.replays) continue;
    for (uint32_t i = 0; i < record.value_count; ++i)
      recording->outputs.push_back(record.values + i);
  }
  const composit::Graph graph = tracer::publish(*recording).graph;
  const Node* last = graph.nodes().empty() ? nullptr : graph.nodes().back().get();
  return last == nullptr || composit::is_input(*last) ? "" : tracer::place_of(*last);
}

// Runs the program, and says where it accessed memory that strict mode guards.
FlatValues run_in(TraceScope& scope, const Program& program,
                  const std::vector<at::Tensor>& arguments) {
  try {
    return program(arguments);
  } catch (const std::exception& error) {
    const auto refused = tracer::refused_access(error);
    if (!refused) throw;
    std::string place;
    try {
      place = last_operator(scope);
    } catch (const std::exception&) {  // must not hide what went wrong first
    }
    throw UserError(*refused + (place.empty() ? "" : "; the last operator was " + place));
  }
}

}  // namespace

const tracer::Plan& CaptureBase::State::plan() const {
  std::call_once(planned_, [this] { plan_.emplace(graph, tracer::PlanOptions{grad, generators}); });
  return *plan_;
}

std::vector<at::Tensor> CaptureBase::State::bind(const std::vector<at::Tensor>& arguments) const {
  std::vector<at::Tensor> bound;
  bound.reserve(inputs.size());
  size_t next = 0;
  for (const NamedTensor& input : inputs) {
    if (is_user_input(input) && next == arguments.size())
      throw UserError("[capture] expected more than " + std::to_string(arguments.size()) +
                      " tensors as arguments: " + str(this->arguments));
    bound.push_back(is_user_input(input) ? arguments[next++] : input.tensor);
  }
  if (next != arguments.size())
    throw UserError("[capture] expected " + std::to_string(next) +
                    " tensors as arguments, received " + std::to_string(arguments.size()) +
                    "; they are " + str(this->arguments));
  return bound;
}

ProgramRun run_recorded(const Program& program, const FlatValues& arguments,
                        const std::vector<NamedTensor>& named, const TraceOptions& options,
                        const tracer::Recorder::Observer& observer) {
  ProgramRun run;
  TraceScope scope(options);
  if (observer) scope.recorder().observe(observer);
  const std::vector<std::string> names = tensor_names(arguments.structure, "input");
  for (size_t i = 0; i < arguments.tensors.size(); ++i)
    scope.name(arguments.tensors[i], names[i], InputKind::user_input);
  for (const NamedTensor& tensor : named) scope.name(tensor.tensor, tensor.name, tensor.kind);
  run.results = run_in(scope, program, arguments.tensors);
  run.recording = scope.finish(run.results.tensors);
  return run;
}

std::vector<at::Tensor> evaluate_by(const composit::Backend& backend, const composit::Graph& graph,
                                    const std::vector<at::Tensor>& inputs) {
  std::vector<composit::Array> arrays;
  for (const at::Tensor& input : inputs)
    arrays.push_back(input.defined() ? tracer::to_array(input.detach()) : composit::Array());
  std::vector<composit::Array> results = backend.compile(graph)(arrays);
  results.resize(graph.outputs().size());
  std::vector<at::Tensor> tensors;
  for (const composit::Array& result : results)
    tensors.push_back(result.defined() ? tracer::to_tensor(result) : at::Tensor());
  return tensors;
}

CaptureBase::CaptureBase(std::shared_ptr<State> state) : state_(std::move(state)) {}

void CaptureBase::State::take(tracer::Published published) {
  graph = published.graph;
  grad = published.grad;
  for (tracer::RecordedInput& input : published.inputs) {
    if (!input.tied.empty()) tied[input.name] = input.tied;
    const bool user = input.kind == InputKind::user_input;
    inputs.push_back(
        {std::move(input.name), user ? at::Tensor() : std::move(input.tensor), input.kind});
  }
  for (const tracer::RecordedGenerator& generator : published.generators)
    if (auto live = generator.live.lock())
      generators.emplace(generator.role, at::Generator(std::move(live)));
  remarks = std::move(published.remarks);
  composit::log_debug(c10::str("captured ", graph.size(), " nodes, ", inputs.size(), " inputs, ",
                               remarks.size(), " remarks"));
}

CaptureBase CaptureBase::excerpt(tracer::Recording& recording, FlatValues results,
                                 at::Tensor generator) {
  auto state = std::make_shared<State>();
  if (draws(recording)) state->example_generator = std::move(generator);
  tracer::Published published = tracer::publish(recording);
  state->arguments.kind = Structure::Kind::tuple;
  for (tracer::RecordedInput& input : published.inputs) {
    if (input.original.defined()) input.tensor = std::move(input.original);
    if (input.kind != InputKind::user_input) continue;
    state->arguments.children.emplace_back();
    state->example_arguments.push_back(input.tensor);
  }
  state->take(std::move(published));
  state->results = std::move(results.structure);
  state->example_results = std::move(results.tensors);
  return CaptureBase(std::move(state));
}

CaptureBase CaptureBase::capture(Program program, FlatValues arguments,
                                 std::vector<NamedTensor> named, const TraceOptions& options) {
  auto state = std::make_shared<State>();
  state->example_arguments = copies(arguments.tensors);
  at::Tensor generator = default_generator_state();
  ProgramRun run = run_recorded(program, arguments, named, options);
  if (draws(*run.recording)) state->example_generator = std::move(generator);
  state->take(tracer::publish(*run.recording));
  state->arguments = std::move(arguments.structure);
  state->results = std::move(run.results.structure);
  state->example_results = std::move(run.results.tensors);
  state->program = std::move(program);
  state->named = std::move(named);
  state->options = options;
  return CaptureBase(std::move(state));
}

const composit::Graph& CaptureBase::graph() const { return state_->graph; }
const Structure& CaptureBase::argument_structure() const { return state_->arguments; }
const Structure& CaptureBase::result_structure() const { return state_->results; }
const std::vector<at::Tensor>& CaptureBase::example_arguments() const {
  return state_->example_arguments;
}
const std::vector<at::Tensor>& CaptureBase::example_results() const {
  return state_->example_results;
}

const at::Tensor& CaptureBase::example_generator() const { return state_->example_generator; }

std::vector<at::Tensor> CaptureBase::bind(const std::vector<at::Tensor>& arguments) const {
  return state_->bind(arguments);
}

std::vector<at::Tensor> CaptureBase::replay(const std::vector<at::Tensor>& arguments) const {
  return state_->plan().run(state_->bind(arguments));
}

std::vector<at::Tensor> CaptureBase::evaluate(const std::vector<at::Tensor>& arguments,
                                              const composit::Backend& backend) const {
  return evaluate_by(backend, state_->graph, state_->bind(arguments));
}

void CaptureBase::expect_structure(const Structure& arguments) const {
  if (arguments == state_->arguments) return;
  throw UserError(
      "[capture] expected arguments " + str(state_->arguments) + ", received " + str(arguments) +
      "; numbers and the number of tensors are part of a capture: capture again for these with "
      "trace(model, inputs…)");
}

std::vector<NamedTensor> CaptureBase::state() const {
  std::vector<NamedTensor> result;
  for (const NamedTensor& input : state_->inputs)
    if (!is_user_input(input)) result.push_back(input);
  return result;
}

std::vector<std::pair<std::string, at::Tensor>> CaptureBase::constants() const {
  std::vector<std::pair<std::string, at::Tensor>> result;
  for_each_node(state_->graph, [&](const Node& node) {
    if (node.op() != composit::ops::kConstant) return;
    if (const auto* array = node.attribute("value").get_if<composit::Array>())
      result.emplace_back(node.annotation("name"), tracer::to_tensor(*array));
  });
  return result;
}

Statistics CaptureBase::statistics() const {
  Statistics statistics;
  statistics.nodes = state_->graph.size();
  statistics.calls = state_->plan().size();
  for_each_node(state_->graph, [&](const Node& node) {
    if (!is_input(node) && node.op() != composit::ops::kConstant)
      ++statistics.calls_by_op[node.op().str()];
    if (node.find_run("expected")) ++statistics.guards;
  });
  for (const NamedTensor& held : state()) {
    statistics.parameters += static_cast<size_t>(held.tensor.numel());
    statistics.bytes += bytes_of(held.tensor);
  }
  for (const auto& [name, tensor] : constants()) statistics.bytes += bytes_of(tensor);
  return statistics;
}

}  // namespace flashlight
