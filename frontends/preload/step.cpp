#include "frontends/preload/step.h"

#include <ATen/Context.h>
#include <execinfo.h>
#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "flashlight/capture.h"
#include "tracer/backtrace.h"
#include "tracer/dispatch_key.h"
#include "tracer/liveness.h"
#include "tracer/recorder.h"

namespace flashlight::preload {
namespace {

using tracer::kNone;
using tracer::Record;
using tracer::RecordId;
using tracer::Recording;
using tracer::RecordKind;
using tracer::ValueId;

TraceOptions trace_options(bool lines, HostLine host_line,
                           std::function<void(const std::string&)> on_error) {
  TraceOptions options;
  options.source_lines = lines && host_line == nullptr;
  if (lines && host_line != nullptr) options.host_line = host_line;
  options.excerpt = true;
  options.on_error = std::move(on_error);
  return options;
}

// The line of the program, in C++.
std::string line_by_stack() {
  tracer::Backtrace frames{};
  ::backtrace(frames.data(), static_cast<int>(frames.size()));
  return tracer::SourceLines({frames}).user_line(0);
}

at::Tensor default_generator_state() {
  return at::globalContext().defaultGenerator(c10::kCPU).get_state();
}

// To ask for a number or to detach is not to read; nor is to make the seed of backward().
bool reads(const Record& record) {
  if (record.kind != RecordKind::op) return true;
  static const tracer::OpInfo* seed = tracer::find_op("aten::ones_like");
  return !record.info->value_query && !record.info->detach && record.info != seed;
}

// Does the program see it, or is it inside of a composite operator?
bool is_visible(const Recording& recording, ValueId value) {
  uint32_t composite = recording.records[recording.values[value].record].composite;
  for (; composite != kNone; composite = recording.composites[composite].parent) {
    const auto& results = recording.composites[composite].results;
    if (std::find(results.begin(), results.end(), value) == results.end()) return false;
  }
  return true;
}

// The gradients of parameters, which the next step overwrites.
bool is_gradient(const Recording& recording, const std::vector<at::Tensor>& parameters,
                 const at::Tensor& tensor) {
  const auto belongs_to = [&](const at::Tensor& parameter) {
    return parameter.is_leaf() && parameter.grad().is_same(tensor);
  };
  return std::any_of(parameters.begin(), parameters.end(), belongs_to) ||
         std::any_of(recording.inputs.begin(), recording.inputs.end(), [&](const auto& input) {
           return input.requires_grad && belongs_to(input.tensor);
         });
}

// Drops effects that do not belong to the step: guards and draws after its end. Draws stay if the
// values that the step leaves in its inputs may come from them.
void drop_effects(Recording& recording, RecordId end) {
  const bool written = std::any_of(
      recording.mutations.begin(), recording.mutations.end(),
      [&](const auto& mutation) { return recording.values[mutation.value].record >= end; });
  for (RecordId id = end; id < recording.records.size(); ++id) {
    Record& record = recording.records[id];
    const bool draws = record.kind == RecordKind::set_generator ||
                       record.kind == RecordKind::generator_state ||
                       record.kind == RecordKind::restore_generator ||
                       (record.kind == RecordKind::op && record.info->may_draw);
    if (record.expected != kNone || (draws && !written)) record.effect = false;
  }
}

std::string message_of(const std::exception& error) {
  const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
  return of_torch != nullptr ? of_torch->what_without_backtrace() : error.what();
}

std::string count(size_t number, const char* what) {
  return std::to_string(number) + ' ' + what + (number == 1 ? "" : "s");
}

}  // namespace

Step::Step(bool lines, bool whole, HostLine host_line, std::filesystem::path folder)
    : folder_(std::move(folder)),
      host_line_(host_line),
      whole_(whole),
      generator_(default_generator_state()) {
  scope_.emplace(trace_options(lines, host_line, [this](const std::string& why) { failed(why); }));
  scope_->recorder().observe(
      [this](RecordId record, c10::ArrayRef<at::Tensor> tensors) { watch(record, tensors); });
}

bool Step::started() {
  if (!error_.empty()) return false;
  const Recording& recording = scope_->recorder().recording();
  return recording.records.size() > recording.inputs.size();
}

void Step::failed(const std::string& why) {
  const std::string line = host_line_ != nullptr ? host_line_() : line_by_stack();
  error_ = why;
  if (!line.empty() && why.find(line) == std::string::npos) error_ += " (" + line + ")";
}

void Step::name(const at::Tensor& tensor, const std::string& name, composit::InputKind kind) {
  if (!error_.empty() ||
      (scope_->recorder().knows(tensor) && (started() || kind == composit::InputKind::user_input)))
    return;
  // Two models of a step may use the same names.
  std::string unique = name;
  for (int i = 1; !names_.insert(unique).second; ++i) unique = name + "_" + std::to_string(i);
  scope_->name(tensor, unique, kind);
}

void Step::extend() {
  if (error_.empty()) end_ = scope_->recorder().recording().records.size();
}

void Step::watch(RecordId id, c10::ArrayRef<at::Tensor> tensors) {
  const Recording& recording = scope_->recorder().recording();
  const Record& record = recording.records[id];
  if (reads(record))
    tracer::for_each_operand(recording, record.operands, record.operand_count,
                             [&](ValueId value) { unread_.erase(value); });
  // Autograd steals the buffer of a gradient that has no other owner.
  const bool hold = !whole_ && torch::autograd::get_current_graph_task_id() == -1;
  for (uint32_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].defined() && scope_->recorder().made_inside(tensors[i]))
      unread_.insert_or_assign(record.values + i, Unread{WeakTensor(tensors[i].getIntrusivePtr()),
                                                         hold ? tensors[i] : at::Tensor()});
  if (unread_.size() < sweep_at_) return;
  for (auto entry = unread_.begin(); entry != unread_.end();)
    entry = entry->second.tensor.expired() ? unread_.erase(entry) : std::next(entry);
  sweep_at_ = std::max<size_t>(1024, 2 * unread_.size());
}

