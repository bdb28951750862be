#include "flashlight/capture.h"

#include <ATen/Context.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "composit/io/log.h"
#include "composit/ir/error.h"
#include "composit/ir/knobs.h"
#include "flashlight/capture_state.h"
#include "flashlight/followed_numbers.h"
#include "flashlight/holders.h"
#include "flashlight/look_run.h"
#include "flashlight/looks.h"
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

// The last operator before the program left the scope that gave a tensor or has an effect, with its
// source location. Empty if there was none.
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

// Runs the program. If it accesses memory that strict mode guards, the error names an operator.
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
    } catch (const std::exception&) {  // must not hide the first error
    }
    throw UserError(*refused + (place.empty() ? "" : "; the last operator was " + place));
  }
}

bool owns_its_memory(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return true;
  const c10::Storage& storage = tensor.storage();
  return storage.nbytes() == 0 || storage.data_ptr().get_context() != nullptr;
}

std::vector<NamedTensor> named_inputs(const tracer::Published& published) {
  std::vector<NamedTensor> inputs;
  for (const tracer::RecordedInput& input : published.inputs) {
    const bool user = input.kind == InputKind::user_input;
    inputs.push_back({input.name, user ? at::Tensor() : input.tensor, input.kind});
  }
  return inputs;
}

}  // namespace

at::Tensor default_generator_state() {
  return at::globalContext().defaultGenerator(c10::kCPU).get_state();
}

std::vector<at::Tensor> bind_inputs(const std::vector<NamedTensor>& inputs,
                                    const std::vector<at::Tensor>& arguments,
                                    const Structure& structure) {
  std::vector<at::Tensor> bound;
  bound.reserve(inputs.size());
  size_t next = 0;
  for (const NamedTensor& input : inputs) {
    if (is_user_input(input) && next == arguments.size())
      throw UserError("[capture] expected more than " + std::to_string(arguments.size()) +
                      " tensors as arguments: " + str(structure));
    bound.push_back(is_user_input(input) ? arguments[next++] : input.tensor);
  }
  if (next != arguments.size())
    throw UserError("[capture] expected " + std::to_string(next) +
                    " tensors as arguments, received " + std::to_string(arguments.size()) +
                    "; they are " + str(structure));
  return bound;
}

std::string_view name(Trust trust) {
  switch (trust) {
    case Trust::seen_once:
      return "seen once";
    case Trust::confirmed:
      return "confirmed";
    case Trust::equal_inputs:
      return "seen with equal inputs";
    case Trust::translated:
      return "made from its source";
  }
  return "";
}

const tracer::Plan& CaptureBase::State::plan() const {
  std::call_once(planned_, [this] {
    tracer::PlanOptions options{grad, generators};
    options.as_program = of_family;
    // A file says what its exporter took for strides: of axes of size 1 LibTorch's run has others,
    // and then other kernels.
    options.pin_strides = trust != Trust::translated;
    std::vector<const Node*> nodes;
    if (!changing.empty())
      for_each_node(replayed.graph, [&](const Node& node) { nodes.push_back(&node); });
    for (const ChangingPlace& place : changing)
      options.numbers.push_back({nodes.at(place.node), place.key, place.formula, place.reads});
    plan_.emplace(replayed.graph, std::move(options));
  });
  return *plan_;
}

std::vector<at::Tensor> CaptureBase::State::run_plan(const std::vector<at::Tensor>& arguments,
                                                     const composit::NumberValues& numbers) const {
  const std::vector<at::Tensor> inputs = bind_replay(arguments);
  std::vector<at::Tensor> results = plan().run(inputs, nullptr, [&](const std::string& name) {
    const auto found = numbers.find(name);
    if (found == numbers.end())
      throw UserError("[capture] expected the number '" + name +
                      "', which differs from call to call: call the family");
    return found->second;
  });
  const size_t own = results.size() - replayed.gradients.size();
  for (size_t i = 0; i < replayed.gradients.size(); ++i)
    at::Tensor(inputs[replayed.gradients[i]]).mutable_grad() = results[own + i];
  results.resize(own);
  return results;
}

std::vector<at::Tensor> CaptureBase::State::replay(const std::vector<at::Tensor>& arguments,
                                                   const composit::NumberValues& numbers) const {
  if (changing.empty() || numbers.contains(composit::kCalls)) return run_plan(arguments, numbers);
  const std::lock_guard one_after_the_other(counting_);
  composit::NumberValues all = numbers;
  all[composit::kCalls] = static_cast<double>(next_call);
  std::vector<at::Tensor> results = run_plan(arguments, all);
  ++next_call;
  return results;
}

