#include "flashlight/open_capture.h"

#include <algorithm>
#include <utility>

#include "composit/ir/compare.h"
#include "composit/ir/error.h"
#include "composit/ir/knobs.h"
#include "flashlight/capture_state.h"
#include "tracer/recorder.h"

namespace flashlight {
namespace {

using composit::InputKind;
using composit::UserError;

// A check replays the run on its inputs as they were.
TraceOptions with_originals(TraceOptions options) {
  options.keep_originals = true;
  return options;
}

void expect_defined(const at::Tensor& tensor, const std::string& what) {
  if (!tensor.defined())
    throw UserError("[scope] " + what + ": expected a tensor, received an undefined one");
}

// The first parameter or buffer of the run that is another tensor than the capture's, and began
// with other values; empty if there is none.
std::string other_state(const CaptureBase::State& known, const tracer::Recording& recording) {
  for (const tracer::RecordedInput& input : recording.inputs) {
    const auto same_name = [&](const NamedTensor& other) {
      return other.kind != InputKind::user_input && other.name == input.name;
    };
    const auto held = std::find_if(known.inputs.begin(), known.inputs.end(), same_name);
    if (held == known.inputs.end() || held->tensor.is_same(input.tensor)) continue;
    const at::Tensor& before = input.original.defined() ? input.original : input.tensor;
    if (!same_bits(held->tensor, before)) return input.name;
  }
  return "";
}

bool other_content(const std::vector<at::Tensor>& now, const std::vector<at::Tensor>& before) {
  return std::equal(now.begin(), now.end(), before.begin(), before.end(),
                    [](const at::Tensor& a, const at::Tensor& b) { return !same_bits(a, b); });
}

}  // namespace

OpenCapture::OpenCapture(TraceOptions options)
    : generator_(default_generator_state()), before_({}) {
  example_.structure.kind = Structure::Kind::tuple;
  scope_.emplace(with_originals(std::move(options)));
  scope_->recorder().observe([this](tracer::RecordId record, c10::ArrayRef<at::Tensor> tensors) {
    samples_.add(record, tensors);
  });
}

// The values that operators have read so far would stay constants of the capture.
void OpenCapture::expect_unread(const at::Tensor& tensor, const std::string& name) {
  const tracer::Recording& recording = scope_->recorder().recording();
  const bool started = recording.records.size() > recording.inputs.size();
  if (started && scope_->recorder().knows(tensor))
    throw UserError("[scope] '" + name +
                    "': expected a tensor that no operator of the scope has read or made; name "
                    "inputs before the program runs");
}

void OpenCapture::add(const at::Tensor& tensor, const std::string& name, InputKind kind) {
  expect_unread(tensor, name);
  if (!names_.insert(name).second)
    throw UserError("[scope] expected a name that no other input has, received '" + name +
                    "' once more");
  scope_->name(tensor, name, kind);
}

void OpenCapture::input(const at::Tensor& tensor, const std::string& name) {
  const std::string known = name.empty() ? "input_" + std::to_string(arguments_.size()) : name;
  expect_defined(tensor, "input '" + known + "'");
  const Unrecorded quiet;
  at::Tensor copy = std::move(copies_of({tensor}).front());
  memory_.add(tensor, "'" + known + "'");
  add(tensor, known, InputKind::user_input);
  arguments_.push_back(tensor);
  example_.tensors.push_back(std::move(copy));
  example_.structure.children.emplace_back();
}

void OpenCapture::state(const at::Tensor& tensor, const std::string& name, InputKind kind) {
  constexpr int64_t kWatchedBytes = 64 << 10;  // as looks do
  if (name.empty())
    throw UserError("[scope] expected a name for a parameter or buffer, received an empty one");
  expect_defined(tensor, std::string(composit::name(kind)) + " '" + name + "'");
  const Unrecorded quiet;
  memory_.add(tensor, "'" + name + "'", kWatchedBytes);
  add(tensor, name, kind);
}

void OpenCapture::output(const at::Tensor& tensor, const std::string& name) {
  const std::string known = name.empty() ? std::to_string(outputs_.size()) : name;
  expect_defined(tensor, "output '" + known + "'");
  if (!scope_->recorder().knows(tensor))
    throw UserError("[scope] output '" + known +
                    "': expected a tensor that was made in the scope or is one of its inputs, "
                    "received one that the scope has not seen");
  if (!names_of_outputs_.empty() && names_of_outputs_.front().empty() != name.empty())
    throw UserError("[scope] output '" + known +
                    "': expected names for all outputs or for none of them");
  if (!name.empty() && !output_names_.insert(name).second)
    throw UserError("[scope] expected a name that no other output has, received '" + name +
                    "' once more");
  outputs_.push_back(tensor);
  names_of_outputs_.push_back(name);
}

Structure OpenCapture::result_structure() const {
  Structure structure;
  if (outputs_.size() == 1 && names_of_outputs_.front().empty()) return structure;
  structure.children.resize(outputs_.size());
  structure.kind = output_names_.empty() ? Structure::Kind::tuple : Structure::Kind::map;
  if (!output_names_.empty()) structure.keys = names_of_outputs_;
  return structure;
}

ProgramRun OpenCapture::finish() {
  ProgramRun run;
  try {
    run.recording = scope_->finish(outputs_);
  } catch (...) {
    scope_.reset();
    throw;
  }
  scope_.reset();
  run.results = {outputs_, result_structure()};
  return run;
}

CaptureBase OpenCapture::end() {
  ProgramRun run = finish();
  const Unrecorded quiet;
  const auto state = state_of(run, std::move(example_), generator_);
  state->by_name = !composit::knob(composit::Knob::seen_once).empty();
  return CaptureBase(state);
}

CheckReport OpenCapture::check(const CaptureBase& capture) {
  LookRun run{before_};
  run.program = finish();
  const Unrecorded quiet;
  run.after = GeneratorStates({});
  capture.expect_fixed_numbers("check");
  CheckReport report;
  report.error = memory_.written_unseen(*run.program.recording);
  if (!report.error.empty()) {
    report.error =
        "the program changed the memory of " + report.error + ", and no operator wrote it";
    return report;
  }
  run.state = state_of(run.program, std::move(example_), generator_);
  run.records = std::move(run.program.records);
  run.program.results.tensors = run.state->example_results;
  for (const auto& [role, generator] : run.state->generators)
    if (role != "default")
      throw UserError(
          "[check] expected a program that draws from the default generator, received one that "
          "draws from '" +
          role + "'");
  run.samples = std::move(samples_);
  const CaptureBase::State& known = capture.now();
  for (const composit::Difference& difference :
       composit::compare(known.replayed.graph, run.state->replayed.graph))
    report.graph_differences.push_back(composit::str(difference));
  if (report.graph_differences.empty() && known.results != run.state->results)
    report.graph_differences.push_back("the program's results are " + str(run.state->results) +
                                       ", before " + str(known.results));
  if (!report.graph_differences.empty()) return report;
  if (const std::string other = other_state(known, *run.program.recording); !other.empty()) {
    report.error = "'" + other + "' has other values than in the capture: capture again";
    return report;
  }
  report.error = verify(run, arguments_, 0).difference;
  report.compared = outputs_.size() + run.state->graph.mutations().size();
  const bool varied = !run.state->graph.mutations().empty() ||
                      other_content(run.state->example_arguments, known.shown_arguments());
  if (report.ok() && varied && capture.state_->trust == Trust::seen_once)
    capture.state_->trust = Trust::confirmed;
  return report;
}

}  // namespace flashlight
