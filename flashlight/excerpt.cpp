// Captures pieces of a program that goes on. They cannot be run again, so each is confirmed by the
// piece before it.
#include <ATen/Context.h>

#include <algorithm>

#include "composit/ir/compare.h"
#include "composit/ir/error.h"
#include "flashlight/capture_state.h"
#include "flashlight/look_run.h"
#include "tracer/memory_view.h"

namespace flashlight {
namespace {

using composit::InputKind;

bool same_content(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_bits);
}

// True if a replay of `state`, on copies of the piece's inputs, gives the results of the piece and
// leaves the same values in the inputs that it writes.
bool replays_alike(const CaptureBase::State& state, const tracer::Recording& recording) {
  std::vector<at::Tensor> inputs = state.bind(state.shown_arguments());
  std::vector<std::pair<size_t, at::Tensor>> left;  // index of the input, its tensor now
  for (const composit::Mutation& mutation : state.graph.mutations())
    for (size_t i = 0; i < inputs.size(); ++i)
      for (const tracer::RecordedInput& recorded : recording.inputs)
        if (state.graph.inputs()[i].node == mutation.target.node &&
            recorded.name == input_name(*mutation.target.node)) {
          inputs[i] = tracer::copy_keeping_strides(inputs[i].detach());
          left.emplace_back(i, recorded.tensor);
        }
  const GeneratorStates now(state.generators);
  if (state.example_generator.defined())
    at::Generator(at::globalContext().defaultGenerator(c10::kCPU))
        .set_state(state.example_generator);
  bool alike = true;
  try {
    alike = same_content(state.plan().run(inputs), state.example_results);
  } catch (const composit::UserError&) {
    alike = false;
  }
  now.restore();
  return alike && std::all_of(left.begin(), left.end(), [&](const auto& one) {
           return same_bits(inputs[one.first], one.second);
         });
}

}  // namespace

CaptureBase CaptureBase::excerpt(tracer::Recording& recording, FlatValues results,
                                 at::Tensor generator) {
  auto state = std::make_shared<State>();
  state->by_name = true;  // no warnings in the program's error stream
  if (draws(recording)) state->example_generator = std::move(generator);
  recording.gradients.clear();  // they belong to the program, which goes on
  tracer::Published published = tracer::publish(recording);
  state->arguments.kind = Structure::Kind::tuple;
  for (tracer::RecordedInput& input : published.inputs) {
    if (input.original.defined()) input.tensor = std::move(input.original);
    if (input.kind != InputKind::user_input) continue;
    state->arguments.children.emplace_back();
    state->example_arguments.push_back(input.tensor);
  }
  state->take(std::move(published));
  state->replayed = {state->graph, state->inputs, {}};
  state->results = std::move(results.structure);
  state->example_results = std::move(results.tensors);
  return CaptureBase(std::move(state));
}

bool CaptureBase::confirm_by(const CaptureBase& before, const tracer::Recording& recording) const {
  State& state = *state_;
  const bool other_content = !state.graph.mutations().empty() ||
                             !same_content(state.example_arguments, before.now().shown_arguments());
  if (!other_content || !composit::compare(before.graph(), state.graph).empty() ||
      !replays_alike(state, recording))
    return false;
  state.trust = Trust::confirmed;
  return true;
}

}  // namespace flashlight