bool CaptureBase::State::follows_own_values() const {
  return std::all_of(changing.begin(), changing.end(), [](const ChangingPlace& place) {
    bool own = true;
    place.formula.for_each_name([&](const auto& name) { own = own && place.reads.contains(name); });
    return own;
  });
}

void CaptureBase::State::expect_fixed_numbers(const char* what) const {
  if (changing.empty()) return;
  if (follows_own_values())
    throw UserError("[" + std::string(what) +
                    "] expected a capture whose numbers stay as they are, received one with a "
                    "number that follows from what it reads (" +
                    print(changing.front().formula) +
                    "): call it or compile it, or capture with seen_once");
  throw UserError("[" + std::string(what) +
                  "] expected a capture whose numbers stay as they are, received one whose numbers "
                  "follow its calls (" +
                  print(changing.front().formula) +
                  "): only a replay can count; keep the number in a tensor of the "
                  "program");
}

size_t CaptureBase::State::references(const at::Tensor& tensor) const {
  const auto count = [&](const std::vector<NamedTensor>& list) {
    return std::count_if(list.begin(), list.end(), [&](const NamedTensor& other) {
      return other.tensor.defined() && other.tensor.is_same(tensor);
    });
  };
  return static_cast<size_t>(count(inputs) + count(replayed.inputs));
}

void CaptureBase::State::note_held_state(const std::deque<std::shared_ptr<State>>& versions) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const at::Tensor& tensor = inputs[i].tensor;
    if (is_user_input(inputs[i]) || !is_unnamed(inputs[i].name) || !tensor.has_storage()) continue;
    Held held{i, 0, 0};
    std::set<const c10::TensorImpl*> ours;
    for (const auto& version : versions) {
      held.tensors += version->references(tensor);
      for (const auto* list : {&version->inputs, &version->replayed.inputs})
        for (const NamedTensor& other : *list)
          if (other.tensor.defined() && other.tensor.is_alias_of(tensor))
            ours.insert(other.tensor.unsafeGetTensorImpl());
    }
    held.storages = ours.size();
    if (references_to(tensor) > held.tensors || references_to(tensor.storage()) > held.storages)
      this->held.push_back(held);
  }
}

void CaptureBase::State::expect_state_is_held() const {
  for (const Held& one : held) {
    const at::Tensor& tensor = inputs[one.input].tensor;
    if (references_to(tensor) > one.tensors || references_to(tensor.storage()) > one.storages)
      continue;
    throw UserError(
        "[capture] expected the state '" + inputs[one.input].name +
        "' where the program keeps it, and nobody holds it any more: the program has put "
        "another tensor in its place since; capture again, or write into the tensor "
        "(copy_)");
  }
}

std::vector<at::Tensor> CaptureBase::State::bind(const std::vector<at::Tensor>& arguments) const {
  return bind_inputs(inputs, arguments, this->arguments);
}