std::vector<at::Tensor> Step::held_results(const std::vector<at::Tensor>& kept) {
  const Recording& recording = scope_->recorder().recording();
  std::vector<at::Tensor> results;
  const std::map<ValueId, Unread> in_order(unread_.begin(), unread_.end());
  for (const auto& [value, unread] : in_order) {
    auto alive = unread.tensor.lock();
    if (!alive.defined() || (end_ && recording.values[value].record >= *end_)) continue;
    const at::Tensor tensor(std::move(alive));
    const bool known = std::any_of(results.begin(), results.end(),
                                   [&](const at::Tensor& other) { return other.is_same(tensor); });
    if (!known && is_visible(recording, value) && !is_gradient(recording, kept, tensor))
      results.push_back(tensor);
  }
  for (const at::Tensor& tensor : kept)
    if (scope_->recorder().made_inside(tensor) &&
        std::none_of(results.begin(), results.end(),
                     [&](const at::Tensor& other) { return other.is_same(tensor); }))
      results.push_back(tensor);
  return results;
}

std::string Step::finish(const std::optional<std::vector<at::Tensor>>& known,
                         const std::vector<at::Tensor>& kept,
                         const std::optional<CaptureBase>& before) {
  const c10::impl::ExcludeDispatchKeyGuard unseen(tracer::kTraceKey);
  try {
    std::vector<at::Tensor> results;
    std::unique_ptr<Recording> recording;
    if (error_.empty()) {
      results = known ? *known : held_results(kept);
      recording = scope_->finish(results);
    }
    scope_.reset();
    if (recording != nullptr) return write(*recording, results, before);
  } catch (const std::exception& error) {
    scope_.reset();
    if (error_.empty()) error_ = message_of(error);
  }
  return "not captured: " + error_;
}

std::string Step::write(Recording& recording, const std::vector<at::Tensor>& results,
                        const std::optional<CaptureBase>& before) {
  if (end_) drop_effects(recording, *end_);
  FlatValues values;
  if (results.size() == 1) {
    values.structure = flatten(results[0], values.tensors);
  } else {
    values.structure.kind = Structure::Kind::tuple;
    for (const at::Tensor& result : results) {
      values.tensors.push_back(result);
      values.structure.children.emplace_back();
    }
  }
  captured_ = CaptureBase::excerpt(recording, std::move(values), generator_);
  const CaptureBase& captured = *captured_;
  const bool confirmed = before && captured.confirm_by(*before, recording);
  captured.save(folder_);
  size_t weights = 0;
  for (const composit::LazyTensor& input : captured.graph().inputs())
    weights += composit::input_kind(*input.node) != composit::InputKind::user_input;
  return count(captured.graph().size(), "node") + ", " +
         count(captured.example_arguments().size(), "argument") + ", " + count(weights, "weight") +
         ", " + count(captured.graph().mutations().size(), "write") + ", " +
         count(captured.example_results().size(), "result") +
         (confirmed ? ", confirmed by the step before" : "");
}

}  // namespace flashlight::preload