std::vector<at::Tensor> CaptureBase::State::bind_replay(
    const std::vector<at::Tensor>& arguments) const {
  return bind_inputs(replayed.inputs, arguments, this->arguments);
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

std::vector<at::Tensor> copies_of(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> result;
  for (const at::Tensor& tensor : tensors)
    result.push_back(tracer::copy_keeping_strides(tensor.detach()));
  return result;
}

std::vector<at::Tensor> own_results(const std::vector<at::Tensor>& results,
                                    const tracer::Recording& recording) {
  // The references that we hold: to tensors, and of these tensors to memory.
  std::unordered_map<const c10::TensorImpl*, size_t> tensors;
  std::unordered_map<const c10::StorageImpl*, size_t> references;
  std::vector<at::Tensor> own;
  const auto storage_of = [](const at::Tensor& tensor) {
    return tensor.storage().unsafeGetStorageImpl();
  };
  for (const at::Tensor& result : results) {
    // detach() would keep the graph, for forward mode.
    own.push_back(result.defined() ? result.variable_data() : result);
    if (!result.defined() || !result.has_storage()) continue;
    references[storage_of(result)] += tensors[result.unsafeGetTensorImpl()]++ == 0 ? 2 : 1;
  }
  std::unordered_set<const c10::StorageImpl*> kept;  // memory that the program keeps
  for (const at::Tensor& result : results)
    if (result.defined() && result.has_storage() &&
        (result.use_count() > tensors[result.unsafeGetTensorImpl()] ||
         result.storage().use_count() > references[storage_of(result)]))
      kept.insert(storage_of(result));
  const auto is_read_only_input = [&](const at::Tensor& tensor) {
    for (uint32_t i = 0; i < recording.inputs.size(); ++i) {
      const at::Tensor& input = recording.inputs[i].tensor;
      if (!input.has_storage() || storage_of(input) != storage_of(tensor)) continue;
      return std::none_of(recording.mutations.begin(), recording.mutations.end(),
                          [&](const auto& mutation) { return mutation.input == i; });
    }
    return false;
  };
  for (at::Tensor& tensor : own)
    if (tensor.defined() && tensor.has_storage() && kept.count(storage_of(tensor)) > 0 &&
        !is_read_only_input(tensor))
      tensor = tracer::copy_keeping_strides(tensor);
  return own;
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

bool is_unnamed(const std::string& name) {
  const size_t number = name.find('_') + 1;  // 0 if there is none
  const std::string kind = name.substr(0, number);
  return (kind == "parameter_" || kind == "buffer_" || kind == "state_") &&
         name.find_first_not_of("0123456789", number) == name.npos;
}

bool draws(const tracer::Recording& recording) {
  for (uint32_t id = 0; id < recording.records.size(); ++id)
    if (const tracer::Record& record = recording.records[id];
        record.effect && (record.kind == tracer::RecordKind::generator_state ||
                          (record.info != nullptr && record.info->may_draw)))
      return true;
  return false;
}

CaptureBase::CaptureBase(std::shared_ptr<State> state) : state_(std::move(state)) {}

std::vector<tracer::RecordId> CaptureBase::State::take(tracer::Recording& recording,
                                                       const std::vector<FollowedNumber>& numbers) {
  tracer::Published published = tracer::publish(recording);
  std::vector<tracer::RecordId> steps = std::move(published.steps);
  changing = changing_places(numbers, recording, published);
  take(std::move(published));
  replayed = {graph, inputs, {}};
  if (recording.gradients.empty()) return steps;
  tracer::Published with_gradients = tracer::publish(recording, /*gradients=*/true);
  changing = changing_places(numbers, recording, with_gradients);
  replayed = {with_gradients.graph, named_inputs(with_gradients), with_gradients.gradients};
  return std::move(with_gradients.steps);
}

void CaptureBase::State::take(tracer::Published published) {
  graph = published.graph;
  grad = published.grad;
  for (const tracer::RecordedInput& input : published.inputs)
    if (!input.tied.empty()) tied[input.name] = input.tied;
  inputs = named_inputs(published);
  for (const NamedTensor& input : inputs) borrows_memory |= !owns_its_memory(input.tensor);
  for (const tracer::RecordedConstant& constant : published.constants)
    borrows_memory |= !owns_its_memory(constant.tensor);
  for (const tracer::RecordedGenerator& generator : published.generators)
    if (auto live = generator.live.lock())
      generators.emplace(generator.role, at::Generator(std::move(live)));
  remarks = std::move(published.remarks);
  composit::log_debug(c10::str("captured ", graph.size(), " nodes, ", inputs.size(), " inputs, ",
                               remarks.size(), " remarks"));
}

std::shared_ptr<CaptureBase::State> state_of(ProgramRun& run, FlatValues arguments,
                                             at::Tensor generator) {
  auto state = std::make_shared<CaptureBase::State>();
  state->arguments = std::move(arguments.structure);
  state->example_arguments = std::move(arguments.tensors);
  if (draws(*run.recording)) state->example_generator = std::move(generator);
  run.records = state->take(*run.recording, {});
  state->results = std::move(run.results.structure);
  run.results.tensors = own_results(run.results.tensors, *run.recording);
  state->notes = living_values(*run.recording, run.results.tensors);
  state->example_results = std::move(run.results.tensors);
  return state;
}

CaptureBase CaptureBase::capture(TracedProgram program, FlatValues arguments,
                                 const TraceOptions& options) {
  FlatValues example{copies_of(arguments.tensors), arguments.structure};
  at::Tensor generator = default_generator_state();
  const std::vector<NamedTensor> named =
      program.named ? program.named() : std::vector<NamedTensor>();
  ProgramRun run = run_recorded(program.run, arguments, named, options);
  const std::shared_ptr<State> state = state_of(run, std::move(example), std::move(generator));
  state->program = program.run;
  state->program_as = program.run_as;
  state->named = program.named;
  state->options = options;
  program.seen_once = program.seen_once || !composit::knob(composit::Knob::seen_once).empty();
  state->by_name = program.seen_once;
  if (program.seen_once) state->recording = std::move(run.recording);
  CaptureBase capture(state);
  capture.looks_ = std::make_shared<Looks>(std::move(program), state, std::move(run.recording));
  return capture;
}

const std::shared_ptr<CaptureBase::State>& CaptureBase::shared() const {
  return looks_ ? looks_->current() : state_;
}

CaptureBase CaptureBase::frozen() const { return CaptureBase(shared()); }

Trust CaptureBase::trust() const { return now().trust; }
std::string CaptureBase::refusal() const { return looks_ ? looks_->refusal() : std::string(); }

void CaptureBase::expect_trust(const char* what) const {
  if (const std::string why = refusal(); !why.empty()) throw UserError(why);
  const State& state = now();
  if (state.trust != Trust::seen_once || state.by_name || state.warned.exchange(true)) return;
  composit::log_warning(
      std::string(what) + " is of a capture that was seen once: " +
      (looks_ ? "call it on other inputs to confirm it, or trace(…, confirm(inputs…))"
              : "compare it with a second run of its program"));
}

void CaptureBase::expect_fixed_numbers(const char* what) const { now().expect_fixed_numbers(what); }

const composit::Graph& CaptureBase::graph() const { return now().graph; }
const Structure& CaptureBase::argument_structure() const { return now().arguments; }
const Structure& CaptureBase::result_structure() const { return now().results; }
const std::vector<at::Tensor>& CaptureBase::example_arguments() const {
  return now().shown_arguments();
}

const std::vector<at::Tensor>& CaptureBase::State::shown_arguments() const {
  std::call_once(made_arguments_, [this] {
    if (make_arguments) example_arguments = make_arguments();
  });
  return example_arguments;
}
const std::vector<at::Tensor>& CaptureBase::example_results() const {
  return now().example_results;
}

const at::Tensor& CaptureBase::example_generator() const { return now().example_generator; }

std::vector<at::Tensor> CaptureBase::bind(const std::vector<at::Tensor>& arguments) const {
  return now().bind(arguments);
}

FlatValues CaptureBase::call(const std::vector<at::Tensor>& arguments) const {
  if (looks_) return looks_->call(arguments);
  return {now().replay(arguments), now().results};
}

std::vector<at::Tensor> CaptureBase::replay(const std::vector<at::Tensor>& arguments) const {
  expect_trust("a replay");
  return now().replay(arguments);
}

std::vector<at::Tensor> CaptureBase::evaluate(const std::vector<at::Tensor>& arguments,
                                              const composit::Backend& backend) const {
  now().expect_fixed_numbers("evaluate");
  return evaluate_by(backend, now().graph, now().bind(arguments));
}

void detail::expect_structure(const Structure& expected, const Structure& received) {
  if (received == expected) return;
  throw UserError(
      "[capture] expected arguments " + str(expected) + ", received " + str(received) +
      "; numbers and the number of tensors are part of a capture: capture again for these with "
      "trace(model, inputs…)");
}

std::vector<NamedTensor> CaptureBase::state() const {
  std::vector<NamedTensor> result;
  for (const NamedTensor& input : now().inputs)
    if (!is_user_input(input)) result.push_back(input);
  return result;
}

std::vector<std::pair<std::string, at::Tensor>> CaptureBase::constants() const {
  std::vector<std::pair<std::string, at::Tensor>> result;
  for_each_node(now().graph, [&](const Node& node) {
    if (node.op() != composit::ops::kConstant) return;
    if (const auto* array = node.attribute("value").get_if<composit::Array>())
      result.emplace_back(node.annotation("name"), tracer::to_tensor(*array));
  });
  return result;
}

Statistics CaptureBase::statistics() const {
  Statistics statistics;
  statistics.nodes = now().graph.size();
  statistics.calls = now().plan().size();
  for_each_node(now().graph, [&](const Node& node) {
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
